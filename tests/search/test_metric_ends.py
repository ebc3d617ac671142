"""Whether the two ends of a range differ in a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.search.metric import Ends, Question, Sample, compare_ends

LOWER, HIGHER = Question("lower"), Question("higher")


def compared(good: Sequence[float], bad: Sequence[float], question: Question = LOWER, **given: int) -> Ends:
    sides = [[Sample(name, float(value)) for value in values] for name, values in (("good", good), ("bad", bad))]
    return compare_ends(sides[0], sides[1], question, **given)


def until(draw, shift: float, seed: int, question: Question = LOWER) -> tuple[Ends, int]:
    """Looked at after every pair of runs."""
    random = np.random.default_rng(seed)
    good, bad = draw(random, question.runs), draw(random, question.runs) + shift
    for runs in range(1, question.runs + 1):
        said = compared(good[:runs], bad[:runs], question)
        if said.verdict != "unsure":
            break
    return said, runs


def test_ends_that_lie_apart_differ_and_the_effect_is_a_share_of_the_good_end() -> None:
    said = compared([100, 101, 99, 100.5], [110, 111, 109, 110.5], commits=256)
    assert said.verdict == "differ"
    assert said.relative
    assert said.effect is not None
    assert said.effect.low < 0.1 < said.effect.high
    assert said.effect.estimate == pytest.approx(0.1, abs=0.005)
    assert said.noise == pytest.approx(0.0086, abs=0.002)
    assert said.detectable is not None
    assert said.detectable < 0.1
    assert said.expected is not None
    assert 8 < said.expected < 40


def test_where_higher_is_better_a_loss_is_a_share_of_the_good_end_too() -> None:
    said = compared([100, 101, 99, 100], [80, 81, 79, 80], HIGHER)
    assert said.verdict == "differ"
    assert said.effect is not None
    assert said.effect.estimate == pytest.approx(0.2, abs=0.01)


def test_three_runs_of_each_never_suffice_and_four_that_never_vary_do() -> None:
    assert compared([1.0] * 3, [2.0] * 3).verdict == "unsure"
    assert compared([1.0] * 4, [2.0] * 4).verdict == "differ"
    assert compared([0.9] * 4, [0.8] * 4, HIGHER).verdict == "differ"


def test_the_wrong_way_round_is_told_and_what_may_have_been_meant() -> None:
    said = compared([110, 111, 109, 110, 112, 110], [100, 101, 99, 100, 98, 100])
    assert said.verdict == "reversed"
    assert "better: higher meant" in said.why


def test_ends_alike_are_refused_when_the_budget_is_used_up_and_both_are_shown() -> None:
    values = [100.0, 101.0, 99.0, 100.5, 99.5]
    said = compared(values, values[::-1], replace(LOWER, runs=5))
    assert said.verdict == "alike"
    assert "good end 100, 101, 99, 100.5, 99.5" in said.why
    assert compared(values, values[::-1], replace(LOWER, runs=6)).verdict == "unsure"


def test_many_numbers_are_told_by_their_quartiles() -> None:
    values = list(np.linspace(90, 110, 30))
    assert "100 (median of 30 runs, half of them from 95 to 105)" in compared(values, values).why


def test_less_than_the_threshold_is_refused_as_small_and_more_is_not() -> None:
    good, bad = [100, 100.5, 99.5, 100, 100.2, 99.8], [102, 102.5, 101.5, 102, 102.2, 101.8]
    assert compared(good, bad, replace(LOWER, threshold=0.05)).verdict == "small"
    assert compared(good, bad, replace(LOWER, threshold=0.01)).verdict == "differ"
    assert compared(good, bad, replace(LOWER, threshold=5, relative=False)).verdict == "small"
    assert compared(good, bad, replace(LOWER, threshold=1, relative=False)).verdict == "differ"


def test_a_bad_end_that_only_varies_more_differs_in_its_spread_and_one_that_varies_less_does_not() -> None:
    random = np.random.default_rng(3)
    tight, wide = random.normal(100, 1, 30), random.normal(100, 4, 30)
    assert (compared(tight, wide).verdict, compared(tight, wide).shape) == ("differ", "spread")
    assert compared(wide, tight).verdict == "alike"


@pytest.mark.parametrize("values", [[0.0, 0.0, 1.0, 0.0], [-3.0, -2.0, -3.5, -1.0], [0.0] * 4])
def test_zero_and_negative_numbers_are_compared_in_the_unit(values: list[float]) -> None:
    said = compared(values, [value + 50 for value in values])
    assert said.verdict == "differ"
    assert not said.relative
    assert said.effect is not None
    assert said.effect.estimate == pytest.approx(50)


def test_numbers_that_are_all_zero_are_alike() -> None:
    assert compared([0.0] * 4, [0.0] * 4, replace(LOWER, runs=4)).verdict == "alike"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no finite number"):
        compared([value, 1, 1, 1], [2, 2, 2, 2])


def test_one_run_far_off_does_not_hide_the_difference() -> None:
    good, bad = [100, 101, 99, 100, 100.5, 99.5, 100, 101], [110, 111, 109, 110, 110.5, 109.5, 111, 110]
    assert compared([*good, 1000.0], [*bad, 110]).verdict == "differ"


NOISES = {
    "normal": lambda random, n: random.normal(100, 2, n),
    "heavy": lambda random, n: 100 + random.standard_t(3, n),
    "bimodal": lambda random, n: 100 + 5.0 * (random.random(n) < 1 / 3) + random.normal(0, 0.5, n),
    "coin": lambda random, n: 9.0 + random.integers(0, 2, n),
    "coarse": lambda random, n: 10.0 + random.integers(0, 3, n),
    "skewed": lambda random, n: 10 * np.exp(random.normal(0, 1, n)),
}


@pytest.mark.parametrize("kind", NOISES)
def test_ends_that_are_the_same_are_seldom_told_apart_however_often_they_are_looked_at(kind: str) -> None:
    question = replace(LOWER, runs=12)
    wrong = sum(until(NOISES[kind], 0.0, seed, question)[0].verdict == "differ" for seed in range(80))
    assert wrong <= 5


def test_a_step_as_large_as_the_noise_is_seen_within_the_usual_budget() -> None:
    told = [until(NOISES["normal"], 2.0, seed) for seed in range(40)]
    assert sum(said.verdict == "differ" for said, _ in told) >= 36
    assert np.mean([runs for _, runs in told]) < 22


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(1, 1000), min_size=4, max_size=10),
    st.lists(st.floats(1, 1000), min_size=4, max_size=10),
    st.floats(0.01, 100),
    st.randoms(),
)
def test_neither_the_unit_nor_the_order_of_runs_matters(good, bad, unit, random) -> None:
    said = compared(good, bad)
    shuffled = [[value * unit for value in random.sample(side, len(side))] for side in (good, bad)]
    other = compared(*shuffled)
    assert other.verdict == said.verdict
    assert other.effect is not None
    assert said.effect is not None
    assert other.effect.estimate == pytest.approx(said.effect.estimate, abs=1e-6)


@pytest.mark.parametrize("value", [0.75, 0.1, 42.0, 1234.5, -3.3, 0.0])
@pytest.mark.parametrize("question", [LOWER, HIGHER])
def test_ends_that_print_the_very_same_number_are_alike_however_often_they_are_run(
    value: float, question: Question
) -> None:
    for runs in range(4, 31):
        for fewer in (runs, runs - 1):
            assert compared([value] * runs, [value] * fewer, question).verdict in ("unsure", "alike")
    assert compared([value] * 30, [value] * 30, question).verdict == "alike"
    nearly = value * (1 + 1e-15)
    assert compared([value] * 15, [nearly] * 15).verdict == "unsure"
