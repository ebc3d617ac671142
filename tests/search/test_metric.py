"""Which commit made a number worse: searches of generated histories of every shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.search import Found, Range, Searching, Suspects
from service.search.metric import Question, Sample, locate, next_commit
from tests.search.metric_histories import QUESTION, History, bimodal, heavy, line, normal, stairs


def answers(histories: list[History]) -> list[int | None]:
    """Of each search the commit that was named."""
    said = [history.search()[0].conclusion for history in histories]
    return [int(one.sha) if isinstance(one, Found) else None for one in said]


@pytest.mark.parametrize("noise", [normal, heavy, bimodal])
def test_a_step_is_named_whatever_the_noise(noise) -> None:
    places = [int(np.random.default_rng(seed).integers(60)) for seed in range(12)]
    named = answers([History(line(60), stairs(60, (place, 2.5)), seed, noise) for seed, place in enumerate(places)])
    assert sum(said == place for said, place in zip(named, places, strict=True)) >= 11


def test_a_step_of_one_deviation_is_named_with_far_fewer_runs_than_ten_for_each_halving() -> None:
    runs = []
    for seed in range(4):
        history = History(line(64), stairs(64, (20 + seed, 1.0)), seed)
        said, samples = history.search(replace(QUESTION, runs=60))
        assert isinstance(said.conclusion, Found)
        assert said.conclusion.sha == str(20 + seed)
        runs.append(sum(one.sha not in ("good", "63") for one in samples))
    assert np.mean(runs) < 60


def test_what_is_known_of_a_step_is_its_size_its_levels_and_what_lies_behind_it() -> None:
    said, samples = History(line(40), stairs(40, (17, 5.0)), 1).search()
    assert isinstance(said.conclusion, Found)
    assert said.conclusion.confidence >= 0.95
    assert said.shape == "step"
    (step,) = said.steps
    assert step.shas == ("17",)
    assert step.size.low < 0.1 < step.size.high
    assert step.largest == pytest.approx(1.0)
    assert said.levels["good"].low < 100 < said.levels["good"].high
    assert said.levels["39"].low < 110 < said.levels["39"].high
    assert said.bad["good"] == 0.0
    assert said.bad["39"] == pytest.approx(1.0)
    assert said.bad["16"] < 0.05 < 0.95 < said.bad["17"]
    assert set(said.levels) == {one.sha for one in samples}


def test_of_two_steps_the_larger_is_named_and_the_other_listed() -> None:
    found = [History(line(60), stairs(60, (15, 3.0), (40, 6.0)), seed).search()[0] for seed in range(6)]
    named = [said.conclusion.sha for said in found if isinstance(said.conclusion, Found)]
    assert named.count("40") >= 5
    assert sum("15" in said.steps[1].shas for said in found if said.shape == "steps") >= 4


def test_with_a_threshold_each_step_above_it_is_narrowed_down_to_one_commit() -> None:
    history = History(line(60), stairs(60, (15, 3.0), (40, 5.0)), 2)
    said, _ = history.search(replace(QUESTION, threshold=0.03))
    assert isinstance(said.conclusion, Found)
    assert [step.shas for step in said.steps] == [("40",), ("15",)]


def test_two_steps_of_the_same_size_are_both_suspects_and_it_says_so() -> None:
    said, _ = History(line(60), stairs(60, (15, 5.0), (40, 5.0)), 3).search()
    assert isinstance(said.conclusion, Suspects)
    assert set(said.conclusion.shas) == {"15", "40"}
    assert "twice" in said.conclusion.why


def test_no_commit_is_named_where_it_got_worse_little_by_little() -> None:
    worse = [8.0 * (index + 1) / 60 for index in range(60)]
    said, _ = History(line(60), worse, 4).search()
    assert said.shape == "ramp"
    assert isinstance(said.conclusion, Suspects)
    assert "little by little" in said.conclusion.why


def test_a_commit_from_which_it_varies_more_is_named() -> None:
    wide = [1.0 if index < 25 else 5.0 for index in range(40)]
    said, _ = History(line(40), [0.0] * 40, 6, wide=wide).search()
    assert said.shape == "spread"
    assert isinstance(said.conclusion, Found)
    assert said.conclusion.sha == "25"


def test_a_number_that_never_varies_takes_one_run_a_commit_as_bisection_does() -> None:
    history = History(line(128), stairs(128, (77, 5.0)), 0, lambda random: 0.0)
    said, samples = history.search()
    assert isinstance(said.conclusion, Found)
    assert said.conclusion.sha == "77"
    between = [one.sha for one in samples if one.sha not in ("good", "127")]
    assert len(between) <= 10


def test_merges_are_searched_along_every_branch() -> None:
    parents = {"a": (), "b": ("a",), "c": ("a",), "d": ("c",), "e": ("b", "d"), "f": ("e",), "g": ("f",)}
    range_ = Range.of(parents, parents, goods=["good"])
    for guilty, seed in (("d", 1), ("b", 2), ("e", 3)):
        at = range_.shas.index(guilty)
        worse = [4.0 if range_.ancestors(index)[at] else 0.0 for index in range(len(range_))]
        said, _ = History(range_, worse, seed).search()
        assert isinstance(said.conclusion, Found)
        assert said.conclusion.sha == guilty


def test_commits_that_cannot_be_measured_are_suspects_together() -> None:
    said, _ = History(line(30), stairs(30, (12, 5.0)), 1).search(skipped=("11", "12", "13"))
    assert isinstance(said.conclusion, Suspects)
    assert set(said.conclusion.shas) == {"11", "12", "13", "14"}
    assert "could not be tested" in said.conclusion.why


def test_a_second_bench_that_measures_another_level_does_not_mislead() -> None:
    history = History(line(40), stairs(40, (17, 4.0)), 1)
    samples, _ = history.ends()
    samples += [history.run(sha, "slow", 1.3) for sha in ("good", "39") * 3]
    for turn in range(60):
        sha = next_commit(history.range, samples, QUESTION)
        if sha is None:
            break
        samples.append(history.run(sha, *(("slow", 1.3) if turn % 2 else ())))
    said = locate(history.range, samples, QUESTION)
    assert isinstance(said.conclusion, Found)
    assert said.conclusion.sha == "17"
    assert said.levels["39"].low < 108 < said.levels["39"].high


def test_what_is_in_flight_is_not_asked_for_again_when_it_tells_enough_by_itself() -> None:
    history = History(line(200), stairs(200, (90, 5.0)), 1)
    samples, _ = history.ends()
    first = next_commit(history.range, samples, QUESTION)
    assert first is not None
    second = next_commit(history.range, samples, QUESTION, in_flight=[first])
    assert second is not None
    assert abs(int(first) - int(second)) > 20


def test_a_commit_that_is_built_is_preferred_where_building_another_takes_long() -> None:
    history = History(line(200), stairs(200, (90, 1.5)), 1)
    samples, _ = history.ends()
    samples.append(history.run("100"))
    cost = {sha: 1.0 if sha in ("100", "good", "199") else 1000.0 for sha in (*history.range.shas, "good")}
    assert next_commit(history.range, samples, QUESTION, cost=cost) == "100"


def test_before_anything_was_measured_the_bad_end_is_asked_for() -> None:
    assert next_commit(line(5), [], QUESTION) == "4"
    assert isinstance(locate(line(5), [], QUESTION).conclusion, Searching)


def test_a_run_of_a_commit_of_no_concern_is_refused() -> None:
    with pytest.raises(ValueError, match="neither in the range"):
        locate(line(5), [Sample("other", 1.0)], QUESTION)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.floats(0.01, 100), st.randoms(), st.sampled_from(["higher", "lower"]))
def test_neither_order_nor_unit_nor_the_names_of_benches_matter(seed, unit, random, better) -> None:
    history, question = History(line(30), stairs(30, (11, 2.0)), seed), Question(better)
    samples = [history.run(sha, bench) for sha in ("good", "29", "10", "11", "15") for bench in "abb"]
    said = locate(history.range, samples, question)
    other = [Sample(one.sha, one.value * unit, f"node {one.bench}") for one in samples]
    random.shuffle(other)
    again = locate(history.range, other, question)
    assert again.bad == pytest.approx(said.bad, abs=1e-6)
    assert type(again.conclusion) is type(said.conclusion)
    assert next_commit(history.range, other, question) == next_commit(history.range, samples, question)


@pytest.mark.parametrize("noise", [normal, heavy, bimodal])
def test_answers_at_the_stated_confidence_are_right(noise) -> None:
    """A short calibration; `make bench-metric` has the long one."""
    right = wrong = 0
    for seed in range(25):
        random = np.random.default_rng(1000 + seed)
        n, size = int(random.integers(20, 60)), float(random.uniform(1.5, 5))
        place = int(random.integers(n))
        (said,) = answers([History(line(n), stairs(n, (place, size)), seed, noise)])
        right += said == place
        wrong += said not in (place, None)
    assert right >= 20
    assert wrong <= 2


class Odd(History):
    """`of`: the number of a good or a bad commit."""

    def __init__(self, place: int, of, seed: int = 0) -> None:
        super().__init__(line(40), stairs(40, (place, 1.0)), seed)
        self.of = of

    def run(self, sha: str, bench: str = "", factor: float = 1.0) -> Sample:
        index = self.range.find(sha)
        return Sample(sha, float(self.of(index is not None and self.worse[index] > 0, self.random)), bench)


@pytest.mark.parametrize("values", [(-2e200, -1e200), (0.0, 1e300), (0.0, 1e-300), (0.0, 1e-160), (0.75, 0.76)])
def test_numbers_of_any_size_that_never_vary_are_told_apart(values: tuple[float, float]) -> None:
    said, samples = Odd(23, lambda bad, random: values[bad]).search()
    assert isinstance(said.conclusion, Found)
    assert said.conclusion.sha == "23"
    assert len(samples) < 30


def test_one_run_in_fifteen_that_is_five_times_slower_names_no_innocent() -> None:
    def of(bad: bool, random: np.random.Generator) -> float:
        return (110 if bad else 100) * (1 + 0.02 * random.normal()) * (5 if random.random() < 1 / 15 else 1)

    said = [Odd(place, of, seed).search()[0].conclusion for seed, place in enumerate((3, 17, 23, 31, 38, 9))]
    named = [
        (one.sha, place) for one, place in zip(said, (3, 17, 23, 31, 38, 9), strict=True) if isinstance(one, Found)
    ]
    assert len(named) >= 5 and all(sha == str(place) for sha, place in named)


def test_coarse_numbers_name_no_innocent() -> None:
    def of(bad: bool, random: np.random.Generator) -> float:
        return 5 * round((106 if bad else 100) / 5 + 2 * random.normal() / 5)

    places = (3, 17, 23, 31, 38, 9)
    said = [Odd(place, of, seed).search()[0].conclusion for seed, place in enumerate(places)]
    named = [(one.sha, place) for one, place in zip(said, places, strict=True) if isinstance(one, Found)]
    assert len(named) >= 5 and all(sha == str(place) for sha, place in named)
