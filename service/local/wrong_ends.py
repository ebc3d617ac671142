"""Ends that are not what they are said to be: why nothing is searched for, in a sentence and with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.bisection import Purpose
from service.domain.evidence import Verdict
from service.local.asked import Judged, Terms, Want
from service.local.judging import not_run


@dataclass(frozen=True)
class WrongEnds:
    why: str
    advice: str
    seen: tuple[Judged, ...]


def wrong_ends(
    ends: Sequence[Want], judged: Sequence[Judged], terms: Terms, bases: Sequence[str] = ()
) -> WrongEnds | None:
    """`ends`: the newer one first; each was tried. `bases`: those that are merge bases, which nobody named."""
    new, *olds = [_best(end, judged, terms) for end in ends]
    untestable = [one for one in (new, *olds) if one.verdict is Verdict.SKIP]
    if untestable:
        return _untestable(untestable[0], terms)
    wrong_olds = [one for one in olds if one.counts_as(terms) is Verdict.BAD]
    if new.counts_as(terms) is Verdict.GOOD:
        return _swapped(new, wrong_olds[0], terms) if wrong_olds else _wrong_new(new, terms)
    if wrong_olds and all(one.seen.sha in bases for one in wrong_olds):
        return _wrong_base(wrong_olds[0], terms)
    return _wrong_old(wrong_olds[0], terms) if wrong_olds else None


def _swapped(new: Judged, old: Judged, terms: Terms) -> WrongEnds:
    why = f"the ends are swapped: {_name(new)} is {terms.old}, and {_name(old)} is {terms.new}"
    return WrongEnds(why, "give them the other way round", (new, old))


def _wrong_new(one: Judged, terms: Terms) -> WrongEnds:
    why = f"{_name(one)}, said to be {terms.new}, is {terms.old}: {one.reason}"
    return WrongEnds(why, "try the script by hand there: it does not tell the two apart", (one,))


def _wrong_base(one: Judged, terms: Terms) -> WrongEnds:
    why = f"the merge base {_name(one)} is {terms.new}: the change is on the branch of the {terms.old} end"
    return WrongEnds(why, "name two ends of one branch, one an ancestor of the other", (one,))


def _wrong_old(one: Judged, terms: Terms) -> WrongEnds:
    why = f"{_name(one)}, said to be {terms.old}, is {terms.new}: {one.reason}"
    return WrongEnds(why, f"name another commit that is {terms.old}, or see its log for another reason", (one,))


def _best(end: Want, judged: Sequence[Judged], terms: Terms) -> Judged:
    expected = Verdict.BAD if end.purpose is Purpose.BAD_END else Verdict.GOOD
    trials = [one for one in judged if one.seen.sha == end.sha and one.seen.purpose is end.purpose]
    return next((one for one in trials if one.counts_as(terms) is expected), trials[-1])


def _untestable(one: Judged, terms: Terms) -> WrongEnds:
    said = terms.new if one.seen.purpose is Purpose.BAD_END else terms.old
    if not_run(one.seen.outcome):
        why = f"the script could not be run at {_name(one)} (exit status {one.seen.outcome.exit_status})"
        return WrongEnds(why, "see that it exists, is executable (chmod +x) and finds what it calls", (one,))
    why = f"{_name(one)}, said to be {said}, cannot be tested: {one.reason}"
    return WrongEnds(why, "name an end at which the script ends with 0 or 1 to 124", (one,))


def _name(one: Judged) -> str:
    return one.seen.sha[:12]
