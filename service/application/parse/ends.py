"""The two ends out of all that is said of refs, and the questions where that is not clear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from service.application.parse.cues import Side
from service.application.parse.draft import Candidate, Certainty, Field, Missing
from service.application.parse.mentions import OTHERS, Mention
from service.application.parse.sides import Sided
from service.domain import refs
from service.domain.refs import Pair, Pull, Release

_QUESTIONS: dict[Side, str] = {
    "good": "Where did it still work? Name a version, a commit or a day.",
    "bad": "Where is it broken? Name a version, a commit or a day.",
}
MOST_CANDIDATES = 6
#: Characters.
NEAR = 60


@dataclass
class _Choice:
    value: str
    certainty: Certainty
    why: str
    said: list[Mention] = field(default_factory=list)

    @property
    def version(self) -> Version | None:
        form = refs.read(self.value).form
        return form.version if isinstance(form, Release) else None


def of_subject(found: Mention, names: Collection[str]) -> bool:
    """Not a version of something else."""
    if found.package is None or found.package in names:
        return True
    # A word before a version that is no name: "In 0.9.2"; in a pin it is one for sure.
    return found.package not in OTHERS and not (names and found.package in found.value.lower())


def about(found: Iterable[Mention], names: Collection[str]) -> Iterator[Mention]:
    """Those of the package itself: a version without a name, soon behind one of another package, is that one's too."""
    last: Mention | None = None
    for each in found:
        mine = of_subject(each, names)
        if not mine and each.package in OTHERS:
            last = each
        elif last is not None and isinstance(each.form, Release) and each.package not in names:
            near = each.block is last.block and each.start - last.end < NEAR
            mine = mine and not (near and _is_bare(each) and _is_bare(last))
        if mine:
            yield each


def _is_bare(found: Mention) -> bool:
    return found.value[:1].isdigit()


def choose(said: Iterable[Sided]) -> tuple[list[Field], list[Missing]]:
    chosen: dict[Side, _Choice] = {}
    missing: list[Missing] = []
    by_side: dict[Side, list[_Choice]] = {"good": [], "bad": []}
    for each in said:
        _add(by_side[each.side], each)
    _drop_contradictions(by_side)
    for side in ("good", "bad"):
        choices = by_side[side]
        if (one := _best(choices, side)) is not None:
            chosen[side] = one
        else:
            missing.append(_question(side, choices))
    if _is_reversed(chosen):
        both = [chosen.pop("good"), chosen.pop("bad")]
        missing = [_question("good", both), _question("bad", both)]
    return [_field(side, one) for side, one in chosen.items()], missing


def _add(choices: list[_Choice], each: Sided) -> None:
    value = _value(each)
    for known in choices:
        if _same(known.value, value):
            known.said.append(each.mention)
            if len(value) > len(known.value) and not _is_version(value):
                known.value = value
            if each.certainty.rank > known.certainty.rank:
                known.certainty, known.why = each.certainty, each.why
            return
    choices.append(_Choice(value, each.certainty, each.why, [each.mention]))


def _value(each: Sided) -> str:
    form = each.mention.form
    if isinstance(form, Pair):
        return form.good if each.side == "good" else form.bad
    return each.mention.value


def _is_version(value: str) -> bool:
    return isinstance(refs.read(value).form, Release)


def _same(one: str, other: str) -> bool:
    a, b = refs.read(one).form, refs.read(other).form
    if isinstance(a, Release) and isinstance(b, Release):
        return a.version == b.version
    if isinstance(a, Pull) or isinstance(b, Pull):
        return a == b
    short, long = sorted((_digits(one), _digits(other)), key=len)
    return len(short) >= 7 and long.startswith(short) or one == other


def _digits(value: str) -> str:
    form = refs.read(value).form
    return form.digits if isinstance(form, refs.Sha) else value.lower()


def _drop_contradictions(by_side: dict[Side, list[_Choice]]) -> None:
    """What is said to be both is what it is said to be more plainly, or neither."""
    for good in list(by_side["good"]):
        for bad in list(by_side["bad"]):
            if _same(good.value, bad.value):
                if good.certainty.rank <= bad.certainty.rank:
                    by_side["good"] = [each for each in by_side["good"] if each is not good]
                if bad.certainty.rank <= good.certainty.rank:
                    by_side["bad"] = [each for each in by_side["bad"] if each is not bad]


def _best(choices: Sequence[_Choice], side: Side) -> _Choice | None:
    """The one that is said most plainly; of versions the last that worked, or the first that is broken."""
    if not choices:
        return None
    most = max(each.certainty.rank for each in choices)
    plain = [each for each in choices if each.certainty.rank == most]
    versions = [(each.version, each) for each in plain if each.version is not None]
    exact = [each for each in plain if each.version is None]
    if exact:
        return exact[0] if len(exact) == 1 else None
    pick = max if side == "good" else min
    return pick(versions, key=lambda pair: pair[0])[1]


def _is_reversed(chosen: dict[Side, _Choice]) -> bool:
    good, bad = (chosen[side].version if side in chosen else None for side in ("good", "bad"))
    return good is not None and bad is not None and good >= bad


def _question(side: Side, choices: Sequence[_Choice]) -> Missing:
    candidates = [Candidate(one.value, one.said[0].block.origin(one.said[0].start, one.said[0].end)) for one in choices]
    return Missing(side, _QUESTIONS[side], tuple(candidates[:MOST_CANDIDATES]))


def _field(side: Side, one: _Choice) -> Field:
    origins = tuple(each.block.origin(each.start, each.end) for each in one.said[:MOST_CANDIDATES])
    return Field(side, one.value, one.certainty, one.why, origins)
