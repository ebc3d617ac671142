"""Verdicts are derived from outcomes whenever more is known, without a run; a number is judged by all runs together."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from service.application.verdicts import judged, wanted_of
from service.domain.evidence import Frame, Outcome, Sign, Signature, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.metric import Better, Measurement, Metric
from tests.application.conftest import World

GOOD = Outcome("script", exit_status=0)
GRAPHS = Signature("python exception", "AssertionError", "decode batches only", (Frame("p/graphs.py", "capture"),))
SHAPES = Signature("python exception", "KeyError", "no such block table", (Frame("p/cache.py", "allocate"),))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def measured(value: float) -> Outcome:
    return replace(GOOD, measurements=(Measurement("x", value),))


def failed(signature: Signature | None) -> Outcome:
    return Outcome("script", exit_status=1, signature=signature)


def test_a_failure_that_came_before_the_bad_end_s_was_known_is_judged_again(world: World) -> None:
    id = world.submit(width=2).id
    world.workers.prepare(world.flow)
    bad, good = world.workers.probes
    world.workers.probes[:] = [good, bad]
    world.workers.observe(world.flow, failed(SHAPES))
    assert {probe.sha: probe.verdict for probe in world.flow.probes(id)}[world.shas[0]] is Verdict.BAD
    world.workers.observe(world.flow, failed(GRAPHS))
    assert {probe.sha: probe.verdict for probe in world.flow.probes(id)}[world.shas[0]] is Verdict.SKIP
    changed = [event for event in world.flow.events(id) if event.kind == "judged again"]
    assert [(event.data["was"], event.data["verdict"]) for event in changed] == [("bad", "skip")]
    found = world.flow.bisection(id)
    assert found.state is BisectionState.REFUSED
    assert found.problem is not None and "another failure" in found.problem.detail


def test_another_failure_in_the_range_is_no_evidence(world: World) -> None:
    """A second fault lies across the range from commit 4 to 9; the failure looked for came with commit 13."""
    order = {sha: number for number, sha in enumerate(world.shas)}
    id = world.submit().id
    world.workers.prepare(world.flow)
    while world.workers.probes:
        number = order[world.workers.probes[0].source.sha]
        outcome = failed(GRAPHS) if number >= 13 else failed(SHAPES) if 4 <= number < 10 else GOOD
        world.workers.observe(world.flow, outcome)
    found = world.flow.bisection(id)
    assert found.answer is not None and found.answer.shas == (world.shas[13],)


def test_an_answer_that_the_verdicts_bear_is_left_as_it_is(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.judge_again(id) == ()
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_an_answer_is_taken_back_when_a_verdict_that_it_stands_on_changes(world: World) -> None:
    """As after an upgrade whose rules read an outcome otherwise: here what is kept is changed instead of the rule."""
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    proof = next(probe for probe in world.flow.probes(id) if probe.sha == world.shas[13])
    assert proof.outcome is not None
    with world.flow.ports.bisections.transaction() as tx:
        tx.save_probe(replace(proof, outcome=replace(proof.outcome, exit_status=125)))
    assert [probe.id for probe in world.flow.judge_again(id)] == [proof.id]
    reopened = world.flow.bisection(id)
    assert reopened.state in (BisectionState.SEARCHING, BisectionState.SUSPECTS), reopened.problem
    assert reopened.answer is None or set(reopened.answer.shas) > {world.shas[13]}


def test_a_probe_that_was_given_up_is_judged_by_its_last_outcome_once_the_rule_is_another(world: World) -> None:
    """As after an upgrade that takes a sign for nothing any more: here it is taken off what is kept."""
    id = world.submit().id
    world.workers.prepare(world.flow)
    world.workers.observe(world.flow, failed(None))
    world.workers.observe(world.flow, GOOD)
    full = replace(failed(None), signs=(Sign("disk-full", "No space left on device", root=True),))
    for _ in range(3):
        world.workers.observe(world.flow, full)
        world.wait_for_retry()
    given_up = next(probe for probe in world.flow.probes(id) if probe.faults)
    assert (given_up.state, given_up.verdict, len(given_up.faults)) == (ProbeState.FAULTED, Verdict.SKIP, 3)
    assert world.flow.judge_again(id) == ()
    last = replace(given_up.faults[-1], outcome=replace(full, signs=()))
    with world.flow.ports.bisections.transaction() as tx:
        tx.save_probe(replace(given_up, faults=(*given_up.faults[:-1], last)))
    assert [(probe.id, probe.verdict) for probe in world.flow.judge_again(id)] == [(given_up.id, Verdict.BAD)]


def test_a_commit_whose_number_is_not_asked_for_any_more_is_left_alone(world: World) -> None:
    """Commit 6 was measured once when 13 turned out good: no sweep has it run again."""
    order = {sha: number for number, sha in enumerate(world.shas)}
    id = world.submit(width=2).id
    with world.flow.ports.bisections.transaction() as tx:
        found = tx.bisection(id)
        tx.save_bisection(replace(found, request=replace(found.request, metric=Metric(Better.HIGHER, "x"))))
    world.workers.prepare(world.flow)
    while world.flow.bisection(id).state is BisectionState.CHECKING_ENDS:
        value = 100.0 - 10.0 * (order[world.workers.probes[0].source.sha] >= 17)
        world.workers.observe(world.flow, measured(value))
    before = len(world.flow.probes(id))
    for _ in range(4):
        world.flow.sweep()
    assert len(world.flow.probes(id)) == before
    while world.workers.probes:
        value = 100.0 - 10.0 * (order[world.workers.probes[0].source.sha] >= 17)
        world.workers.observe(world.flow, measured(value))
        count = len(world.flow.probes(id))
        world.flow.sweep()
        assert len(world.flow.probes(id)) == count
    assert world.flow.bisection(id).answer is not None


def test_a_refusal_is_taken_back_when_no_run_shows_its_reason_any_more(world: World) -> None:
    id = world.submit().id
    world.workers.prepare(world.flow)
    gated = replace(failed(None), signs=(Sign("model-gated", "401: gated", root=True),))
    world.workers.observe(world.flow, gated)
    assert world.flow.bisection(id).state is BisectionState.REFUSED
    assert world.flow.judge_again(id) == ()
    assert world.flow.bisection(id).state is BisectionState.REFUSED
    (probe,) = (probe for probe in world.flow.probes(id) if probe.outcome)
    with world.flow.ports.bisections.transaction() as tx:
        tx.save_probe(replace(probe, outcome=replace(gated, signs=())))
    world.flow.judge_again(id)
    assert world.flow.bisection(id).state is BisectionState.CHECKING_ENDS
    assert world.flow.bisection(id).problem is None


def test_an_end_that_cannot_be_tested_any_more_is_not_passed_over(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13))
    good = next(probe for probe in world.flow.probes(id) if probe.sha == world.shas[0])
    assert good.outcome is not None
    with world.flow.ports.bisections.transaction() as tx:
        tx.save_probe(replace(good, outcome=replace(good.outcome, exit_status=125)))
    world.flow.judge_again(id)
    assert world.flow.bisection(id).state is BisectionState.REFUSED


def test_a_crash_beside_a_commit_s_numbers_is_run_again(world: World) -> None:
    order = {sha: number for number, sha in enumerate(world.shas)}
    id = world.submit().id
    with world.flow.ports.bisections.transaction() as tx:
        found = tx.bisection(id)
        tx.save_bisection(replace(found, request=replace(found.request, metric=Metric(Better.HIGHER, "x"))))
    world.workers.prepare(world.flow)
    draw, runs, crashes = np.random.default_rng(7), Counter[str](), Counter[str]()
    while world.workers.probes:
        sha = world.workers.probes[0].source.sha
        value = float(draw.normal(100.0 - 2.0 * (order[sha] >= 13), 1.0))
        crashed = runs[sha] > 0 and crashes[sha] < 2
        (crashes if crashed else runs)[sha] += 1
        world.workers.observe(world.flow, failed(None) if crashed else measured(value))
        assert len(world.workers.seen) < 200
    assert sum(crashes[sha] > 0 for sha in world.shas[1:-1]) > 0, "no commit was measured twice"
    found = world.flow.bisection(id)
    assert found.answer is not None and found.answer.shas == (world.shas[13],)


def test_deriving_twice_changes_nothing(world: World) -> None:
    id = world.submit().id
    world.workers.work(world.flow, world.truth(13, at_12=125))
    probes, found = world.flow.probes(id), world.flow.bisection(id)
    assert {one.probe.id: one.verdict for one in judged(found, probes)} == {p.id: p.verdict for p in probes}
    wanted = wanted_of(found, probes)
    assert wanted is not None and wanted.stage == "script"
