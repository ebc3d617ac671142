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
_MEANT = "firstbad:"


@dataclass(frozen=True)
class Told:
    verdict: Literal["good", "bad", "skip"]
    reason: str = ""


def told(line: bytes) -> Told | None:
    """From a line's very beginning, our time stamp and colours aside. Other words than these three are a skip, since
    nobody knows what was meant."""
    bare = without_stamp(line)
    text = readable(bare) if len(bare) <= LONGEST_LINE else ""
    found = _TOLD.match(text)
    if found is None:
        why = f"{text.strip()!r} is no verdict: write firstbad: good, bad or skip, and a reason"
        return Told("skip", why[:LONGEST]) if text.startswith(_MEANT) else None
    reason = " ".join((found["reason"] or "").split())
    verdict: Literal["good", "bad", "skip"] = found["verdict"]  # type: ignore[assignment]
    return Told(verdict, reason[:LONGEST].rstrip())
