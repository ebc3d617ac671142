"""A report as JSON, with all probes in it."""

from __future__ import annotations

from service.application.reports.findings import Findings
from service.doors.api import render
from service.doors.api.views import ProbeView, ReportView


class WholeReportView(ReportView):
    """The report, and every probe by number."""

    probes: tuple[ProbeView, ...]


def whole(found: Findings) -> str:
    report = render.report(found.report)
    probes = tuple(render.probe(probe) for probe in found.probes)
    fields = {name: getattr(report, name) for name in ReportView.model_fields}
    return WholeReportView(**fields, probes=probes).model_dump_json()
