"""Numbers of generated histories, and whole searches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from service.search import Range
from service.search.metric import Ends, Location, Question, Sample, compare_ends, locate, next_commit

QUESTION = Question("lower")
#: One standard deviation of a run, as a share of the good end's level.
SIGMA = 0.02
Draw = Callable[[np.random.Generator], float]


def normal(random: np.random.Generator) -> float:
    return float(random.normal())


def heavy(random: np.random.Generator) -> float:
    return float(random.standard_t(3)) / 3**0.5


def bimodal(random: np.random.Generator) -> float:
    return (float(random.random() < 1 / 3) - 1 / 3) * 2 + float(random.normal()) / 3


def line(n: int) -> Range:
    return Range.of([str(index) for index in range(n)], goods=["good"])


class History:
    """`worse`: by commit, in standard deviations. `wide`: by commit, the factor of its noise."""

    def __init__(
        self,
        range_: Range,
        worse: Sequence[float],
        seed: int,
        noise: Draw = normal,
        wide: Sequence[float] | None = None,
    ) -> None:
        self.range, self.noise, self.random = range_, noise, np.random.default_rng(seed)
        self.worse, self.wide = worse, wide or [1.0] * len(range_)

    def run(self, sha: str, bench: str = "", factor: float = 1.0) -> Sample:
        index = self.range.find(sha)
        worse, wide = (0.0, 1.0) if index is None else (self.worse[index], self.wide[index])
        return Sample(sha, factor * 100 * (1 + SIGMA * (worse + wide * self.noise(self.random))), bench)

    def ends(self, question: Question = QUESTION) -> tuple[list[Sample], Ends]:
        good: list[Sample] = []
        bad: list[Sample] = []
        while True:
            bad.append(self.run(self.range.shas[-1]))
            good.append(self.run(self.range.goods[0]))
            said = compare_ends(good, bad, question)
            if said.verdict != "unsure":
                return good + bad, said

    def search(
        self, question: Question = QUESTION, skipped: Sequence[str] = (), most: int = 300
    ) -> tuple[Location, list[Sample]]:
        samples, said = self.ends(question)
        assert said.verdict == "differ", said.why
        while (sha := next_commit(self.range, samples, question, skipped=skipped)) is not None and most:
            assert sha not in skipped
            samples.append(self.run(sha))
            most -= 1
        return locate(self.range, samples, question, skipped=skipped), samples


def stairs(n: int, *steps: tuple[int, float]) -> list[float]:
    return [sum(size for place, size in steps if index >= place) for index in range(n)]
