"""fetch -> build, or fetch -> install and run, then observe. What goes wrong becomes a fault or a failure's facts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from worker.contract import BuildOrder, BuildResult, Fault, ProbeOrder, ProbeResult, SurveyOrder, SurveyResult
from worker.errors import NodeFault, Stopped
from worker.pipeline.build import build
from worker.pipeline.meter import Meter
from worker.pipeline.probe import probe
from worker.pipeline.resume import Resumed
from worker.pipeline.runs import Site
from worker.pipeline.survey import survey
from worker.run.stop import CANCELLED, STOPPED, Stop

__all__ = ["Pipeline", "Site"]
R = TypeVar("R", ProbeResult, BuildResult, SurveyResult)


@dataclass(frozen=True)
class Pipeline:
    """Each call answers None when the service cancelled it; raises nothing that node, order or commit can cause."""

    site: Site

    def probe(self, order: ProbeOrder, stop: Stop, on_lease: Callable[[], None] = lambda: None) -> ProbeResult | None:
        """`on_lease` is called once it holds its GPUs, if it wants any."""
        answer = ProbeResult(probe=order.probe, attempt=order.attempt, node=self.site.node)
        meter = Meter(on_lease=on_lease)
        return _metered(_answered(answer, lambda: {"outcome": probe(self.site, order, stop, meter)}), meter)

    def resume(self, resumed: Resumed, stop: Stop) -> ProbeResult | None:
        order = resumed.kept.order
        answer = ProbeResult(probe=order.probe, attempt=order.attempt, node=self.site.node)
        return _metered(_answered(answer, lambda: {"outcome": resumed.finish(stop)}), resumed.meter)

    def build(self, order: BuildOrder, stop: Stop) -> BuildResult | None:
        began = time.monotonic()
        answer = BuildResult(key=order.key, attempt=order.attempt, node=self.site.node, seconds=0.0)
        told = _answered(answer, lambda: build(self.site, order, stop))
        return told and told.model_copy(update={"seconds": time.monotonic() - began})

    def survey(self, order: SurveyOrder, stop: Stop) -> SurveyResult | None:
        answer = SurveyResult(bisection=order.bisection, attempt=order.attempt, node=self.site.node)
        return _answered(answer, lambda: {"builder": survey(self.site, order, stop)})


def _metered(answer: ProbeResult | None, meter: Meter) -> ProbeResult | None:
    """Cards cost what they do, whatever came of the run."""
    spent = {"gpu_leased_s": round(meter.leased_s, 3), "gpu_used_s": round(meter.used_s, 3)}
    return answer and answer.model_copy(update=spent)


def _answered(answer: R, work: Callable[[], dict[str, Any]]) -> R | None:
    """The answer with what came of the work, or with the fault that ended it."""
    try:
        return answer.model_copy(update=work())
    except Stopped as stopped:
        return None if stopped.reason == CANCELLED else answer.model_copy(update={"fault": _stopped(stopped.reason)})
    except NodeFault as fault:
        return answer.model_copy(update={"fault": _fault(fault)})


def _fault(fault: NodeFault) -> Fault:
    return Fault(kind=fault.kind, message=fault.message, advice=fault.advice)


def _stopped(reason: str) -> Fault:
    """Only what the worker's own end broke off is tried again without being counted."""
    if reason != STOPPED:
        return Fault(kind="sandbox", message=f"the sandbox was ended: {reason}", advice="See the node's log.")
    return Fault(kind="stopped", message="the worker was stopped while this ran", advice="It is tried again elsewhere.")
