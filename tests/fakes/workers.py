"""The other end of the queue for tests of the flow: it keeps the orders, and answers when a test says so.

It stands for the ProbeQueue port alone; that Celery and real workers behave so is tests/end_to_end's to show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from service.application.flow import Flow
from service.application.ordered import (
    BuildOrder,
    ProbeOrder,
    SurveyOrder,
)
from service.application.ports import (
    Attempt,
    QueueUnavailable,
)
from service.domain.bisection import Builder, Origin
from service.domain.evidence import Fault, Log, Outcome
from service.domain.results import BuildReport, ProbeReport, SurveyReport, WheelFacts

Truth = Callable[[str], int]
BUILDER = Builder(None, "3.11", "x86_64")


@dataclass
class Workers:
    """`down`: the broker does not answer. `carries`: what `under_way` says of everything."""

    builds: list[BuildOrder] = field(default_factory=list)
    probes: list[ProbeOrder] = field(default_factory=list)
    surveys: list[SurveyOrder] = field(default_factory=list)
    prepares: list[str] = field(default_factory=list)
    cancelled: list[tuple[str, str, int]] = field(default_factory=list)
    taken_out: list[tuple[str, bool]] = field(default_factory=list)
    seen: list[ProbeOrder] = field(default_factory=list)
    built: list[BuildOrder] = field(default_factory=list)
    down: bool = False
    carries: bool = True

    def send_prepare(self, bisection_id: str) -> None:
        self._take(self.prepares, bisection_id)

    def send_survey(self, order: SurveyOrder) -> None:
        self._take(self.surveys, order)

    def send_build(self, order: BuildOrder) -> None:
        self._take(self.builds, order)

    def send_probe(self, order: ProbeOrder) -> None:
        self._take(self.probes, order)

    def cancel(self, kind: str, id: str, attempt: int) -> None:
        self._take(self.cancelled, (kind, id, attempt))

    def take_out(self, node: str, *, out: bool) -> None:
        self._take(self.taken_out, (node, out))

    def under_way(self, attempts: Collection[Attempt]) -> frozenset[Attempt]:
        if self.down:
            raise QueueUnavailable("down")
        return frozenset(attempts) if self.carries else frozenset()

    def trouble(self) -> str | None:
        return "down" if self.down else None

    def _take(self, into: list, order: object) -> None:
        if self.down:
            raise QueueUnavailable("down")
        into.append(order)

    def work(self, flow: Flow, truth: Truth, *, limit: int = 1000) -> None:
        """Answers orders, oldest first, until there are none. `truth`: the exit status of a commit's script."""
        for _ in range(limit):
            if self.prepares:
                flow.prepare(self.prepares.pop(0))
            elif self.surveys:
                self.survey(flow)
            elif self.builds:
                self.build(flow)
            elif self.probes:
                self.run(flow, truth)
            else:
                return
        raise AssertionError("orders without end")

    def prepare(self, flow: Flow) -> None:
        """The one preparation that waits, with its survey."""
        flow.prepare(self.prepares.pop())
        if self.surveys:
            self.survey(flow)

    def survey(self, flow: Flow, builder: Builder = BUILDER) -> SurveyOrder:
        order = self.surveys.pop(0)
        flow.surveyed(SurveyReport(order.bisection, order.attempt, "n1", builder))
        return order

    def build(self, flow: Flow, **instead: object) -> BuildOrder:
        order = self.builds.pop(0)
        self.built.append(order)
        flow.started("build", order.key, order.attempt, "n1")
        wheel = WheelFacts("p-1.whl", f"wheels/{order.key}/{order.attempt}/p-1.whl", 100, "0" * 64)
        origin = Origin.OVERLAY if order.base is not None else Origin.BUILT
        answer = instead or {"wheel": wheel, "origin": origin}
        flow.built(BuildReport(order.key, order.attempt, "n1", 0.5, **answer))  # type: ignore[arg-type]
        return order

    def start(self, flow: Flow) -> ProbeOrder:
        order = self.probes.pop(0)
        self.seen.append(order)
        flow.started("probe", order.probe, order.attempt, "n1")
        return order

    def start_with_cards(self, flow: Flow) -> ProbeOrder:
        order = self.start(flow)
        flow.started("probe", order.probe, order.attempt, "n1", leased=True)
        return order

    def run(self, flow: Flow, truth: Truth) -> ProbeOrder:
        order = self.start(flow)
        flow.probed(result(order, truth(order.source.sha)))
        return order

    def observe(self, flow: Flow, outcome: Outcome, node: str = "n1") -> ProbeOrder:
        """The oldest probe ends with this outcome on that node."""
        order = self.probes.pop(0)
        self.seen.append(order)
        flow.started("probe", order.probe, order.attempt, node)
        log = Log(f"logs/{order.probe}.{order.attempt}.log", 10, False, ("last line",))
        flow.probed(ProbeReport(order.probe, order.attempt, node, outcome=replace(outcome, log=log)))
        return order

    def fault(self, flow: Flow, kind: str = "disk-full") -> ProbeOrder:
        order = self.start(flow)
        flow.probed(ProbeReport(order.probe, order.attempt, "n1", fault=Fault(kind, f"{kind} on n1", "help it")))
        return order


def result(order: ProbeOrder, status: int) -> ProbeReport:
    log = Log(f"logs/{order.probe}.{order.attempt}.log", 10, False, (f"ended with {status}",))
    outcome = Outcome("script", exit_status=status, log=log)
    return ProbeReport(order.probe, order.attempt, "n1", outcome=outcome)
