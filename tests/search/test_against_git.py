"""The same histories through real `git bisect run` and through ours."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.repository import Bisected, Repository
from service.search import Evidence, Found, Range, Suspects, conclusion, next_probes
from tests.search.histories import LONG, descendants, parent_lists

EXAMPLES = 400 if LONG else 12


def search(range_: Range, verdicts: dict[str, str]) -> Evidence:
    evidence = Evidence()
    while probes := next_probes(range_, evidence):
        assert len(probes) == 1
        assert probes[0] not in evidence.tallies
        evidence = evidence.plus(probes[0], verdicts[probes[0]])
    return evidence


def both(
    parents: list[list[int]], goods: set[int], truth: int, skips: set[int]
) -> tuple[Range, Bisected, Evidence, str]:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.build(Path(folder) / "repository", parents)
        shas = repository.shas
        bad = descendants(parents, truth)
        words = {shas[i]: "bad" if i in bad else "good" for i in range(len(shas))}
        words |= {shas[i]: "skip" for i in skips}
        statuses = {sha: {"good": 0, "bad": 1, "skip": 125}[word] for sha, word in words.items()}
        range_ = repository.range([shas[i] for i in goods], shas[-1])
        theirs = repository.bisect([shas[i] for i in sorted(goods)], shas[-1], statuses)
    return range_, theirs, search(range_, words), shas[truth]


Case = tuple[list[list[int]], set[int], int, set[int]]


@st.composite
def cases(draw: st.DrawFn, skipping: bool = False, merges: bool = True) -> Case:
    """Parents, goods, the first bad commit, skips. No good is a descendant of the first bad commit."""
    parents = draw(parent_lists(merges=merges))
    n = len(parents)
    truth = draw(st.integers(1, n - 1))
    innocent = sorted(set(range(n)) - descendants(parents, truth))
    goods = {0} | (set(draw(st.lists(st.sampled_from(innocent), max_size=3))) if merges else set())
    skips = set(draw(st.lists(st.integers(1, n - 1), max_size=n))) - goods - {n - 1} if skipping else set()
    return parents, goods, truth, skips


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(merges=False))
def test_on_a_line_the_answer_and_the_number_of_probes_are_those_of_git(case: Case) -> None:
    range_, theirs, ours, truth = both(*case)
    assert theirs.answers == {truth}
    assert conclusion(range_, ours) == Found(truth, 1.0)
    assert [seen.sha for seen in ours] == [seen.sha for seen in theirs.evidence]


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_on_a_history_with_merges_and_several_goods_the_answer_is_that_of_git(case: Case) -> None:
    range_, theirs, ours, truth = both(*case)
    assert theirs.answers == {truth}
    assert conclusion(range_, ours) == Found(truth, 1.0)


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(skipping=True))
def test_what_git_concludes_from_its_own_probes_with_skips_is_what_we_conclude(case: Case) -> None:
    range_, theirs, _, _ = both(*case)
    said = conclusion(range_, theirs.evidence)
    if theirs.certain:
        assert said == Found(next(iter(theirs.answers)), 1.0)
    else:
        assert isinstance(said, Suspects)
        assert set(said.shas) == theirs.answers


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(skipping=True, merges=False))
def test_on_a_line_with_skips_the_suspects_are_those_of_git(case: Case) -> None:
    range_, theirs, ours, truth = both(*case)
    said = conclusion(range_, ours)
    found = {said.sha} if isinstance(said, Found) else set(said.shas)
    assert truth in found
    assert found == theirs.answers


@settings(max_examples=30 if LONG else 2, deadline=None)
@given(parent_lists(most=20))
def test_with_merges_the_mean_number_of_probes_over_all_answers_is_at_most_one_above_git(parents) -> None:
    ours = theirs = 0
    for truth in range(1, len(parents)):
        _, git_run, our_run, _ = both(parents, {0}, truth, set())
        ours, theirs = ours + len(our_run), theirs + len(git_run.evidence)
    assert ours <= theirs + (len(parents) - 1)
