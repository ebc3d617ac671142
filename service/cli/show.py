"""A bisection on one screen: the answer first, then what it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.cli import asked, screen
from service.cli.listing import left, state_shown
from service.cli.plot import Plot
from service.cli.watch import in_flight
from service.domain.duration import spoken
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, BuildState
from service.domain.suspects import Shown, shown
from service.doors.api.views import BisectionView, BuildView, CommitView, CurveView, ProbeView, ProofView, ReportView

T = TypeVar("T")


def show(
    out: Console,
    report: ReportView,
    url: Callable[[str], str],
    probes: Sequence[ProbeView] = (),
    builds: Sequence[BuildView] = (),
    curve: CurveView | None = None,
    by: str = "",
) -> None:
    """`url`: of a link of the report. `by`: who paused or cancelled it."""
    for part in (
        *_parts(report, url, curve, by),
        *_section("Probes", probes, probe_table),
        *_section("Builds", builds, _builds),
    ):
        screen.put(out, part)


def probe_table(probes: Sequence[ProbeView]) -> Table:
    table = screen.columns("PROBE", "COMMIT", "VERDICT", "TIME", "WHY")
    for probe in probes:
        verdict = screen.styled(probe.verdict or probe.state)
        table.add_row(probe.id, screen.sha(probe.sha), verdict, screen.took(probe), _why(probe))
    return table


def _why(probe: ProbeView) -> Text:
    """The reason, the line of the log that shows the failure, and what nodes did wrong."""
    more = []
    signature = probe.outcome.signature if probe.outcome is not None else None
    if signature is not None and probe.verdict is not Verdict.GOOD and signature.said:
        more.append(f"line {signature.line}: {screen.first_line(signature.said)}")
    more += [f"fault{f' on {fault.node}' if fault.node else ''}: {fault.message}" for fault in probe.faults]
    lines = [(f"\n{screen.first_line(line)}", "dim") for line in more]
    return Text.assemble(screen.first_line(probe.reason), *lines)


def _builds(builds: Sequence[BuildView]) -> Table:
    table = screen.columns("COMMIT", "HOW", "TIME", "WHY NOT IN A CHEAPER WAY")
    for build in builds:
        took = spoken(build.seconds) if build.seconds is not None else ""
        table.add_row(screen.sha(build.sha), _how(build), took, "\n".join(map(screen.first_line, build.notes)))
    return table


def _how(build: BuildView) -> Text:
    said = {
        BuildState.BUILT: str(build.origin or "built"),
        BuildState.FAILED: "does not build",
        BuildState.FAULTED: "fault of the nodes",
        BuildState.EVICTED: f"{build.origin or 'built'}, wheel removed",
    }
    return Text(said.get(build.state, str(build.state)) + (", ahead" if build.ahead else ""))


def _section(title: str, items: Sequence[T], table: Callable[[Sequence[T]], Table]) -> Iterator[RenderableType]:
    if items:
        yield ""
        yield Text(title, style="bold")
        yield _indented(table(items))


def trouble_lines(view: BisectionView) -> list[str]:
    """What was wrong with the request, or with us; then the next step."""
    problem = view.problem
    if problem is None:
        return []
    advice = [f"→ {screen.clean(problem.advice)}"] if problem.advice else []
    return [*screen.clean(problem.detail).splitlines(), *advice]


def _parts(report: ReportView, url: Callable[[str], str], curve: CurveView | None, by: str) -> Iterator[RenderableType]:
    yield Text(screen.clean(report.headline), style=_style(report.state))
    if report.answer is not None and report.answer.commits:
        yield from _answer(report)
    elif report.problem is not None:
        yield _indented(Text("\n".join(trouble_lines(report))))
    if curve is not None and curve.points:
        yield ""
        yield Plot(curve)
    if report.evidence:
        yield ""
        yield Text("Evidence", style="bold")
        yield _indented(_evidence(report))
    yield ""
    yield _facts(report, url, by)


def _answer(report: ReportView) -> Iterator[RenderableType]:
    assert report.answer is not None
    said = [_indented(Text(screen.clean(line))) for line in _said(report)]
    yield ""
    if report.state is BisectionState.FOUND:
        yield _indented(_commit(report.answer.commits[0], report.answer.confidence))
        yield ""
        yield from said
        return
    yield from said
    if said:
        yield ""
    yield _indented(_suspects(report))


def _said(report: ReportView) -> list[str]:
    """The explanation without what this screen tells in its own way."""
    listed = {f"{commit.sha[:10]} {commit.subject}" for commit in report.answer.commits} if report.answer else set()
    return [line for line in report.explanation if line not in {*report.notes, *listed, _shown(report).gap}]


def _shown(report: ReportView) -> Shown[CommitView]:
    named = report.answer.commits if report.answer else ()
    return shown(named, report.candidates_left, ranked=report.request.flaky)


def _commit(commit: CommitView, confidence: float | None) -> Table:
    grid = screen.pairs()
    grid.add_row("commit", Text(commit.sha, style="cyan"))
    grid.add_row("subject", screen.clean(commit.subject))
    grid.add_row("author", screen.clean(commit.author))
    grid.add_row("date", screen.when(commit.committed_at))
    if confidence is not None:
        grid.add_row("confidence", f"{confidence:.1%}")
    return grid


def _suspects(report: ReportView) -> Table:
    table = screen.columns("COMMIT", "DATE", "AUTHOR", "SUBJECT")
    told = _shown(report)
    for commit in told.first:
        table.add_row(*_suspect(commit))
    if told.gap:
        table.add_row("", "", "", Text(f"{told.gap}; more of them: firstbad show {report.id} --json", style="dim"))
    for commit in told.last:
        table.add_row(*_suspect(commit))
    return table


def _suspect(commit: CommitView) -> tuple[Text, str, str, str]:
    date = f"{commit.committed_at:%Y-%m-%d}"
    return screen.sha(commit.sha), date, screen.clean(commit.author), screen.clean(commit.subject)


def _evidence(report: ReportView) -> Table:
    table = screen.columns("COMMIT", "VERDICT", "PROBE", "WHY")
    for proof in report.evidence:
        probe = proof.probe
        why = Text.assemble(screen.first_line(probe.reason), "\n", (screen.clean(proof.commit.subject), "dim"))
        table.add_row(screen.sha(probe.sha), screen.styled(probe.verdict or probe.state), probe.id, why)
    return table


def _facts(report: ReportView, url: Callable[[str], str], by: str) -> Table:
    grid = screen.pairs()
    grid.add_row("bisection", Text.assemble(report.id, "  ", state_shown(report)))
    if report.paused_at is not None and report.live:
        grid.add_row("paused", f"{_at_and_by(report.paused_at, by)}; go on with: firstbad resume {report.id}")
    if report.state is BisectionState.CANCELLED and report.ended_at is not None:
        grid.add_row("cancelled", _at_and_by(report.ended_at, by))
    grid.add_row("submitter", screen.clean(report.submitter))
    grid.add_row("repository", screen.clean(report.repo))
    grid.add_row("good", _end(report.good, report.ends.good))
    grid.add_row("bad", _end((report.bad,), (report.ends.bad,) if report.ends.bad else ()))
    if report.candidates is not None:
        grid.add_row("candidates", f"{left(report)} left{_expected(report)}" if report.live else str(report.candidates))
    grid.add_row("probes", _probes(report))
    if spent := asked.spent(report):
        grid.add_row("budget", ", ".join(spent))
    if wheels := _wheels(report):
        grid.add_row("wheels", wheels)
    for note in report.notes:
        grid.add_row("note", screen.clean(note))
    if report.links.page is not None:
        grid.add_row("page", url(report.links.page))
    grid.add_row("json", url(report.links.self))
    if report.evidence:
        telling = _telling(report.evidence)
        gone = f"removed on {screen.when(telling.log_removed_at)}" if telling.log_removed_at is not None else ""
        grid.add_row("log", gone or f"firstbad logs {telling.id}")
    return grid


def _at_and_by(at: datetime, by: str) -> str:
    return f"{screen.when(at)}, {screen.ago(at)}{f', by {screen.clean(by)}' if by else ''}"


def _telling(evidence: Sequence[ProofView]) -> ProbeView:
    """The probe whose log shows the failure; where none is bad, the first."""
    bad = [proof.probe for proof in evidence if proof.probe.verdict is Verdict.BAD]
    return [*bad, evidence[0].probe][0]


def _end(written: Sequence[str], commits: Sequence[CommitView]) -> Text:
    found = [screen.clean(f"{commit.sha[:10]} {commit.subject}") for commit in commits]
    as_written = screen.clean(", ".join(written))
    return Text.assemble(as_written, ("  " + "; ".join(found) if found else "", "dim"))


def _expected(view: BisectionView) -> str:
    return f", about {screen.count(round(view.expected_remaining), 'more probe')}" if view.expected_remaining else ""


def _probes(report: ReportView) -> str:
    done = screen.count(report.probes_done, "probe").split()[0] + " done"
    going = "".join(f", {told}" for told in in_flight(report)) if report.live else ""
    took = screen.between(report.created_at, report.ended_at)
    return done + going + (f" in {took}" if took else "")


def _wheels(report: ReportView) -> str:
    """How many came about in each way, the dearest first."""
    found = report.wheels
    ways = [
        (found.built, "built"),
        (found.failed, "not to be built"),
        (found.overlay, "from another's compiled files"),
        (found.prebuilt, "fetched"),
        (found.reused, "there already"),
    ]
    told = ", ".join(f"{count} {way}" for count, way in ways if count)
    return told + (f"; {found.ahead} more while builders were idle" if found.ahead else "")


def _style(state: BisectionState) -> str:
    return screen.STYLES.get(state, "bold")


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2), expand=False)
