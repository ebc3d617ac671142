"""fetch -> build, or fetch -> install and run, then observe. What goes wrong becomes a fault or a failure's facts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from worker.contract import BuildOrder, BuildResult, Fault, ProbeOrder, ProbeResult, SurveyOrder, SurveyResult
from worker.errors import NodeFault, Stopped
from worker.pipeline.build import build
from worker.pipeline.probe import probe
from worker.pipeline.runs import Site
from worker.pipeline.survey import survey
from worker.run.stop import CANCELLED, Stop

__all__ = ["Pipeline", "Site"]


@dataclass(frozen=True)
class Pipeline:
    """Each call answers None when the service cancelled it; raises nothing that node, order or commit can cause."""

    site: Site

    def probe(self, order: ProbeOrder, stop: Stop) -> ProbeResult | None:
        answer = ProbeResult(probe=order.probe, attempt=order.attempt, node=self.site.node)
        try:
            return answer.model_copy(update={"outcome": probe(self.site, order, stop)})
        except Stopped as stopped:
            return None if stopped.reason == CANCELLED else answer.model_copy(update={"fault": _stopped()})
        except NodeFault as fault:
            return answer.model_copy(update={"fault": _fault(fault)})

    def build(self, order: BuildOrder, stop: Stop) -> BuildResult | None:
        began = time.monotonic()
        answer = BuildResult(key=order.key, attempt=order.attempt, node=self.site.node, seconds=0.0)
        try:
            update: dict[str, Any] = build(self.site, order, stop)
        except Stopped as stopped:
            if stopped.reason == CANCELLED:
                return None
            update = {"fault": _stopped()}
        except NodeFault as fault:
            update = {"fault": _fault(fault)}
        return answer.model_copy(update={**update, "seconds": time.monotonic() - began})

    def survey(self, order: SurveyOrder, stop: Stop) -> SurveyResult | None:
        answer = SurveyResult(bisection=order.bisection, attempt=order.attempt, node=self.site.node)
        try:
            return answer.model_copy(update={"builder": survey(self.site, order, stop)})
        except Stopped as stopped:
            return None if stopped.reason == CANCELLED else answer.model_copy(update={"fault": _stopped()})
        except NodeFault as fault:
            return answer.model_copy(update={"fault": _fault(fault)})


def _fault(fault: NodeFault) -> Fault:
    return Fault(kind=fault.kind, message=fault.message, advice=fault.advice)


def _stopped() -> Fault:
    return Fault(kind="stopped", message="the worker was stopped while this ran", advice="It is tried again elsewhere.")
