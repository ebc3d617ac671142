"""Which of the refs in a text worked, and which are broken, by the words around each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.application.parse import cues
from service.application.parse.blocks import Block
from service.application.parse.cues import Cue, Sentences, Side, Span
from service.application.parse.draft import Certainty
from service.application.parse.mentions import Mention
from service.domain.refs import Pair, Pull

_GAP = re.compile(
    r"(?i)[\s`*]*(?:to|->|=>|-|\u2192|\u21d2|\u2013>|through|and)[\s`*]*(?:[a-z]\w*[ =]*)?(?:version )?"
    r"[\s`*v]*(?:pr ?)?"
)
_SECTION_BAD = re.compile(
    r"(?i)\b(?:affected|current|broken|bad|failing|fails|your) (?:\w+ )?version|version (?:affected|used)"
)
LONG_GAP = 40


@dataclass(frozen=True)
class Sided:
    mention: Mention
    side: Side
    certainty: Certainty
    why: str


def sided(block: Block, found: Sequence[Mention]) -> Iterator[Sided]:
    """`found`: of this block, in order."""
    text = Sentences(block.text)
    paired: set[int] = set()
    for first, second in zip(found, found[1:], strict=False):
        if first.start not in paired and (both := _from_to(block, text, first, second)) is not None:
            paired |= {first.start, second.start}
            yield from both
    for each in found:
        if each.start not in paired:
            yield from _one(block, text, each, found)


def _from_to(block: Block, text: Sentences, first: Mention, second: Mention) -> tuple[Sided, Sided] | None:
    """From X to Y, between X and Y, X -> Y."""
    gap = block.text[first.end : second.start]
    if len(gap) > LONG_GAP or _GAP.fullmatch(gap) is None:
        return None
    sentence = text.sentence(first.start)
    head = block.text[sentence.start : first.start]
    whole = block.text[sentence.start : sentence.end]
    if "and" in gap.lower().split() and not re.search(r"(?i)\bbetween\b", head[-60:]):
        return None
    if not cues.UP.search(whole):
        return None
    good, bad = (second, first) if cues.DOWN.search(head) else (first, second)
    said = any(cue.side == "bad" for cue in text.within(sentence))
    certainty = Certainty.HIGH if said else Certainty.MEDIUM
    why = f"the text goes from {first.value} to {second.value}"
    return Sided(good, "good", certainty, why), Sided(bad, "bad", certainty, why)


def _one(block: Block, text: Sentences, each: Mention, found: Sequence[Mention]) -> Iterator[Sided]:
    if isinstance(each.form, Pair):
        yield from _both(text, each)
        return
    clause, sentence = text.clause(each.start), text.sentence(each.start)
    before = block.text[max(each.start - 50, clause.start) : each.start]
    if cues.FIXED.search(before):
        return
    if cues.UNDONE.search(before) and not isinstance(each.form, Pair):
        yield Sided(each, "bad", Certainty.MEDIUM, "taking it out again is said to help")
        return
    cue, certainty = _cue(block, text, each, found, clause, sentence)
    if cue is None:
        return
    side: Side = cue.side
    why = f"{' '.join(block.text[cue.start : cue.end].split())!r} stands near it" if cue.end else "its heading says so"
    if cues.BEFORE.search(before) and not _is_label(before):
        if side == "bad":
            return
        side, certainty, why = "bad", Certainty.LOW, f"what is before it worked: {why}"
    if cues.DOUBT.search(block.text[clause.start : clause.end]):
        certainty = Certainty.LOW
    if isinstance(each.form, Pull) and each.home is None and not cue.plain:
        certainty = Certainty.LOW
    yield Sided(each, side, certainty, why)


def _is_label(before: str) -> bool:
    return before.rstrip().endswith(":")


def _both(text: Sentences, each: Mention) -> Iterator[Sided]:
    plain = (
        any(cue.side == "bad" for cue in text.within(text.sentence(each.start))) or "bisect" in each.block.text.lower()
    )
    certainty = Certainty.HIGH if plain else Certainty.MEDIUM
    yield Sided(each, "good", certainty, "a range names both ends")
    yield Sided(each, "bad", certainty, "a range names both ends")


def _cue(
    block: Block, text: Sentences, each: Mention, found: Sequence[Mention], clause: Span, sentence: Span
) -> tuple[Cue | None, Certainty]:
    if (own := _nearest(text.within(clause), each)) is not None:
        near = own.plain or min(abs(each.start - own.end), abs(own.start - each.end)) <= 25
        return own, Certainty.HIGH if near else Certainty.MEDIUM
    for other in _beside(text, clause, sentence, found):
        if (cue := _nearest(text.within(other), each)) is not None:
            return cue, Certainty.MEDIUM
    if block.kind == "code":
        return None, Certainty.LOW
    if (cue := _of_table(block, each)) is not None:
        return cue, Certainty.MEDIUM
    for heading in (block.section if len(found) == 1 or not block.lead else "", block.lead[-80:], block.section):
        told = cues.cues(heading)
        if told and (heading == block.section or heading.rstrip(" *").endswith(":")):
            return Cue(0, 0, told[-1].side, told[-1].plain), Certainty.MEDIUM
        if heading and _SECTION_BAD.search(heading):
            return Cue(0, 0, "bad", False), Certainty.LOW
    return None, Certainty.LOW


def _nearest(around: Sequence[Cue], each: Mention) -> Cue | None:
    """What stands before it goes before what stands behind, where both are as near."""

    def distance(cue: Cue) -> float:
        gap = each.start - cue.end if cue.end <= each.start else cue.start - each.end + 3
        return gap - (20 if cue.plain else 0)

    outside = [cue for cue in around if cue.end <= each.start or cue.start >= each.end]
    return min(outside, key=distance, default=None)


def _beside(text: Sentences, clause: Span, sentence: Span, found: Sequence[Mention]) -> Iterator[Span]:
    """The clauses next to it in its sentence: those first that are about no other ref."""
    spans = []
    if clause.end < sentence.end:
        spans.append(text.clause(clause.end))
    if clause.start > sentence.start:
        spans.append(text.clause(clause.start - 1))
    taken = [any(span.start <= other.start < span.end for other in found) for span in spans]
    yield from (span for span, theirs in zip(spans, taken, strict=True) if not theirs)
    yield from (span for span, theirs in zip(spans[:1], taken, strict=False) if theirs and clause.end < sentence.end)


def _of_table(block: Block, each: Mention) -> Cue | None:
    """By the row's other cells first, then by what stands above the column."""
    if block.kind != "table":
        return None
    start = block.text.rfind("\n", 0, each.start) + 1
    end = block.text.find("\n", each.start)
    row = block.text[start : end if end >= 0 else None]
    if told := cues.cues(row.replace(each.value, "")):
        return Cue(0, 0, told[0].side, told[0].plain)
    column = block.text[start : each.start].count("|")
    cells = block.text.partition("\n")[0].split("|")
    told = cues.cues(cells[min(column, len(cells) - 1)])
    return Cue(0, 0, told[0].side, told[0].plain) if told else None
