"""Looking ahead: which commits will likely be wanted after the answers in flight, so that builders can work ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.search.belief import Prior, believe
from service.search.choice import next_probes, redundant
from service.search.evidence import Evidence, Verdict
from service.search.graph import Range
from service.search.information import chance_of_bad
from service.search.noise import Noise
from service.search.position import Cost, settled

#: A future less likely than this is not followed.
UNLIKELY = 1e-3


@dataclass(frozen=True)
class Future:
    """One course of events: what was observed, what is in flight then, and how likely it is to come so far."""

    chance: float
    evidence: Evidence
    flying: tuple[str, ...]


@dataclass(frozen=True)
class Search:
    """What stays the same in every future."""

    range_: Range
    prior: Prior | None
    cost: Cost | None
    noise: Noise | None
    confidence: float
    width: int

    def wanted(self, future: Future) -> tuple[str, ...]:
        return next_probes(
            self.range_, future.evidence, self.prior, future.flying, self.width, self.cost, self.noise, self.confidence
        )

    def answers(self, future: Future) -> Iterator[Future]:
        """Both answers of the probe that has been in flight longest."""
        sha, rest = future.flying[0], future.flying[1:]
        belief = believe(self.range_, future.evidence, self.prior, self.noise)
        if settled(belief, self.noise, self.confidence):
            return
        index = self.range_.find(sha)
        bad = float(belief.weights @ belief.bad_if_good) if index is None else chance_of_bad(self.range_, belief, index)
        outcomes: tuple[tuple[float, Verdict], ...] = ((bad, "bad"), (1.0 - bad, "good"))
        for chance, verdict in outcomes:
            if future.chance * chance > UNLIKELY:
                seen = future.evidence.plus(sha, verdict)
                gone = redundant(self.range_, seen, rest, self.prior, self.noise, self.confidence)
                yield Future(future.chance * chance, seen, tuple(sha for sha in rest if sha not in gone))


def likely_next(
    range_: Range,
    evidence: Evidence,
    prior: Prior | None = None,
    in_flight: Sequence[str] = (),
    n: int = 4,
    cost: Cost | None = None,
    noise: Noise | None = None,
    confidence: float = 0.95,
    width: int | None = None,
) -> tuple[tuple[str, float], ...]:
    """The commits most likely wanted after the answers in flight, each with the probability that it will be.

    With nothing in flight, those that would be started now are taken to be. `width` is that of the search, where it
    is not just the number of probes in flight.
    """
    search = Search(range_, prior, cost, noise, confidence, width or max(len(in_flight), 1))
    now = Future(1.0, evidence, tuple(in_flight))
    now = Future(1.0, evidence, now.flying + search.wanted(now))
    found: dict[str, float] = {}
    waiting = [now] if now.flying else []
    for _ in range(4 * n):
        waiting.sort(key=lambda future: future.chance)
        if not waiting or waiting[-1].chance <= _nth(found, n):
            break
        for future in search.answers(waiting.pop()):
            new = search.wanted(future)
            for sha in new:
                found[sha] = min(1.0, found.get(sha, 0.0) + future.chance)
            if future.flying + new:
                waiting.append(Future(future.chance, future.evidence, future.flying + new))
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple((sha, chance) for sha, chance in ranked if sha not in now.flying)[:n]


def _nth(found: dict[str, float], n: int) -> float:
    """The chance that a commit must exceed to be among the n likeliest."""
    return sorted(found.values(), reverse=True)[n - 1] if len(found) >= n else 0.0
