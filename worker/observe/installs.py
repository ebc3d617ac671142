"""Why an installer failed, by its own words: whether the commit asks for what there is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from worker.observe.lines import readable, without_stamp

#: What follows is the output of a package's own build, which may say anything.
_BUILD_OUTPUT = re.compile(r"\s*\[std(?:out|err)\]\s*$")
#: uv's own lines in its versions so far, and pip's.
_OWN = re.compile(r"\s*(?:(?:error|cause|Caused by|hint|warning|ERROR|WARNING): |[×├╰]─*▶? )(?P<text>.*)")
#: The index answers that this is not there: so it is for every node.
_GONE = re.compile(r"\b(?:404 Not Found|410 Gone)\b")
_UNDATED = re.compile(r"is missing an upload date")
_UNSOLVED = re.compile(r"No solution found")
_CONSTRAINTS = re.compile(r"(?:parse requirement in|Invalid requirement:).*constraints\.txt\b")
#: None of these could be the name of a package.
_REGISTRY = re.compile(
    r"Failed to fetch|error sending request|client error \(|tcp connect error|Connection (?:refused|reset)|dns error"
    r"|failed to lookup address|timed out|network timeout|HTTP status (?:server|client) error|invalid peer certificate"
    r"|lack of valid authentication credentials|error decoding response body|Request failed after \d+ retries"
    r"|NewConnectionError|Failed to establish a new connection|Temporary failure in name resolution"
    r"|Max retries exceeded|CERTIFICATE_VERIFY_FAILED|\b(?:429|5\d\d) (?:Client|Server) Error",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Cause:
    """`kind`: of a fault. `said`: the lines that tell."""

    kind: str
    said: str


def cause_of(lines: Iterable[bytes]) -> Cause | None:
    """Of a failed installation, whose log this is. None: it is the commit's own."""
    own = list(_own(lines))
    told = " / ".join(own)
    if _UNSOLVED.search(told) and (undated := [text for text in own if _UNDATED.search(text)]):
        return Cause("no-upload-dates", undated[-1])
    if _CONSTRAINTS.search(told):
        return Cause("constraints", told)
    if not _GONE.search(told) and (seen := [text for text in own if _REGISTRY.search(text)]):
        return Cause("registry", " / ".join(dict.fromkeys(seen)))
    return None


def _own(lines: Iterable[bytes]) -> Iterable[str]:
    for line in lines:
        text = readable(without_stamp(line))
        if _BUILD_OUTPUT.match(text):
            return
        if found := _OWN.match(text):
            yield found["text"]
