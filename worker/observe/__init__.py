"""What a run showed, from its facts and its log's lines. Pure: no file, no clock."""

from worker.observe.builds import first_error, of_code
from worker.observe.lines import first_with, last_lines, out_of_space, readable, without_stamp
from worker.observe.network import unreachable

__all__ = [
    "first_error",
    "first_with",
    "last_lines",
    "of_code",
    "out_of_space",
    "readable",
    "unreachable",
    "without_stamp",
]
