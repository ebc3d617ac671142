"""Following a bisection: a line a verdict as it comes; in a terminal, a bar and the running probes below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from firstbad import Progress
from service.cli import asked, screen
from service.cli.plot import Plot
from service.domain.bisection import Purpose
from service.domain.budget import Priority
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.doors.api.views import ProbeView, ReportView

BAR_WIDTH = 32
NARROWEST_BAR = 6
#: Lines of a terminal that the rows of a plot leave free, and how many rows it is worth.
AROUND, FEWEST_ROWS = 14, 3


@dataclass
class Story:
    """Tells each thing once."""

    with_standing: bool
    told: set[str] = field(default_factory=set)
    paused: bool = False
    priority: Priority = Priority.NORMAL

    def news(self, progress: Progress) -> Iterator[RenderableType]:
        report = progress.report
        yield from self._beginning(report)
        yield from self._turns(report)
        if progress.quiet and report.state is BisectionState.PREPARING and report.candidates is not None:
            yield from self._once("waits", "waits for a node that builds")
        if progress.quiet and self.with_standing and report.state is not BisectionState.PREPARING:
            yield from self._once(f"still {standing(report)}", standing(report))
        judged = False
        for probe in sorted(progress.probes, key=_by_end):
            yield from self._faults(probe)
            if probe.id in self.told:
                continue
            if probe.verdict is not None:
                judged = True
                self.told.add(probe.id)
                yield _verdict(probe)
            elif probe.state is ProbeState.CANCELLED and report.state is not BisectionState.CANCELLED:
                self.told.add(probe.id)
                yield _unneeded(probe)
        if judged and report.live and self.with_standing:
            yield Text(f"  {standing(report)}", style="dim")

    def _beginning(self, report: ReportView) -> Iterator[Text]:
        if report.candidates is None:
            yield from self._once(report.headline, report.headline if report.live else "")
            return
        yield from self._once("range", range_line(report))
        for note in report.notes:
            yield from self._once(note, f"note: {note}")

    def _turns(self, report: ReportView) -> Iterator[Text]:
        """Pauses and priorities, as they change."""
        if report.paused_at is not None and report.live:
            self.paused = True
            yield from self._once(f"paused {report.paused_at}", f"paused; firstbad resume {report.id} lets it go on")
        elif self.paused:
            self.paused = False
            yield Text("goes on" if report.live else "ended while it was paused", style="bold")
        if report.priority is not self.priority:
            self.priority = report.priority
            yield Text(f"has the priority {report.priority}", style="bold")

    def _once(self, key: str, line: str) -> Iterator[Text]:
        if line and key not in self.told:
            self.told.add(key)
            yield Text(screen.clean(line), style="bold")

    def _faults(self, probe: ProbeView) -> Iterator[Table]:
        """A message that a probe met before is not repeated."""
        for message, times in Counter(fault.message for fault in probe.faults).items():
            key = f"{probe.id} {message}"
            if key not in self.told:
                self.told.add(key)
                repeated = f" ({times} times)" if times > 1 else ""
                yield _line(probe, "fault", f"of the node, not of the commit: {message}{repeated}")


class Below:
    """What stands under the lines of a terminal; drawn again by itself, so that ages go on."""

    def __init__(self) -> None:
        self.progress: Progress | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.progress is None or not self.progress.report.live:
            return
        said = standing(self.progress.report) + eta(self.progress)
        width = min(BAR_WIDTH, options.max_width - len(said) - 2)
        line = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=1.0, completed=narrowed(self.progress.report), width=width, complete_style="cyan")
        line.add_row(*([bar] if width >= NARROWEST_BAR else []), Text(said))
        yield Text("")
        yield line
        yield _in_flight(self.progress.probes)
        curve = self.progress.curve
        room = console.size.height - AROUND - sum(probe.state in LIVE_PROBES for probe in self.progress.probes)
        if curve is not None and curve.points and room >= FEWEST_ROWS:
            yield Text("")
            yield Plot(curve, room)


def follow(out: Console, changes: Iterator[Progress], told: Collection[str] = ()) -> ReportView:
    """Until it ends; the last report. `told`: notes that need not be told again."""
    live = out.is_terminal and not out.is_dumb_terminal
    story = Story(with_standing=not live, told=set(told))
    return _follow_live(out, changes, story) if live else _follow_plain(out, changes, story)


def range_line(report: ReportView) -> str:
    ends = f"good {', '.join(report.good)} .. bad {report.bad}"
    return f"{ends}: {screen.count(report.candidates or 0, 'candidate')}"


def standing(report: ReportView) -> str:
    """Candidates left, probes done, probes to come."""
    parts = []
    if report.candidates_left is not None and report.state is not BisectionState.CHECKING_ENDS:
        parts.append(f"{report.candidates_left} of {report.candidates} candidates left")
    parts.append(f"{screen.count(report.probes_done, 'probe')} done")
    if report.expected_remaining:
        parts.append(f"about {round(report.expected_remaining)} to come")
    parts += in_flight(report)
    if spent := asked.spent(report):
        parts.append(f"spent {', '.join(spent)}")
    if report.paused_at is not None:
        parts.append("paused")
    return ", ".join(parts)


def eta(progress: Progress) -> str:
    """How long it goes on, as fast as it went so far; empty where that says too little."""
    report = progress.report
    ended = [(probe.started_at, probe.finished_at) for probe in progress.probes if probe.verdict is not None]
    times = [(start, end) for start, end in ended if start is not None and end is not None]
    if len(times) < 2 or not report.expected_remaining or report.paused_at is not None:
        return ""
    took_s = (max(end for _, end in times) - min(start for start, _ in times)).total_seconds()
    return f", about {_roughly(took_s / len(times) * report.expected_remaining)} at this pace"


def _roughly(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def in_flight(report: ReportView) -> list[str]:
    """Probes that run and where, that are sent, and that wait for their turn."""
    told = []
    if report.probes_running:
        nodes = sorted({screen.clean(probe.node) for probe in report.probes_running if probe.node})
        where = f" on {', '.join(nodes)}" if nodes else ""
        told.append(f"{len(report.probes_running)} running{where}")
    if report.probes_sent:
        told.append(f"{report.probes_sent} sent and not begun")
    if report.probes_waiting:
        told.append(f"{report.probes_waiting} waiting for their turn")
    return told


def narrowed(report: ReportView) -> float:
    """0 to 1, in bits: each probe that halves the range moves it by the same step."""
    if not report.candidates or not report.candidates_left or report.candidates < 2:
        return 0.0
    return 1.0 - math.log2(report.candidates_left) / math.log2(report.candidates)


def _follow_plain(out: Console, changes: Iterator[Progress], story: Story) -> ReportView:
    for progress in changes:
        for line in story.news(progress):
            screen.put(out, line)
    return progress.report


def _follow_live(out: Console, changes: Iterator[Progress], story: Story) -> ReportView:
    below = Below()
    with Live(below, console=out, refresh_per_second=4, transient=True) as live:
        for progress in changes:
            below.progress = progress
            for line in story.news(progress):
                live.console.print(line)
    return progress.report


def _line(probe: ProbeView, word: str, said: str, took: str = "") -> Table:
    """One line; where it is too long for the terminal, what is said goes on below itself."""
    line = Table.grid(padding=(0, 2, 0, 0))
    for width in (5, 10, 5):
        line.add_column(no_wrap=True, min_width=width)
    line.add_column(overflow="fold")
    line.add_column(no_wrap=True, style="dim")
    line.add_row(Text(f"  #{probe.number}"), screen.sha(probe.sha), screen.styled(word), screen.clean(said), took)
    return line


def _verdict(probe: ProbeView) -> Table:
    end = f"{probe.purpose}: " if probe.purpose is not Purpose.SEARCH else ""
    return _line(probe, str(probe.verdict), f"{end}{screen.first_line(probe.reason)}", screen.took(probe))


def _unneeded(probe: ProbeView) -> Table:
    line = _line(probe, "", "not needed any more")
    line.style = "dim"
    return line


def _by_end(probe: ProbeView) -> tuple[bool, datetime, int]:
    return probe.finished_at is None, probe.finished_at or probe.planned_at, probe.number


def _in_flight(probes: tuple[ProbeView, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    for probe in (probe for probe in probes if probe.state in LIVE_PROBES):
        started = probe.started_at or probe.queued_at or probe.planned_at
        where = f"on {screen.clean(probe.node)}" if probe.node else ""
        table.add_row(
            Text(f"  #{probe.number}"), screen.sha(probe.sha), Text(str(probe.state)), screen.since(started), where
        )
    return table
