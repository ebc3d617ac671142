"""A number in what a check printed: by a regular expression, by a JSONPath, or in a column of a CSV table."""

from worker.observe.metric.number import Metric, number_of
from worker.observe.metric.values import Measurement

__all__ = ["Metric", "Measurement", "number_of"]
