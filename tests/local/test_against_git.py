"""The same histories through real `git bisect run` and through `firstbad run`."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.repository import Bisected, Repository
from service.domain.bisection import Purpose
from service.domain.evidence import Outcome, Verdict
from service.local.asked import Judged, Seen, Want
from service.local.running import Wish, prepared
from service.local.step import Task, step
from service.search import Found, Suspects
from tests.local.conftest import Checkout, answer, tried
from tests.local.terminal import Terminal
from tests.search.histories import LONG, descendants, parent_lists

EXAMPLES = 300 if LONG else 15


def carried_out(task: Task, words: dict[str, str], order: Random) -> tuple[Found | Suspects, list[Judged]]:
    """As the loop does it; those in flight end in any order."""
    judged: list[Judged] = []
    flying: list[Want] = []
    while True:
        at = step(task, judged, flying)
        if at.over is not None:
            assert isinstance(at.over, (Found, Suspects)), at.over
            return at.over, judged
        flying = [want for want in flying if want.sha not in at.worthless]
        flying += at.wanted
        assert 0 < len(flying) <= task.width
        want = flying.pop(order.randrange(len(flying)))
        seen = Seen(len(judged) + 1, want.sha, want.purpose, Outcome("script"), datetime.now(UTC), 0.0)
        judged.append(Judged(seen, Verdict(words[want.sha]), ""))


Case = tuple[list[list[int]], set[int], int, set[int]]


@st.composite
def cases(draw: st.DrawFn, skipping: bool = False) -> Case:
    """Parents, goods, the first bad commit, skips."""
    parents = draw(parent_lists(most=24))
    n = len(parents)
    truth = draw(st.integers(1, n - 1))
    innocent = sorted(set(range(n)) - descendants(parents, truth))
    goods = {0} | set(draw(st.lists(st.sampled_from(innocent), max_size=2)))
    skips = set(draw(st.lists(st.integers(1, n - 1), max_size=6))) - goods - {n - 1} if skipping else set()
    return parents, goods, truth, skips


def both(case: Case, width: int, order: Random) -> tuple[Bisected, Found | Suspects, list[Judged], str]:
    parents, goods, truth, skips = case
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.build(Path(folder) / "repository", parents)
        shas = repository.shas
        bad = descendants(parents, truth)
        words = {sha: "bad" if i in bad else "good" for i, sha in enumerate(shas)}
        words |= {shas[i]: "skip" for i in skips}
        statuses = {sha: {"good": 0, "bad": 1, "skip": 125}[word] for sha, word in words.items()}
        wish = Wish(("true",), tuple(shas[i] for i in sorted(goods)), (shas[-1],), width=width)
        task = prepared(wish, repository.path).task
        words |= dict.fromkeys(task.bases, "good")
        over, judged = carried_out(task, words, order)
        theirs = repository.bisect([shas[i] for i in sorted(goods)], shas[-1], statuses)
    return theirs, over, judged, shas[truth]


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_one_at_a_time_the_answer_and_every_single_probe_are_those_of_git(case: Case) -> None:
    """But for the ends, which git takes on trust."""
    theirs, over, judged, truth = both(case, 1, Random(0))
    assert isinstance(over, Found) and {over.sha} == theirs.answers == {truth}
    searched = [one.seen.sha for one in judged if one.seen.purpose is Purpose.SEARCH]
    ends = {one.seen.sha for one in judged if one.seen.purpose is not Purpose.SEARCH}
    assert searched == [seen.sha for seen in theirs.evidence if seen.sha not in ends]


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(), st.integers(2, 6), st.randoms(use_true_random=False))
def test_several_at_once_find_the_same(case: Case, width: int, order: Random) -> None:
    _, over, judged, truth = both(case, width, order)
    assert isinstance(over, Found) and over.sha == truth
    assert "bad" in [one.verdict for one in judged if one.seen.sha == truth], "nobody has seen it fail"


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases(skipping=True), st.integers(1, 4), st.randoms(use_true_random=False))
def test_with_skips_the_truth_is_found_or_among_the_suspects(case: Case, width: int, order: Random) -> None:
    _, over, _, truth = both(case, width, order)
    assert truth in ((over.sha,) if isinstance(over, Found) else over.shas)


def test_the_whole_command_tries_what_git_tries(tmp_path: Path, terminal: Terminal) -> None:
    parents = [[], [0], [1], [1], [3], [2, 4], [5], [6], [5], [8, 7]]
    repository = Repository.build(tmp_path / "project", parents)
    checkout = Checkout(repository.path, repository.shas, terminal)
    for truth in (2, 4, 7):
        bad = descendants(parents, truth)
        statuses = {sha: int(i in bad) for i, sha in enumerate(repository.shas)}
        theirs = repository.bisect([repository.shas[0]], repository.shas[-1], statuses)
        listed = " ".join(repository.shas[i] for i in sorted(bad))
        script = f'case " {listed} " in *" $FIRSTBAD_SHA "*) exit 1;; esac'
        told = checkout.found("--good", repository.shas[0], "--", "sh", "-c", script)
        assert answer(told) == [*theirs.answers] == [repository.shas[truth]]
        assert tried(told)[2:] == [seen.sha for seen in theirs.evidence]
