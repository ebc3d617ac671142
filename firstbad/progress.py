"""How a bisection stands, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from service.doors.api.views import CurveView, ProbeView, ReportView

#: Seconds without a change after which a bisection that has not begun counts as waiting.
QUIET_S = 4.0


@dataclass(frozen=True)
class Progress:
    """`quiet`: nothing has changed since the last one, for QUIET_S. `curve`: None where nothing is measured."""

    report: ReportView
    probes: tuple[ProbeView, ...]
    quiet: bool = False
    curve: CurveView | None = None
