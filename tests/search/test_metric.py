"""Verdicts from a metric: like the good end, like the bad end, or not to be told yet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.search.metric import MOST, compare_ends, judge

GOOD, BAD = [101.0, 99.0, 103.0, 98.0, 100.5], [81.0, 79.0, 80.5, 78.0, 82.0]


def test_ends_that_lie_apart_differ() -> None:
    assert compare_ends([*GOOD, 100.0], [*BAD, 80.0], "higher").verdict == "differ"


def test_ends_that_lie_apart_the_wrong_way_round_are_refused_in_the_end_and_both_samples_are_shown() -> None:
    said = compare_ends(BAD * 3, GOOD * 3, "higher")
    assert said.verdict == "alike"
    assert "101, 99" in said.why
    assert "81, 79" in said.why
    assert compare_ends([*BAD, 80.0], [*GOOD, 100.0], "lower").verdict == "differ"


def test_few_trials_at_the_ends_ask_for_more() -> None:
    assert compare_ends(GOOD[:2], BAD[:2], "higher").verdict == "unsure"


def test_one_run_of_a_commit_does_not_tell_and_two_do() -> None:
    assert judge([80.2], GOOD, BAD, "higher") == "unsure"
    assert judge([80.2, 79.3], GOOD, BAD, "higher") == "bad"
    assert judge([99.5, 102.0], GOOD, BAD, "higher") == "good"


def test_where_lower_is_better_the_verdicts_turn_round() -> None:
    assert judge([80.2, 79.3], BAD, GOOD, "lower") == "good"
    assert judge([99.5, 102.0], BAD, GOOD, "lower") == "bad"


def test_a_commit_unlike_both_ends_goes_by_the_ratio_to_the_middle_between_them() -> None:
    assert judge([85.0, 86.0, 85.5, 84.5, 86.5], GOOD, BAD, "higher") == "bad"
    assert judge([95.0, 94.0, 95.5, 94.5, 96.5], GOOD, BAD, "higher") == "good"
    assert judge([90.0, 86.0, 92.0, 94.0, 89.0], GOOD, BAD, "higher") == "unsure"


def test_ends_that_are_the_same_are_seldom_told_apart_however_often_they_are_looked_at() -> None:
    """Also where numbers are coarse, so that several runs in a row are alike by chance."""
    draw = np.random.default_rng(1)
    for values in ([9.0, 10.0], [9.0, 10.0, 11.0], [1.0, 2.0, 3.0, 4.0]):
        wrong = 0
        for _ in range(300):
            good, bad = draw.choice(values, MOST), draw.choice(values, MOST)
            looks = [(n, n) for n in range(1, MOST + 1)] + [(n, n + 1) for n in range(1, MOST)]
            wrong += any(compare_ends(good[:g], bad[:b], "higher").verdict == "differ" for g, b in looks)
        assert wrong <= 6, values


def test_a_metric_that_never_varies_tells_after_a_few_runs_of_the_ends_and_one_of_a_commit() -> None:
    assert compare_ends([0.9] * 4, [0.1] * 4, "higher").verdict == "unsure"
    assert compare_ends([0.9] * 5, [0.1] * 5, "higher").verdict == "differ"
    assert judge([0.1], [0.9, 0.9], [0.1, 0.1], "higher") == "bad"
    assert judge([0.9], [0.9, 0.9], [0.1, 0.1], "higher") == "good"
    assert judge([0.8], [0.9, 0.9], [0.1, 0.1], "higher") == "good"


def test_without_a_sample_nothing_is_said() -> None:
    assert judge([], GOOD, BAD, "higher") == "unsure"


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no finite number"):
        judge([float("nan")], GOOD, BAD, "higher")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1, 1000), min_size=1, max_size=MOST), st.floats(0.01, 100))
def test_units_do_not_matter(samples, unit) -> None:
    scaled = [[value * unit for value in values] for values in (samples, GOOD, BAD)]
    assert judge(*scaled, "higher") == judge(samples, GOOD, BAD, "higher")


def test_a_commit_of_the_good_end_is_rarely_judged_bad_and_the_ends_alike_rarely_said_to_differ() -> None:
    random = np.random.default_rng(7)
    wrong = differ = 0
    for _ in range(400):
        good, same = random.normal(100, 5, 6).tolist(), random.normal(100, 5, 6).tolist()
        bad = random.normal(80, 5, 6).tolist()
        wrong += judge(same[:4], good, bad, "higher") == "bad"
        differ += compare_ends(good, same, "higher").verdict == "differ"
    assert wrong <= 20
    assert differ <= 10
