"""What has been observed so far. The order of observations never matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

Verdict = Literal["good", "bad", "skip"]


@dataclass(frozen=True)
class Observation:
    """The verdict of one probe. `trial` counts the probes of the same commit from 1."""

    sha: str
    verdict: Verdict
    trial: int = 1


@dataclass(frozen=True)
class Tally:
    """How often one commit was judged good and bad."""

    good: int = 0
    bad: int = 0
    skip: int = 0

    @property
    def judged(self) -> int:
        return self.good + self.bad


@dataclass(frozen=True)
class Evidence:
    """Observations about commits of the range and about its ends. A commit outside the range counts as a good end.

    `certain`: commits whose verdict is taken at its word where others may err; nobody asks for them again.
    """

    observations: tuple[Observation, ...] = ()
    certain: frozenset[str] = frozenset()

    @classmethod
    def of(cls, observations: Iterable[Observation | tuple[str, Verdict]]) -> Evidence:
        """From observations, or from pairs of SHA and verdict."""
        made = []
        for item in observations:
            found = item if isinstance(item, Observation) else Observation(*item)
            if found.verdict not in ("good", "bad", "skip"):
                raise ValueError(f"a verdict is good, bad or skip, not {found.verdict!r}")
            made.append(found)
        return cls(tuple(made))

    def plus(self, sha: str, verdict: Verdict) -> Evidence:
        more = Evidence.of([*self.observations, Observation(sha, verdict, self.trials(sha) + 1)])
        return replace(more, certain=self.certain)

    @cached_property
    def at_their_word(self) -> Evidence:
        """Only what is certain."""
        return Evidence(tuple(seen for seen in self.observations if seen.sha in self.certain))

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.observations)

    def __len__(self) -> int:
        return len(self.observations)

    def trials(self, sha: str) -> int:
        found = self.tallies.get(sha, Tally())
        return found.judged + found.skip

    @cached_property
    def tallies(self) -> dict[str, Tally]:
        """Counts by commit, in the order of SHAs, so that equal evidence is equal whatever its order was."""
        counts: dict[str, dict[str, int]] = {}
        for seen in self.observations:
            mine = counts.setdefault(seen.sha, {"good": 0, "bad": 0, "skip": 0})
            mine[seen.verdict] += 1
        return {sha: Tally(**counts[sha]) for sha in sorted(counts)}
