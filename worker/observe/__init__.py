"""What a run showed, from its facts and its log's lines. Pure: no file, no clock."""

from worker.observe.builds import first_error, of_code
from worker.observe.lines import first_with, last_lines, readable, without_stamp
from worker.observe.metric import Measurement, number_of
from worker.observe.network import unreachable
from worker.observe.shown import Shown, shown
from worker.observe.sighting import Sign
from worker.observe.signs import out_of_space
from worker.observe.told import Told, told

__all__ = [
    "Measurement",
    "Shown",
    "Sign",
    "Told",
    "first_error",
    "first_with",
    "last_lines",
    "of_code",
    "out_of_space",
    "readable",
    "number_of",
    "shown",
    "told",
    "unreachable",
    "without_stamp",
]
