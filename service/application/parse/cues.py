"""Words that say on which side a commit is, and how the sentences of a report fall into clauses."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["good", "bad"]

#: Tried in this order at each place, so that what negates comes first.
_BAD_PLAIN = (
    r"first[ -](?:bad|broken|failing)|bisect(?:ed|ing|s)?(?: \w+){0,3}? (?:to|points? (?:at|to))|git bisect|culprit"
    r"|introduced (?:in|by|with|since)|caused by|due to|offending|broken (?:since|by|in|with|at|on|after)"
    r"|regress(?:ion|ed|es)?(?: \w+)? (?:since|in|with|after|by|at|on)|starting (?:from|with|in|at)"
    r"|started (?:in|with|from)"
    r"|stopped working|no longer works?|(?:does|did|do|is|was)(?: not|n't) work\w*|not working"
    r"|fails? (?:in|on|with|since)"
    r"|broken version|bad version|bad commit"
)
_GOOD_PLAIN = (
    r"(?:last|latest)[ -](?:known[ -])?(?:good|working)|known[ -]good|(?:does|did|is|was|do)(?: not|n't)"
    r" (?:happen\w*|occur\w*|reproduc\w*|fail\w*|crash\w*|hang\w*|show\w*|exist|appear\w*|affected|present|broken|have)"
    r"|no (?:such )?(?:issues?|problems?|errors?|crash(?:es)?|regressions?|failures?)|without (?:any |this |the )?"
    r"(?:issues?|problems?|errors?|crash(?:es|ing)?)|not (?:reproducible|affected|present)|can(?:not|'t| not) reproduce"
    r"|never (?:happen|fail|crash)\w*|working version|good version|good commit|worked (?:in|on|with|until|fine|at)"
    r"|works? (?:in|on|with|fine|at)|unaffected"
)
_BAD = (
    r"fail\w*|brok\w+|breaks?|crash\w*|bad|errors?|hangs?|hung|stuck|wrong|incorrect|garbage|gibberish|slow(?:er|s)?"
    r"|regress\w*|since|after (?:the )?(?:upgrad|updat)\w+(?: \w+)? to|(?:upgrad|updat|bump)\w*(?: \w+)? to|raises?"
    r"|throws?|oom|segfault\w*|affected|dropp?(?:ed|s)|worse|degrad\w*|reproduc(?:es|ed|ible)|current(?:ly)?"
    r"|\u274c|\u2717|\u2718|:x:|\U0001f534"
)
_GOOD = (
    r"works?|worked|working|good|fine|ok(?:ay)?|pass(?:es|ed)?|succe\w+|correct(?:ly)?|normal(?:ly)?|previous(?:ly)?"
    r"|downgrad\w+(?: \w+){0,2}? to|roll(?:ed|ing)?[ -]?back(?: \w+){0,2}? to|revert(?:ed|ing)? (?:back )?to"
    r"|go(?:ing)? back to"
    r"|fast(?:er)?|expected|\u2705|\u2713|\u2714|:white_check_mark:|:heavy_check_mark:|\U0001f7e2"
)
_CUE = re.compile(
    rf"(?i)(?P<B>\b(?:{_BAD_PLAIN})\b)|(?P<G>\b(?:{_GOOD_PLAIN})\b)"
    rf"|(?P<b>\b(?:{_BAD.rsplit('|', 5)[0]})\b|{'|'.join(_BAD.rsplit('|', 5)[1:])})"
    rf"|(?P<g>\b(?:{_GOOD.rsplit('|', 6)[0]})\b|{'|'.join(_GOOD.rsplit('|', 6)[1:])})"
)
_SENTENCE = re.compile(r"[.!?](?=\s)|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>|#]|[0-9]{1,3}\.)[ \t])|;\s|<br>|\|[ \t]*\n")
_CLAUSE = re.compile(r",\s|\n|\s(?:but|while|whereas|however|yet|though|although|then|and)\s|\s[-\u2013\u2014]\s|[()|]")
DOUBT = re.compile(r"(?i)\b(?:should|would|might|maybe|perhaps|hopefully|not sure|unsure|untested|guess|probably)\b|\?")
DOWN = re.compile(r"(?i)downgrad|roll(?:ed|ing)?[ -]?back|\brevert")
UP = re.compile(r"(?i)upgrad|updat|\bbump|regress|broke|bisect|\bfrom\b|\bbetween\b|range|since|slow|drop|chang|worse")
#: Directly before a version that is itself not meant.
BEFORE = re.compile(
    r"(?i)(?:\bbefore|\bprior to|\bolder than|\bearlier than|\bbelow|<)(?: (?:the|version|pr|commit))?\s*$"
)
FIXED = re.compile(r"(?i)\bfix(?:ed|es)?(?: \w+){0,2}? (?:in|by|with)\s*$|\b(?:fixed|resolved) (?:in|by)\b")
#: A merge request that is taken out again is the one that broke it.
UNDONE = re.compile(r"(?i)\brevert(?:ing|ed|s)?\b(?! (?:back )?to\b)")


@dataclass(frozen=True)
class Cue:
    start: int
    end: int
    side: Side
    plain: bool


@dataclass(frozen=True)
class Span:
    start: int
    end: int


class Sentences:
    """Of a block's text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sentences = _cuts(_SENTENCE, text)
        self._clauses = sorted({*self._sentences, *_cuts(_CLAUSE, text)})
        self._cues: dict[Span, list[Cue]] = {}

    def sentence(self, at: int) -> Span:
        return _span(self._sentences, at, len(self._text))

    def clause(self, at: int) -> Span:
        return _span(self._clauses, at, len(self._text))

    def within(self, span: Span) -> Sequence[Cue]:
        """Looked for only where they are asked for."""
        if span not in self._cues:
            self._cues[span] = cues(self._text[span.start : span.end], span.start)
        return self._cues[span]


def cues(text: str, offset: int = 0) -> list[Cue]:
    found = []
    for match in _CUE.finditer(text):
        kind = match.lastgroup or ""
        found.append(
            Cue(offset + match.start(), offset + match.end(), "bad" if kind in "Bb" else "good", kind.isupper())
        )
    return found


def _cuts(pattern: re.Pattern[str], text: str) -> list[int]:
    return [0, *(found.end() for found in pattern.finditer(text))]


def _span(cuts: Sequence[int], at: int, end: int) -> Span:
    place = bisect_right(cuts, at)
    return Span(cuts[place - 1], cuts[place] if place < len(cuts) else end)
