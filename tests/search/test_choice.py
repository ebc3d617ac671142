"""What is probed next: priors, costs, several workers, skips, large ranges, and what is likely wanted later."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import service.search
from benchmarks.search.histories import line, merged
from benchmarks.search.histories import range_of as named
from benchmarks.search.simulate import deterministic
from service.search import UNKNOWN, Evidence, Found, Range, conclusion, likely_next, next_probes, redundant
from service.search.choice import midpoint
from service.search.graph import DENSE
from service.search.worst import plain_depth
from tests.search.histories import LONG, parent_lists, range_of

EXAMPLES = 500 if LONG else 60
PURE = {"numpy", "scipy", "service", "__future__", "collections", "dataclasses", "functools", "math", "re", "typing"}


def test_the_search_imports_nothing_but_numpy_scipy_and_what_is_pure() -> None:
    for path in Path(service.search.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= PURE, path.name
            assert all(name.startswith("service.search") for name in names if name.startswith("service"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(1, 70), st.data())
def test_a_prior_that_misleads_costs_at_most_one_probe_more_than_plain_bisection_on_a_line(n, data) -> None:
    range_ = line(n)
    prior = dict(zip(range_.shas, data.draw(st.lists(st.floats(0, 1e6), min_size=n, max_size=n)), strict=True))
    done = [deterministic(range_, truth, prior=prior) for truth in range(n)]
    assert [one.found for one in done] == list(range_.shas)
    assert max(one.probes for one in done) <= (n - 1).bit_length() + 1


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=40), st.data())
def test_with_merges_a_prior_finds_the_same_commit_and_stays_close_to_the_worst_of_plain_bisection(
    parents, data
) -> None:
    range_ = range_of(parents)
    n = len(parents)
    prior = dict(zip(range_.shas, data.draw(st.lists(st.floats(0, 1e6), min_size=n, max_size=n)), strict=True))
    plain = max(deterministic(range_, truth).probes for truth in range(n))
    done = [deterministic(range_, truth, prior=prior) for truth in range(n)]
    assert [one.found for one in done] == list(range_.shas)
    assert max(one.probes for one in done) <= max(plain, plain_depth(range_)) + 2


def test_a_prior_that_is_right_saves_probes() -> None:
    range_ = line(249)
    prior = {range_.shas[100]: 50.0, range_.shas[30]: 1.0}
    assert deterministic(range_, 100, prior=prior).probes <= 3


def test_a_prior_of_zero_excludes_nothing() -> None:
    range_ = line(16)
    prior = dict.fromkeys(range_.shas[:8], 0.0) | {range_.shas[12]: 1.0}
    assert deterministic(range_, 3, prior=prior).found == range_.shas[3]


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_prior_that_is_no_weight_is_refused(weight) -> None:
    with pytest.raises(ValueError, match="prior"):
        next_probes(line(4), Evidence(), {"000001": weight})


@pytest.mark.parametrize("width", [2, 3, 4, 8])
def test_several_workers_cut_a_line_into_one_part_more_than_there_are_workers(width) -> None:
    range_ = line(249)
    shares = sorted(int(sha) + 1 for sha in next_probes(range_, Evidence(), width=width))
    sizes = np.diff([0, *shares, 249])
    assert len(sizes) == width + 1
    assert max(sizes) <= math.ceil(249 / (width + 1)) + 1
    rounds = [deterministic(range_, truth, width).elapsed for truth in range(0, 249, 16)]
    assert max(rounds) <= math.ceil(math.log(249, width + 1)) + (width == 2)


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=40), st.integers(2, 6), st.data())
def test_more_workers_than_questions_start_no_probe_that_tells_nothing(parents, width, data) -> None:
    range_ = range_of(parents)
    chosen = next_probes(range_, Evidence(), width=width)
    assert len(set(chosen)) == len(chosen) <= width
    assert redundant(range_, Evidence(), chosen) == ()
    assert len(chosen) <= len(parents) - 1


def test_what_is_in_flight_is_counted_and_not_asked_again() -> None:
    range_ = line(100)
    first = next_probes(range_, Evidence(), width=1)
    more = next_probes(range_, Evidence(), in_flight=first, width=2)
    assert len(more) == 1
    assert not set(more) & set(first)
    assert next_probes(range_, Evidence(), in_flight=first, width=1) == ()


def test_among_equals_a_commit_that_is_built_is_probed_and_a_cheap_one_nearby_is_worth_a_detour() -> None:
    range_ = line(200)
    built = {range_.shas[95]: 60.0}
    slow = dict.fromkeys(range_.shas, 1800.0) | built
    assert next_probes(range_, Evidence(), cost=slow) == (range_.shas[95],)
    assert next_probes(range_, Evidence(), cost=dict.fromkeys(range_.shas, 60.0)) == (range_.shas[99],)


def test_a_cheap_commit_that_tells_nothing_is_not_probed() -> None:
    range_ = line(200)
    evidence = Evidence.of([(range_.shas[50], "good")])
    cost = dict.fromkeys(range_.shas, 1800.0) | {range_.shas[50]: 0.0, range_.shas[10]: 0.0, range_.shas[199]: 0.0}
    assert next_probes(range_, evidence, cost=cost)[0] not in {range_.shas[place] for place in (10, 50, 199)}


def test_after_a_skip_the_next_probe_steps_away_and_further_after_more_skips() -> None:
    range_ = line(200)
    one = Evidence.of([(range_.shas[99], "skip")])
    (first,) = next_probes(range_, one)
    assert 5 <= abs(int(first) - 99) <= 60
    many = Evidence.of([(range_.shas[place], "skip") for place in (96, 99, 102, 105)])
    (then,) = next_probes(range_, many)
    assert min(abs(int(then) - place) for place in (96, 105)) > 5


def test_a_long_stretch_that_cannot_be_built_costs_few_probes() -> None:
    range_ = line(250)
    stretch = set(range_.shas[100:150])
    for truth in range(0, 250, 10):
        evidence = Evidence()
        while probes := next_probes(range_, evidence):
            word = "skip" if probes[0] in stretch else "bad" if int(probes[0]) >= truth else "good"
            evidence = evidence.plus(probes[0], word)
        skips = sum(seen.verdict == "skip" for seen in evidence)
        outside = truth < 100 or truth > 150
        if outside:
            assert conclusion(range_, evidence) == Found(range_.shas[truth], 1.0)
            assert skips <= 8
        assert len(evidence) - skips <= 14


@pytest.mark.parametrize("flaky", [False, True])
def test_a_large_history_with_merges_is_searched_by_a_shortlist_to_the_same_end(flaky) -> None:
    range_ = named(merged(4 * DENSE, 0.1, np.random.default_rng(3)))
    for truth in range(7, len(range_), len(range_) // 5):
        evidence = Evidence()
        while probes := next_probes(range_, evidence, noise=UNKNOWN if flaky else None):
            index = range_.find(probes[0])
            bad = index is not None and range_.ancestors(index)[truth]
            evidence = evidence.plus(probes[0], "bad" if bad else "good")
        said = conclusion(range_, evidence, noise=UNKNOWN if flaky else None)
        assert isinstance(said, Found)
        assert said.sha == range_.shas[truth]
        assert len(evidence) <= (24 if flaky else 13)


def test_on_a_large_history_the_first_probe_of_a_prior_without_misleading_is_near_it() -> None:
    range_ = line(5000)
    assert deterministic(range_, 3210, prior={range_.shas[3210]: 1.0}).probes <= 4


def test_the_next_commits_are_named_with_the_chance_that_they_are_wanted() -> None:
    range_ = line(64)
    flying = next_probes(range_, Evidence())
    ahead = dict(likely_next(range_, Evidence(), in_flight=flying, n=6))
    assert not set(ahead) & set(flying)
    assert sorted(ahead.values(), reverse=True)[:2] == pytest.approx([0.5, 0.5])
    for word in ("good", "bad"):
        after = Evidence.of([(flying[0], word)])
        assert next_probes(range_, after)[0] in ahead


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(parent_lists(most=30), st.integers(1, 3), st.booleans())
def test_chances_of_being_wanted_are_probabilities_in_falling_order(parents, width, flaky) -> None:
    range_ = range_of(parents)
    noise = UNKNOWN if flaky else None
    flying = next_probes(range_, Evidence(), width=width, noise=noise)
    ahead = likely_next(range_, Evidence(), in_flight=flying, n=5, width=width, noise=noise)
    chances = [chance for _, chance in ahead]
    assert chances == sorted(chances, reverse=True)
    assert all(0 < chance <= 1 for chance in chances)
    assert len(ahead) <= 5


def test_nothing_is_ahead_when_one_candidate_is_left() -> None:
    assert likely_next(Range.of(["a"]), Evidence()) == ()


@pytest.mark.parametrize(
    ("n", "half"), [(2, 1), (3, 2), (4, 2), (5, 2), (6, 3), (249, 124), (2048, 1024), (10_000, 4996)]
)
def test_the_midpoint_is_the_one_that_git_takes(n, half) -> None:
    assert midpoint(n) == half
