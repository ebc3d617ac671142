"""A bisection that looks for a number that got worse."""

from __future__ import annotations

from dataclasses import replace

from service.application.curve import Curve
from service.domain.metric import Better, Metric
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.doors.curves import stepped
from tests.fakes.flow import FakeFlow

METRIC = Metric(Better.HIGHER, pattern=r"throughput: ([\d.]+)", name="throughput", unit="tok/s")


def begun(flow: FakeFlow, curve: Curve | None = None) -> str:
    """The id of one that is searching."""
    made = flow.submit(SUBMISSION, TESTER)
    flow.kept[made.id] = replace(made, request=replace(made.request, metric=METRIC))
    flow.look_up(made.id, 249)
    flow.search(made.id, 13, 3.0)
    flow.curves[made.id] = curve or stepped()
    return made.id
