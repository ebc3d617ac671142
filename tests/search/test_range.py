"""A range: what it accepts, and that its ancestors are those that a plain walk finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.search import Range
from service.search import graph as graph_module
from service.search.graph import mass_below
from tests.search.histories import LONG, descendants, parent_lists, range_of

EXAMPLES = 1000 if LONG else 100


def walked(parents, start: int) -> set[int]:
    found, todo = set(), [start]
    while todo:
        index = todo.pop()
        if index not in found:
            found.add(index)
            todo += parents[index]
    return found


def test_two_roots_under_a_merge_are_no_line() -> None:
    assert not Range.of(["a", "b", "c"], {"c": ["a", "b"]}).is_line
    assert Range.of(["a", "b", "c"], {"b": ["a"], "c": ["b"]}).is_line
    assert Range.of(["a"]).is_line


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=60), st.data())
def test_ancestors_and_the_tested_commits_above_are_those_of_a_plain_walk(parents, data) -> None:
    range_ = range_of(parents)
    tested = data.draw(st.lists(st.integers(0, len(parents) - 1), max_size=5))
    above = range_.above(tested)
    for index in range(len(parents)):
        assert set(np.flatnonzero(range_.ancestors(index)).tolist()) == walked(parents, index)
        assert {bit for bit in range(len(tested)) if above[index] >> bit & 1} == {
            bit for bit, place in enumerate(tested) if place in descendants(parents, index)
        }


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=60), st.data())
def test_the_mass_below_a_commit_is_that_of_its_ancestors_and_close_to_it_when_sampled(parents, data) -> None:
    range_ = range_of(parents)
    weights = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=len(parents), max_size=len(parents))), dtype=float
    )
    exact = [sum(weights[ancestor] for ancestor in walked(parents, index)) for index in range(len(parents))]
    assert mass_below(range_, weights) == pytest.approx(exact)
    if weights.any():
        sampled = graph_module._sampled(range_, weights) * weights.sum()
        assert np.abs(sampled - exact).max() <= weights.sum() * len(parents) / graph_module.SAMPLES


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=40), st.data())
def test_a_range_cut_down_to_what_is_left_keeps_its_ancestors(parents, data) -> None:
    range_ = range_of(parents)
    good, bad = data.draw(st.integers(0, len(parents) - 1)), data.draw(st.integers(0, len(parents) - 1))
    keep = range_.ancestors(bad) & ~range_.ancestors(good)
    if keep.any():
        inner, indexes = range_.restrict(keep)
        for place, index in enumerate(indexes.tolist()):
            assert inner.shas[place] == range_.shas[index]
            assert (inner.ancestors(place) == range_.ancestors(index)[indexes]).all()


def test_first_parents_alone_can_be_kept() -> None:
    parents = {"b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"]}
    range_ = Range.of(["a", "b", "c", "d", "e"], parents, first_parent=True)
    assert range_.shas == ("a", "b", "d", "e")
    assert range_.is_line


@pytest.mark.parametrize(
    ("shas", "parents", "says"),
    [
        ([], {}, "at least one candidate"),
        (["a", "a"], {}, "comes twice"),
        (["b", "a"], {"b": ["a"]}, "comes after its child"),
        (["a", "b", "c"], {"c": ["b"]}, "does not reach"),
    ],
)
def test_a_wrong_range_is_refused_with_the_reason(shas, parents, says) -> None:
    with pytest.raises(ValueError, match=says):
        Range.of(shas, parents)


def test_a_good_end_within_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match="within the range: b"):
        Range.of(["a", "b"], goods=["b"])
