"""From what the flow returns to what the API answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.domain.bisection import Bisection, Build, Commit, Event, Node, Probe, Request
from service.domain.bisection import Problem as Refused
from service.domain.lifecycle import LIVE_BISECTIONS
from service.domain.recipe import Recipe
from service.doors import paths
from service.doors.api import views
from service.doors.hiding import without_password

if TYPE_CHECKING:
    from service.application.curve import Curve
    from service.application.report import Report


def bisection(found: Bisection) -> views.BisectionView:
    return views.BisectionView(**_bisection_fields(found))


def report(made: Report) -> views.ReportView:
    found = made.bisection
    return views.ReportView(
        **_bisection_fields(found),
        headline=made.headline,
        explanation=made.explanation,
        ends=views.Ends(good=_commits(made.good), bad=_commit(made.bad) if made.bad else None),
        answer=_answer(made),
        evidence=tuple(views.ProofView(commit=_commit(p.commit), probe=probe(p.probe)) for p in made.evidence),
        probes_done=made.probes_done,
        probes_running=tuple(probe(running) for running in made.probes_running),
        wheels=views.WheelsView.model_validate(made.wheels),
        drift=tuple(views.DriftView.model_validate(one) for one in made.drift),
        probes_waiting=made.waiting,
        probes_sent=made.sent,
        spent=views.SpentView.model_validate(made.spent),
        budget=views.BudgetView.model_validate(found.budget),
        overrides=tuple(views.OverrideView.model_validate(said) for said in found.overrides),
        request=request(found.request),
    )


def probe(found: Probe) -> views.ProbeView:
    return views.ProbeView(
        id=found.id,
        bisection=found.bisection_id,
        number=found.number,
        sha=found.sha,
        trial=found.trial,
        purpose=found.purpose,
        state=found.state,
        verdict=found.verdict,
        reason=found.reason,
        attempt=found.attempt,
        build=found.build_key,
        node=found.node,
        target=found.target,
        own_day=found.own_day,
        planned_at=found.planned_at,
        queued_at=found.queued_at,
        sent_at=found.sent_at,
        due_at=found.due_at,
        started_at=found.started_at,
        finished_at=found.finished_at,
        outcome=views.OutcomeView.model_validate(found.outcome) if found.outcome else None,
        faults=tuple(views.FaultView.model_validate(fault) for fault in found.faults),
        queue=found.queue,
        gpu_leased_s=found.gpu_leased_s,
        gpu_used_s=found.gpu_used_s,
        log_removed_at=found.log_removed_at,
        links=_probe_links(found),
    )


def build(found: Build) -> views.BuildView:
    return views.BuildView(
        key=found.key,
        state=found.state,
        sha=found.sha,
        origin=found.origin,
        native_key=found.native_key,
        base_key=found.base_key,
        seconds=found.seconds,
        node=found.node,
        wheel=found.wheel_name,
        wheel_bytes=found.wheel_bytes,
        ahead=found.ahead,
        log_removed_at=found.log_removed_at,
        notes=found.notes,
    )


def curve(found: Curve) -> views.CurveView:
    return views.CurveView.model_validate(found)


def event(seen: Event) -> views.EventView:
    return views.EventView.model_validate(seen)


def node(seen: Node) -> views.NodeView:
    return views.NodeView.model_validate(seen)


def _bisection_fields(found: Bisection) -> dict[str, object]:
    path, measured = paths.bisection(found.id), found.request.metric is not None
    return {
        "id": found.id,
        "state": found.state,
        "live": found.state in LIVE_BISECTIONS,
        "repo": without_password(found.request.repo),
        "good": found.request.good,
        "bad": found.request.bad,
        "submitter": found.submitter,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "ended_at": found.ended_at,
        "candidates": found.candidates,
        "candidates_left": found.candidates_left,
        "expected_remaining": found.expected_probes,
        "first_bad": found.answer.shas if found.answer else (),
        "notes": found.notes,
        "priority": found.priority,
        "clone_of": found.clone_of,
        "paused_at": found.paused_at,
        "problem": trouble(found.problem) if found.problem else None,
        "links": views.BisectionLinks(
            self=path,
            probes=f"{path}/probes",
            events=f"{path}/events",
            page=paths.page(found.id),
            metric=paths.metric(found.id) if measured else None,
            picture=paths.picture(found.id) if measured else None,
        ),
    }


def trouble(problem: Refused) -> views.Trouble:
    return views.Trouble(
        type=f"/problems/{problem.slug}",
        title=problem.title,
        detail=problem.detail,
        field=problem.field,
        value=problem.value,
        advice=problem.advice,
    )


def _answer(made: Report) -> views.AnswerView | None:
    answer = made.bisection.answer
    if answer is None:
        return None
    return views.AnswerView(commits=_commits(made.answer), why=answer.why, confidence=answer.confidence)


def _commits(commits: Sequence[Commit]) -> tuple[views.CommitView, ...]:
    return tuple(_commit(commit) for commit in commits)


def _commit(commit: Commit) -> views.CommitView:
    return views.CommitView.model_validate(commit)


def _probe_links(found: Probe) -> views.ProbeLinks:
    whole = paths.bisection(found.bisection_id)
    return views.ProbeLinks(self=paths.probe(found.id), log=paths.log(found.id), bisection=whole)


def request(asked: Request) -> views.RequestView:
    recipe, reproduction = asked.recipe, asked.reproduction
    return views.RequestView(
        repo=without_password(asked.repo),
        good=asked.good,
        bad=asked.bad,
        project=recipe.name,
        build=recipe.build_command,
        image=recipe.image,
        network=recipe.network,
        env=dict(recipe.env),
        script=reproduction.script,
        serve=views.ServeView.model_validate(reproduction.serve) if reproduction.serve else None,
        check=reproduction.check,
        failure=reproduction.failure,
        sandbox=asked.sandbox,
        width=asked.width,
        first_parent=asked.first_parent,
        flaky=asked.flaky,
        timeout_s=asked.timeout_s,
        hang="bad" if asked.hang_is_bad else "skip",
        package=recipe.package,
        wheel_paths=recipe.wheel_paths,
        native_paths=recipe.native_paths,
        overlay=recipe.overlay_command,
        wheel_indexes=tuple(without_password(index) for index in recipe.wheel_indexes),
        deps=views.DepsView.model_validate(recipe.deps),
        fixups=tuple(views.FixupView.model_validate(fixup) for fixup in recipe.fixups),
        failure_in=asked.failure_in,
        control=views.ReproductionView.model_validate(asked.control) if asked.control else None,
        other_failures=asked.other_failures,
        metric=views.MetricView.model_validate(asked.metric) if asked.metric else None,
        other_metrics=tuple(views.MetricView.model_validate(metric) for metric in asked.other_metrics),
        measuring=views.MeasuringView.model_validate(asked.measuring) if asked.metric else None,
        resources=views.ResourcesView.model_validate(recipe.resources),
        secrets=recipe.secrets,
        model_cache=recipe.model_cache,
        priority=asked.priority,
        budget=views.BudgetView.model_validate(asked.budget),
        notes=asked.notes,
    )


def recipe(found: Recipe) -> views.RecipeView:
    return views.RecipeView(
        name=found.name,
        build=found.build_command,
        build_network=found.build_network,
        build_timeout_s=found.build_timeout_s,
        image=found.image,
        network=found.network,
        env={name: without_password(value) for name, value in found.env.items()},
        package=found.package,
        wheel_paths=found.wheel_paths,
        native_paths=found.native_paths,
        overlay=found.overlay_command,
        wheel_indexes=tuple(without_password(index) for index in found.wheel_indexes),
        deps=views.DepsView.model_validate(found.deps),
        fixups=tuple(views.FixupView.model_validate(fixup) for fixup in found.fixups),
        resources=views.ResourcesView.model_validate(found.resources),
        secrets=found.secrets,
        model_cache=found.model_cache,
    )
