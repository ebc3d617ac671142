"""A number that got worse: the ends, the place, the next commit."""

from __future__ import annotations

import numpy as np

from service.search import Found, Range
from service.search.metric import Question, Sample, compare_ends, locate, next_commit


def test_a_step_of_five_sigma_is_found() -> None:
    random = np.random.default_rng(1)
    range_, question = Range.of([str(i) for i in range(40)], goods=["good"]), Question("lower")

    def run(sha: str) -> Sample:
        return Sample(sha, float(random.normal(105 if sha != "good" and int(sha) >= 17 else 100)))

    samples = [run(sha) for sha in ["39", "good"] * 6]
    assert compare_ends(samples[1::2], samples[::2], question).verdict == "differ"
    while (sha := next_commit(range_, samples, question)) is not None:
        samples.append(run(sha))
    said = locate(range_, samples, question).conclusion
    assert isinstance(said, Found)
    assert said.sha == "17"
