"""Which commit made the number worse: when it may be named, and what is said when none may."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from service.search.conclusion import NOTHING_TELLS, UNTESTABLE, Conclusion, Found, Searching, Suspects
from service.search.graph import Floats, Range
from service.search.metric.doubt import unconfirmed, undecided
from service.search.metric.forecast import most_runs
from service.search.metric.model import gap_and_noise
from service.search.metric.results import Location, Shape
from service.search.metric.samples import Question, Sample
from service.search.metric.state import State, examine
from service.search.metric.steps import Place, above, held, levels, narrowed, places, step
from service.search.metric.table import GOOD_END
from service.search.metric.value import Value, value
from service.search.metric.words import short

#: The doubt that is left is taken to be so many times as large before it is stated, as far as one change explains all,
#: and so many times as far as it takes several: fitted by simulation.
CAUTION, SEVERAL = 1.5, 8.0
#: A run that tells less than this many bits is not worth a machine.
WORTHLESS = 1e-4
#: Patience is that for a step of this share of what the ends differ by, at least.
SMALLEST = 0.4
#: A step changes the spread alone when it is less than this share of the noise.
LEVEL = 0.5
TOO_NOISY = "the number varies too much to name one commit in a reasonable number of runs"


def locate(range_: Range, samples: Sequence[Sample], question: Question, *, skipped: Collection[str] = ()) -> Location:
    """The bad end is the last commit of the range, the good ends are `range_.goods`.

    Errors: ValueError for a number that is not finite, and for a sample of any other commit.
    """
    if not samples:
        return Location(Searching(len(range_), float(len(range_).bit_length())))
    state = examine(range_, samples, question)
    steps = above(state, question, places(state, question.confidence))
    ahead = value(range_, state, skipped, target=sought(question, state, steps))
    return Location(
        concluded(range_, state, question, steps, skipped, ahead),
        _shape(state, steps),
        levels(range_, state),
        _bad(range_, state),
        tuple(step(range_, state, place) for place in steps),
    )


def known(range_: Range, samples: Sequence[Sample], question: Question) -> tuple[str, ...]:
    """For a search that has to stop here: the fewest commits that hold the largest step with the stated confidence, the
    most suspect first; all before anything was measured."""
    if not samples:
        return tuple(range_.shas)
    order = held(_shares(examine(range_, samples, question)), question.confidence)
    return tuple(range_.shas[index] for index in order.tolist())


def stated(state: State, belief: float) -> float:
    return max(0.0, 1 - (CAUTION + (SEVERAL - CAUTION) * state.posterior.several) * (1 - belief))


def concluded(
    range_: Range, state: State, question: Question, steps: list[Place], skipped: Collection[str], ahead: Value
) -> Conclusion:
    """`ahead`: what further runs would tell."""
    belief = state.posterior.places
    top = int(np.argmax(belief))
    sure = _sure(state, question) and _got_worse(state, steps)
    doubted = once_more(range_, state, question, steps, skipped) is not None
    if sure and not doubted and sought(question, state, steps) is None:
        return Found(_first(range_, state, top), stated(state, float(belief[top])))
    if stated(state, 1 - float(belief.sum())) >= question.confidence:
        return _little_by_little(range_, state)
    if not sure and not doubted and _both_known(state, question, steps):
        return _two_alike(range_, state, steps)
    given_up = _runs(range_, state) >= most_runs(len(range_), *_signal(range_, state, steps), question.confidence)
    if given_up or (ahead.most < WORTHLESS and not doubted):
        if sure:
            return Found(_first(range_, state, top), stated(state, float(belief[top])))
        return _odds(range_, state, question, TOO_NOISY if given_up else _nothing_left(skipped))
    return _searching(range_, state, question, ahead)


def _sure(state: State, question: Question) -> bool:
    """One commit holds the largest step, if the noise is what it is thought to be."""
    belief = state.posterior.places
    top = int(np.argmax(belief))
    return stated(state, float(belief[top])) >= question.confidence and bool(state.classes.sizes[top] == 1)


def _got_worse(state: State, steps: list[Place]) -> bool:
    """Where it got better there is nothing to name; a spread that is wider may go with any level."""
    return bool(steps) and (steps[0].size.low > 0 or _shape(state, steps) == "spread")


def once_more(
    range_: Range, state: State, question: Question, steps: list[Place], skipped: Collection[str]
) -> int | None:
    """A commit that must be run once more before the answer is given that is in sight; None when none is."""
    if _sure(state, question):
        top = int(np.argmax(state.posterior.places))
        return unconfirmed(range_, state, int(np.flatnonzero(state.classes.of == top)[0]), skipped)
    return undecided(range_, state, steps[:2]) if _both_known(state, question, steps) else None


def sought(question: Question, state: State, steps: list[Place]) -> Floats | None:
    """With a threshold, the largest step that is not narrowed down to one commit though the largest of all is: by
    hypothesis and step. None where the largest of all is what is sought."""
    wanted = [place for place in steps if not narrowed(state, place)]
    if question.threshold is None or not wanted or not narrowed(state, steps[0]):
        return None
    found = state.posterior
    target = np.where((found.count == wanted[0].count)[:, None], 0.0, found.largest)
    target[found.count == wanted[0].count, wanted[0].order] = 1.0
    return target


def _little_by_little(range_: Range, state: State) -> Suspects:
    found = state.posterior
    weights = found.weights[found.is_ramp]
    bends = found.ramps[found.columns[found.is_ramp, 0] - len(found.classes)]
    low, high = bends[int(np.argmax(weights))].astype(int).tolist()
    begin = range_.goods[0] if low == GOOD_END and range_.goods else range_.shas[max(low, 0)]
    why = (
        f"it got worse little by little between {short(begin)} and {short(range_.shas[high])}: no single commit did it"
    )
    shas = range_.shas[low + 1 : high + 1]
    return Suspects(shas, why, candidates_left=len(shas))


def _both_known(state: State, question: Question, steps: list[Place]) -> bool:
    """Of two steps each is, and one of them is the largest."""
    if len(steps) < 2 or not all(narrowed(state, place) for place in steps[:2]):
        return False
    belief = state.posterior.places
    return stated(state, float(sum(belief[int(place.classes[0])] for place in steps[:2]))) >= question.confidence


def _two_alike(range_: Range, state: State, steps: list[Place]) -> Suspects:
    shas = tuple(_first(range_, state, int(place.classes[0])) for place in steps[:2])
    why = f"it got worse twice, by about as much: at {short(shas[0])} and at {short(shas[1])}"
    odds = tuple(place.largest for place in steps[:2])
    return Suspects(shas, why, odds, candidates_left=2)


def _odds(range_: Range, state: State, question: Question, why: str) -> Suspects:
    shares = _shares(state)
    order = held(shares, question.confidence)
    shas = tuple(range_.shas[index] for index in order.tolist())
    return Suspects(shas, why, tuple(shares[order].tolist()), len(order))


def _nothing_left(skipped: Collection[str]) -> str:
    return UNTESTABLE if skipped else NOTHING_TELLS


def _searching(range_: Range, state: State, question: Question, ahead: Value) -> Searching:
    shares = _shares(state)
    left = len(held(shares, question.confidence))
    shares = shares[shares > 0] / shares.sum()
    bits = -float((shares * np.log2(shares)).sum()) + float(np.log2(1 / (1 - question.confidence)))
    # Only a run to make sure is left where further ones tell nothing.
    return Searching(left, max(1.0, bits / min(ahead.most, 1.0)) if ahead.most >= WORTHLESS else 1.0)


def _shares(state: State) -> Floats:
    """By candidate, the belief that it is the largest step."""
    found: Floats = (state.posterior.places / state.classes.sizes)[state.classes.of]
    return found


def _first(range_: Range, state: State, of: int) -> str:
    return range_.shas[int(np.flatnonzero(state.classes.of == of)[0])]


def _runs(range_: Range, state: State) -> float:
    """Of commits between the ends."""
    cells = state.table
    between = (cells.commits != GOOD_END) & (cells.commits != len(range_) - 1)
    return float(cells.runs[between].sum())


def _signal(range_: Range, state: State, steps: list[Place]) -> tuple[float, float]:
    """The size of what is looked for, and the noise, as they are known by now: ends that were told apart early look
    further apart than they are."""
    gap, _ = gap_and_noise(state.table, len(range_) - 1)
    largest = max((place.size.estimate for place in steps), default=gap)
    noise = float(np.sqrt(state.posterior.weights @ state.posterior.noise))
    return min(gap, max(largest, SMALLEST * gap)), noise


def _bad(range_: Range, state: State) -> dict[str, float]:
    """Of each commit that was measured, the chance that it is at or behind the largest step."""
    belief = state.posterior.places
    chances = state.classes.rows @ belief / max(float(belief.sum()), 1e-300)
    found = dict(zip((range_.shas[index] for index in state.table.tested), chances.tolist(), strict=True))
    if (state.table.commits == GOOD_END).any():
        found.update(dict.fromkeys(range_.goods, 0.0))
    return found


def _shape(state: State, steps: list[Place]) -> Shape:
    found = state.posterior
    if float(found.weights[found.is_ramp].sum()) > 0.5:
        return "ramp"
    noise = float(np.sqrt(found.weights @ found.noise))
    if steps and float(found.weights[found.ratio > 0].sum()) > 0.5 and abs(steps[0].size.estimate) < LEVEL * noise:
        return "spread"
    return "steps" if len(steps) > 1 else "step"
