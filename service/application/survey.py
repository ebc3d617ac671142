"""What builders have, asked once for each bisection, so that all its builds and runs have the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from service.application import nodes, wording
from service.application.ports import Transaction
from service.application.record import MAX_FAULTS, counted, delay_s, with_fault
from service.domain.bisection import Bisection, Message, Request, Survey
from service.domain.evidence import Fault
from service.domain.lifecycle import BisectionState, moved
from service.domain.recipe import SandboxKind
from service.domain.results import SurveyReport


def needed(request: Request) -> bool:
    """A process that runs in the source tree needs nothing that could differ."""
    return request.recipe.build_command is not None or request.sandbox is SandboxKind.DOCKER


def with_gpus(tx: Transaction, bisection: Bisection, now: datetime) -> Bisection:
    """With the class of GPUs that all its runs get, where it wants any and a node has them."""
    wanted = bisection.request.recipe.resources
    if not wanted.gpus:
        return bisection
    there = tx.nodes()
    found = nodes.gpu_class(wanted, there, now)
    if found is None:
        return replace(bisection, notes=(*bisection.notes, nodes.lacking(wanted, there, now)))
    return replace(bisection, setup=replace(bisection.setup, gpu_class=found))


def waits_for_gpus(bisection: Bisection) -> bool:
    return bisection.request.recipe.resources.gpus > 0 and bisection.setup.gpu_class is None


def asked(bisection: Bisection) -> bool:
    return bisection.setup.survey.attempt > 0


def ask(tx: Transaction, bisection: Bisection, now: datetime, faults: tuple[Fault, ...] = ()) -> None:
    survey = Survey(bisection.setup.survey.attempt + 1, faults)
    tx.save_bisection(replace(bisection, setup=replace(bisection.setup, survey=survey), updated_at=now))
    at = now + timedelta(seconds=delay_s(faults) if faults else 0.0)
    payload: dict[str, object] = {"id": bisection.id, "attempt": survey.attempt}
    tx.post(Message("survey", f"survey:{bisection.id}:{survey.attempt}", payload), at)


def ended(tx: Transaction, bisection: Bisection, report: SurveyReport, now: datetime) -> bool:
    """Whether the bisection can begin. The caller holds its lock."""
    if bisection.state is not BisectionState.PREPARING or bisection.setup.survey.attempt != report.attempt:
        return False
    if report.builder is not None:
        tx.save_bisection(replace(bisection, setup=replace(bisection.setup, builder=report.builder), updated_at=now))
        return True
    if report.fault is not None:
        _again(tx, bisection, report.fault, now)
    return False


def _again(tx: Transaction, bisection: Bisection, fault: Fault, now: datetime) -> None:
    faults = with_fault(bisection.setup.survey.faults, fault)
    tx.add_event(bisection.id, now, "fault", {"kind": fault.kind, "message": fault.message})
    if counted(faults) < MAX_FAULTS:
        ask(tx, bisection, now, faults)
        return
    problem, state = wording.survey_faulted(faults), moved(bisection.state, BisectionState.FAILED)
    tx.save_bisection(replace(bisection, state=state, problem=problem, updated_at=now, ended_at=now))
    tx.add_event(bisection.id, now, "state", {"state": str(state)})
