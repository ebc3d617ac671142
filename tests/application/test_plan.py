"""What a bisection does next, tried on plain data: commits are numbers, and a table says which of them fail."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.application.keys import Scope
from service.application.plan import Step, step
from service.domain.bisection import Bisection, Probe, Purpose, Reproduction, Request
from service.domain.evidence import Fault, Log, Outcome, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.recipe import Recipe, SandboxKind
from service.search import Range

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Truth = Callable[[str], Verdict]


def name(number: int) -> str:
    return f"{number:040x}"


def bisection_of(count: int, width: int = 1) -> tuple[Bisection, Range]:
    request = Request("r", ("v1",), "main", Reproduction("x"), Recipe("source"), SandboxKind.PROCESS, width)
    range_ = Range.of([name(number) for number in range(1, count + 1)])
    found = Bisection(
        "b1", BisectionState.CHECKING_ENDS, request, "me", NOW, NOW, (name(0),), name(count), count, count
    )
    return found, range_


def first_bad(number: int, skips: frozenset[int] = frozenset()) -> Truth:
    def truth(sha: str) -> Verdict:
        tried = int(sha, 16)
        return Verdict.SKIP if tried in skips else Verdict.BAD if tried >= number else Verdict.GOOD

    return truth


def judged(probe: Probe, verdict: Verdict) -> Probe:
    outcome = Outcome("script", exit_status=1, log=Log("logs/x", 10, False, (f"line of {probe.sha[-2:]}",)))
    return replace(probe, state=ProbeState.JUDGED, verdict=verdict, reason=f"was {verdict}", outcome=outcome)


def carry(found: Bisection, range_: Range, truth: Truth) -> tuple[Bisection, list[Probe]]:
    """Answers every probe at once, oldest first, until the bisection ends."""
    probes: list[Probe] = []
    for _ in range(1000):
        taken = step(found, probes, Scope(range_))
        live = [probe for probe in probes if probe.state is ProbeState.RUNNING]
        assert len(live) + len(taken.wanted) - len(taken.worthless) <= found.request.width
        cancelled = {probe.id for probe in taken.worthless}
        probes = [replace(p, state=ProbeState.CANCELLED) if p.id in cancelled else p for p in probes]
        for wanted in taken.wanted:
            number = len(probes) + 1
            probes.append(Probe(f"b1.{number}", "b1", number, wanted.sha, 1, wanted.purpose, ProbeState.RUNNING, NOW))
        found = replace(found, state=taken.state or found.state, answer=taken.answer or found.answer)
        found = replace(found, problem=taken.problem)
        if found.state not in (BisectionState.CHECKING_ENDS, BisectionState.SEARCHING, BisectionState.CONFIRMING):
            return found, probes
        running = [index for index, probe in enumerate(probes) if probe.state is ProbeState.RUNNING]
        if running:
            probes[running[0]] = judged(probes[running[0]], truth(probes[running[0]].sha))
    raise AssertionError("it never ends")


@given(st.data())
def test_the_first_bad_commit_is_found_wherever_it_is(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60))
    position = data.draw(st.integers(1, count))
    width = data.draw(st.integers(1, 4))
    found, probes = carry(*bisection_of(count, width), first_bad(position))
    assert found.state is BisectionState.FOUND
    assert found.answer is not None
    assert found.answer.shas == (name(position),)
    assert [probe.purpose for probe in probes[:2]] == [Purpose.BAD_END, Purpose.GOOD_END]


@given(st.data())
def test_skips_never_hide_the_truth(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    position = data.draw(st.integers(1, count))
    skips = data.draw(st.frozensets(st.integers(1, max(1, count - 1)))) - {count}
    found, _ = carry(*bisection_of(count, data.draw(st.integers(1, 3))), first_bad(position, skips))
    assert found.answer is not None
    assert name(position) in found.answer.shas
    if found.state is BisectionState.FOUND:
        assert found.answer.shas == (name(position),)
    else:
        assert found.state is BisectionState.SUSPECTS
        assert all(int(sha, 16) in skips for sha in found.answer.shas[:-1])


def ends(good: Verdict, bad: Verdict) -> Step:
    found, range_ = bisection_of(8)
    made = [
        Probe("b1.1", "b1", 1, name(8), 1, Purpose.BAD_END, ProbeState.RUNNING, NOW),
        Probe("b1.2", "b1", 2, name(0), 1, Purpose.GOOD_END, ProbeState.RUNNING, NOW),
    ]
    return step(found, [judged(made[0], bad), judged(made[1], good)], Scope(range_))


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        (Verdict.BAD, Verdict.BAD, "fails as well"),
        (Verdict.GOOD, Verdict.GOOD, "not seen at all"),
        (Verdict.BAD, Verdict.GOOD, "fails and the bad end"),
    ],
)
def test_ends_that_do_not_differ_are_refused_with_both_logs(good: Verdict, bad: Verdict, says: str) -> None:
    taken = ends(good, bad)
    assert taken.state is BisectionState.REFUSED
    assert taken.problem is not None
    assert says in taken.problem.detail
    assert "line of 00" in taken.problem.detail
    assert "line of 08" in taken.problem.detail


@pytest.mark.parametrize(("good", "bad"), [(Verdict.SKIP, Verdict.BAD), (Verdict.GOOD, Verdict.SKIP)])
def test_an_end_that_cannot_be_tested_is_refused(good: Verdict, bad: Verdict) -> None:
    taken = ends(good, bad)
    assert taken.state is BisectionState.REFUSED
    assert taken.problem is not None
    assert "cannot be judged" in taken.problem.detail


def test_an_end_that_only_met_faults_is_our_failure() -> None:
    found, range_ = bisection_of(8)
    bad = Probe("b1.1", "b1", 1, name(8), 1, Purpose.BAD_END, ProbeState.RUNNING, NOW)
    good = Probe("b1.2", "b1", 2, name(0), 1, Purpose.GOOD_END, ProbeState.FAULTED, NOW)
    good = replace(good, verdict=Verdict.SKIP, faults=(Fault("disk-full", "no space on n1", "free some"),) * 3)
    taken = step(found, [judged(bad, Verdict.BAD), good], Scope(range_))
    assert taken.state is BisectionState.FAILED
    assert taken.problem is not None
    assert (taken.problem.slug, taken.problem.advice) == ("fault-disk-full", "free some")


def test_nothing_is_planned_twice_while_an_answer_is_awaited() -> None:
    found, range_ = bisection_of(100)
    found = replace(found, state=BisectionState.SEARCHING)
    first = step(found, [], Scope(range_))
    assert len(first.wanted) == 1
    probe = Probe("b1.3", "b1", 3, first.wanted[0].sha, 1, Purpose.SEARCH, ProbeState.RUNNING, NOW)
    assert step(found, [probe], Scope(range_)).wanted == ()


def test_a_probe_that_an_answer_made_worthless_is_cancelled() -> None:
    found, range_ = bisection_of(100, width=2)
    found = replace(found, state=BisectionState.SEARCHING)
    wanted = step(found, [], Scope(range_)).wanted
    low, high = sorted(wanted, key=lambda one: one.sha)
    running = Probe("b1.3", "b1", 3, high.sha, 1, Purpose.SEARCH, ProbeState.RUNNING, NOW)
    answered = Probe("b1.4", "b1", 4, low.sha, 1, Purpose.SEARCH, ProbeState.RUNNING, NOW)
    taken = step(found, [running, judged(answered, Verdict.BAD)], Scope(range_))
    assert taken.worthless == (running,)
    assert len(taken.wanted) == 2


def chances(first_bad_at: int, false_bad: float, false_good: float, seed: int) -> Truth:
    """A failure that shows in a bad commit with 1 - `false_good`, and in a good one with `false_bad`."""
    draw = random.Random(seed)

    def truth(sha: str) -> Verdict:
        failing = 1.0 - false_good if int(sha, 16) >= first_bad_at else false_bad
        return Verdict.BAD if draw.random() < failing else Verdict.GOOD

    return truth


def flaky(count: int, width: int = 1) -> tuple[Bisection, Range]:
    found, range_ = bisection_of(count, width)
    return replace(found, request=replace(found.request, flaky=True)), range_


def test_a_flaky_failure_is_tried_until_the_answer_is_sure_enough() -> None:
    right = 0
    for seed in range(40):
        position = 1 + seed * 7 % 60
        found, probes = carry(*flaky(60, width=1 + seed % 2), chances(position, 0.05, 0.3, seed))
        assert found.answer is not None
        if found.state is BisectionState.FOUND:
            assert found.answer.confidence is not None
            assert found.answer.confidence >= 0.95
            right += found.answer.shas == (name(position),)
        else:
            right += name(position) in found.answer.shas
        assert len({probe.id for probe in probes}) == len(probes)
    assert right >= 36


def test_a_flaky_bad_end_that_passes_at_first_is_tried_again_and_a_healthy_one_is_refused() -> None:
    passes = iter([Verdict.GOOD, Verdict.GOOD, Verdict.BAD])
    healthy = first_bad(10)

    def truth(sha: str) -> Verdict:
        return next(passes, Verdict.BAD) if sha == name(20) else healthy(sha)

    found, probes = carry(*flaky(20), truth)
    assert found.answer is not None
    assert [probe.verdict for probe in probes if probe.purpose is Purpose.BAD_END] == ["good", "good", "bad"]
    refused, probes = carry(*flaky(20), lambda sha: Verdict.GOOD)
    assert refused.state is BisectionState.REFUSED
    assert len(probes) == 9


def test_a_failure_that_is_only_thought_to_be_flaky_costs_few_probes_more() -> None:
    _, plain = carry(*bisection_of(100), first_bad(42))
    found, probes = carry(*flaky(100), first_bad(42))
    assert found.answer is not None
    assert found.answer.shas == (name(42),)
    assert len(probes) <= len(plain) + 6
