"""How large what is in a message may be, by whatever it was written.

Numbers and names beyond it are refused. What is written for a reader is taken as far as it can be shown: it may quote a
log, or an error of something else, and none of these is a reason to lose what a run came to.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

LONGEST_NAME, LONGEST_PATH, LONGEST_TEXT = 200, 2000, 20_000
MOST_SLOTS = 1024
#: Of a list in a message, where nothing is known to have more.
MANY = 10_000
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def is_name(value: str) -> bool:
    """Whether it can be part of a key in Redis, of the name of a queue, and of a line in a terminal."""
    return 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _name(value: str) -> str:
    if not is_name(value):
        raise ValueError(f"a name has 1 to {LONGEST_NAME} characters that can be printed")
    return value


def _path(value: str) -> str:
    if not (0 < len(value) <= LONGEST_PATH and value.isprintable()):
        raise ValueError(f"a path has 1 to {LONGEST_PATH} characters that can be printed")
    return value


def _shown(value: str) -> str:
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", value.replace("\r\n", "\n"))


def _word(value: str) -> str:
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in value[:LONGEST_NAME])


Name = Annotated[str, AfterValidator(_name)]
#: Of a phase, a kind of failure, a unit: like `Text`, and of one line.
Word = Annotated[str, AfterValidator(_word)]
Text = Annotated[str, AfterValidator(lambda value: _shown(value[:LONGEST_TEXT]))]
Path = Annotated[str, AfterValidator(_path)]
Facts = Annotated[dict[Word, Text], Field(max_length=MANY)]
Count = Annotated[int, Field(ge=0, lt=10**9)]
#: Of memory, a file, a log.
Size = Annotated[int, Field(ge=0, le=2**53)]
#: Of a process: whatever an operating system may give.
Status = Annotated[int, Field(ge=-(2**31), lt=2**32)]
Number = Annotated[float, Field(allow_inf_nan=False)]
#: Seconds that have passed. A clock that was set back has made them less than none.
Lasted = Annotated[float, Field(allow_inf_nan=False, le=1e9), AfterValidator(lambda value: max(value, 0.0))]
#: Seconds that something may take.
Within = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e9)]
