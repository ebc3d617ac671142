"""How a run looks: a line a verdict; in a terminal, the range as it narrows and what runs, below."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from service.cli import screen
from service.domain.bisection import Purpose
from service.domain.duration import spoken
from service.domain.evidence import Verdict
from service.local.asked import Judged, Want
from service.local.history import Title
from service.local.log import RunFolder
from service.local.loop import End
from service.local.running import Run
from service.local.step import Step, named
from service.local.wrong_ends import WrongEnds
from service.search import Contradiction, Found, Suspects

BAR_WIDTH, NARROWEST_BAR = 32, 6
#: Of suspects so many are told, and of a failing log so many lines.
MOST_SUSPECTS = 10


class Shown:
    """A Teller, and all that changes while it goes on."""

    def __init__(self, run: Run, out: Console) -> None:
        self._run, self._out = run, out
        self._flying: dict[int, tuple[Want, float]] = {}
        self._seconds: list[float] = []
        self._at: Step | None = None
        self._done, self._said = 0, ""
        live = out.is_terminal and not out.is_dumb_terminal
        self._live = Live(self, console=out, refresh_per_second=4, transient=True) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def began(self, number: int, want: Want) -> None:
        self._flying[number] = (want, monotonic())

    def ended(self, one: Judged) -> None:
        self._flying.pop(one.seen.number, None)
        self._seconds.append(one.seen.seconds)
        self.put(line(one))

    def unneeded(self, number: int, want: Want) -> None:
        self._flying.pop(number, None)
        self.put(_row(number, want.sha, Text(""), Text("not needed any more", style="dim"), ""))

    def stands(self, at: Step, done: int) -> None:
        self._at, self._done = at, done
        if self._live is None and at.left is not None and (said := self._standing()) != self._said:
            self._said = said
            self.put(Text(f"  {said}", style="dim"))

    def put(self, part: RenderableType) -> None:
        screen.put(self._live.console if self._live is not None else self._out, part)

    def _standing(self) -> str:
        parts = []
        if self._at is not None and self._at.left is not None:
            parts.append(f"{self._at.left} of {len(self._run.task.range_)} candidates left")
        parts.append(f"{screen.count(self._done, 'probe')} done")
        if self._at is not None and self._at.expected:
            parts.append(f"about {round(self._at.expected)} to come{self._eta(self._at.expected)}")
        return ", ".join(parts)

    def _eta(self, expected: float) -> str:
        """W at once leave one part of W + 1 each time."""
        if not self._seconds:
            return ""
        rounds = expected / math.log2(self._run.task.width + 1)
        return f" in {spoken(rounds * sum(self._seconds) / len(self._seconds))}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._at is not None and self._at.over is not None:
            return
        said = self._standing()
        width = min(BAR_WIDTH, options.max_width - len(said) - 2)
        row = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=1.0, completed=self._narrowed(), width=width, complete_style="cyan")
        row.add_row(*([bar] if width >= NARROWEST_BAR else []), Text(said))
        yield Text("")
        yield row
        for number, (want, began) in list(self._flying.items()):
            yield Text(f"  #{number}  {want.sha[:10]}  {_end(want)}{spoken(monotonic() - began)}", style="dim")

    def _narrowed(self) -> float:
        """0 to 1, in bits."""
        left = self._at.left if self._at is not None else None
        most = len(self._run.task.range_)
        return 1.0 - math.log2(left) / math.log2(most) if left and most > 1 else 0.0


def shown(run: Run, folder: RunFolder, as_json: bool) -> Shown:
    """With --json all but the answer goes to standard error."""
    out = screen.console(stderr=as_json)
    terms, asked = run.asked.terms, run.asked
    olds = ", ".join(sha[:12] for sha in asked.olds)
    many = screen.count(len(run.task.range_), "candidate")
    made = Shown(run, out)
    made.put(Text(f"{terms.old} {olds} .. {terms.new} {asked.new[:12]}: {many}", style="bold"))
    for sha in run.task.bases:
        made.put(Text(f"note: {sha[:12]} is a merge base, which is tried as well"))
    if known := len(folder.seen()):
        made.put(Text(f"goes on where it was interrupted, with {screen.count(known, 'probe')}; --again begins anew"))
    return made


def line(one: Judged) -> Table:
    said = Text(screen.clean(f"{_end(one.seen)}{screen.first_line(one.reason)}"))
    if one.note:
        said.append(f"\n{screen.clean(one.note)}", style="yellow")
    return _row(one.seen.number, one.seen.sha, screen.styled(one.verdict.value), said, spoken(one.seen.seconds))


def _end(of: object) -> str:
    purpose = getattr(of, "purpose", Purpose.SEARCH)
    return "" if purpose is Purpose.SEARCH else f"{purpose}: "


def _row(number: int, sha: str, word: Text, said: Text, took: str) -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    for width in (5, 10, 5):
        row.add_column(no_wrap=True, min_width=width)
    row.add_column(overflow="fold")
    row.add_column(no_wrap=True, style="dim")
    row.add_row(Text(f"  #{number}"), screen.sha(sha), word, said, took)
    return row


def answer(run: Run, folder: RunFolder, end: End, titles: Mapping[str, Title]) -> None:
    out = screen.console()
    out.print("")
    match end.step.over:
        case WrongEnds(why=why, advice=advice, seen=seen):
            _refused(why, advice, seen, folder)
        case Found(sha=sha, confidence=confidence):
            sure = f" ({confidence:.1%} sure)" if run.task.flaky else ""
            out.print(Text(f"{sha} is the {run.asked.terms.answer}{sure}", style="bold green"), soft_wrap=True)
            screen.put(out, _about(titles.get(sha), end.judged, folder))
        case Suspects(shas=shas, why=why):
            _several(out, f"The {run.asked.terms.answer} is one of {len(shas)}: {why}", shas, titles)
        case Contradiction(why=why):
            said = f"No one commit explains all that was seen: {why}. Where the failure is flaky: --flaky"
            _several(out, said, named(end.step), titles)
    out.print(Text(f"logs    {folder.path}"), soft_wrap=True)
    out.print(Text(f"replay  git bisect replay {shlex.quote(str(folder.replay))}"), soft_wrap=True)


def _several(out: Console, said: str, shas: Sequence[str], titles: Mapping[str, Title]) -> None:
    out.print(Text(said, style="yellow"), soft_wrap=True)
    for sha in shas[:MOST_SUSPECTS]:
        out.print(Text(f"  {sha} {screen.clean(titles[sha].subject) if sha in titles else ''}"), soft_wrap=True)
    if len(shas) > MOST_SUSPECTS:
        out.print(f"  and {len(shas) - MOST_SUSPECTS} more")


def _about(title: Title | None, judged: Sequence[Judged], folder: RunFolder) -> Table:
    pairs = screen.pairs()
    for name, value in _told(title, judged, folder):
        pairs.add_row(f"  {name}", Text(screen.clean(value)))
    return pairs


def _told(title: Title | None, judged: Sequence[Judged], folder: RunFolder) -> Iterator[tuple[str, str]]:
    if title is None:
        return
    yield from (("subject", title.subject), ("author", title.author), ("date", title.day))
    failed = next((one for one in judged if one.seen.sha == title.sha and one.verdict is Verdict.BAD), None)
    if failed is not None:
        yield "failure", screen.first_line(failed.reason)
        if failed.seen.log:
            yield "log", str(folder.path / failed.seen.log)
    yield "probes", f"{len(judged)} in all"


def _refused(why: str, advice: str, seen: Sequence[Judged], folder: RunFolder) -> None:
    err = screen.console(stderr=True)
    err.print(Text.assemble(("firstbad: ", "bold red"), screen.clean(why)), soft_wrap=True)
    err.print(Text(f"  {screen.clean(advice)}"), soft_wrap=True)
    for one in seen:
        if one.seen.outcome.log is not None:
            for text in one.seen.outcome.log.last_lines:
                err.print(Text(f"  | {screen.clean(text)}", style="dim"), soft_wrap=True)
            err.print(Text(f"  its log: {folder.path / one.seen.log}"), soft_wrap=True)


def interrupted(folder: RunFolder) -> None:
    err = screen.console(stderr=True)
    err.print(Text(f"\nInterrupted. The same command goes on where it was; logs: {folder.path}"), soft_wrap=True)
