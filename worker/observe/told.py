"""What the check, or the script, says itself of the commit: `firstbad: bad wrong answer`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from worker.observe.lines import readable, without_stamp

#: Of a reason so much is kept; a longer line tells nothing.
LONGEST = 300
LONGEST_LINE = 2000
_TOLD = re.compile(r"firstbad: \s*(?P<verdict>good|bad|skip)(?:\s+(?P<reason>.*))?$")


@dataclass(frozen=True)
class Told:
    verdict: Literal["good", "bad", "skip"]
    reason: str = ""


def told(line: bytes) -> Told | None:
    """From a line's very beginning, our time stamp and colours aside; other words than these three say nothing."""
    bare = without_stamp(line)
    found = _TOLD.match(readable(bare)) if len(bare) <= LONGEST_LINE else None
    if found is None:
        return None
    reason = " ".join((found["reason"] or "").split())
    verdict: Literal["good", "bad", "skip"] = found["verdict"]  # type: ignore[assignment]
    return Told(verdict, reason[:LONGEST].rstrip())
