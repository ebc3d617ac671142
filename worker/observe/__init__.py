"""What a run showed, from its facts and its log's lines. Pure: no file, no clock."""

from worker.observe.lines import first_with, last_lines, out_of_space, readable, without_stamp

__all__ = ["first_with", "last_lines", "out_of_space", "readable", "without_stamp"]
