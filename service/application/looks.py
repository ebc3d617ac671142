"""What a report and a curve need, gathered: the rows at one moment, then commits and their order."""

from __future__ import annotations

from service.application import curve as curves
from service.application import nodes, queries, telling
from service.application import report as reports
from service.application.curve import Curve
from service.application.keys import range_of
from service.application.ports import History, Ports
from service.application.report import Report
from service.application.reports import git_log as git_logs
from service.application.reports.findings import Findings
from service.application.verdicts import numbers_of
from service.domain.bisection import Bisection
from service.domain.spending import spent
from service.search.graph import Range


def report(ports: Ports, id: str) -> Report:
    """Errors: NotFound."""
    return findings(ports, id).report


def findings(ports: Ports, id: str) -> Findings:
    """Errors: NotFound."""
    with ports.bisections.reading() as tx:
        bisection, probes, builds = tx.bisection(id), tx.probes(id), tx.builds_of(id)
        now = ports.clock.now()
        waits = nodes.waits(bisection, tx.nodes(), now) or nodes.waits_for_alike(tx, bisection, now)
    wanted = reports.wanted_commits(bisection, probes)
    commits = ports.history.commits(bisection.request.repo, wanted) if wanted else {}
    numbers = numbers_of(bisection, probes)
    measured = telling.lines(numbers, measured_range(ports.history, bisection)) if numbers is not None else ()
    cost = spent(bisection, probes, now)
    made = reports.report(bisection, probes, commits, builds, (*waits, *measured), cost)
    return Findings(made, probes, commits)


def git_log(ports: Ports, id: str) -> str:
    """Errors: NotFound."""
    found = findings(ports, id)
    looked_up = found.bisection.bad_sha is not None
    return git_logs.git_log(found, range_of(ports.history, found.bisection) if looked_up else None)


def curve(ports: Ports, id: str) -> Curve:
    """Errors: NotFound, also where no metric was asked for."""
    with ports.bisections.reading() as tx:
        bisection, probes = tx.bisection(id), tx.probes(id)
    metric, numbers = queries.metric_of(bisection), numbers_of(bisection, probes)
    range_ = measured_range(ports.history, bisection)
    if numbers is None or range_ is None:
        return curves.nothing_yet(bisection, metric)
    commits = ports.history.commits(bisection.request.repo, reports.wanted_commits(bisection, probes))
    return curves.curve(bisection, numbers, range_, commits)


def measured_range(history: History, bisection: Bisection) -> Range | None:
    """Of a number that got worse, once its commits are looked up."""
    if bisection.request.metric is None or bisection.bad_sha is None:
        return None
    return range_of(history, bisection)
