"""A metric over the commits as text: a row a commit that was measured, in the order of the range."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from service.cli import screen
from service.domain import amounts
from service.doors.api.views import CurveView, IntervalView, PointView, SideView, StepView

SHA, VERDICT, GAP = 10, 4, "  "
#: Cells for the numbers themselves; a program that reads along gets the narrower of the usual ones.
NARROWEST, WIDEST, PIPED = 10, 60, 40
#: Cells that a subject needs at least, to be worth showing.
LEAST_SUBJECT = 8
#: A rule between rows is no longer.
RULE = 100


@dataclass(frozen=True)
class Glyphs:
    line: str
    left: str
    right: str
    marks: dict[str, str]
    run: str
    box: str
    median: str
    rule: str
    cut: str


DRAWN = Glyphs("─", "├", "┤", {"good": "●", "bad": "■", "": "◆"}, "·", "═", "╪", "─", "…")
ASCII = Glyphs("-", "|", "|", {"good": "o", "bad": "#", "": "?"}, ".", "=", "+", "-", "...")


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    width: int

    def at(self, value: float) -> int:
        """The cell of a number; at an edge when it lies outside."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(min(max(share, 0.0), 1.0) * (self.width - 1))


@dataclass(frozen=True)
class Plot:
    """`rows`: of commits at most, those that the search is about; all without."""

    curve: CurveView
    rows: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs = ASCII if options.ascii_only else DRAWN
        yield from _Drawing(self.curve, options.max_width, glyphs).lines(self.rows)


class _Drawing:
    def __init__(self, curve: CurveView, width: int, glyphs: Glyphs) -> None:
        self.curve = curve
        self.glyphs = glyphs
        self.width = width
        self.counts = {point.sha: _count(point) for point in curve.points}
        of_ends = (str(len(curve.good.values)), str(len(curve.bad.values)))
        self.counted = max(map(len, (*self.counts.values(), *of_ends, "runs")))
        cells = PIPED if width >= screen.WIDE else min(max(round(0.4 * width), NARROWEST), WIDEST)
        low, high = _limits(curve)
        self.scale = Scale(low, high, cells)
        #: What is left for a subject; None for as much as it needs.
        left = width - (SHA + VERDICT + cells + self.counted + 4 * len(GAP))
        self.subject = None if width >= screen.WIDE else left

    def lines(self, most: int | None) -> Iterator[Text]:
        named = f"{self.curve.name} ({amounts.quality(self.curve.unit, self.curve.better)})"
        yield Text(self._cut(screen.first_line(named), self.width), style="bold", no_wrap=True)
        if not self.curve.points:
            yield Text("nothing is measured yet", style="dim")
            return
        yield self._line("", "", self._ruler(), "runs", "", style="dim")
        for name, side in (("good", self.curve.good), ("bad", self.curve.bad)):
            yield self._end(name, side)
        yield from self._rows(_nearest(self.curve, most))

    def _rows(self, points: Sequence[PointView]) -> Iterator[Text]:
        rules = [(step.first, self._step(step)) for step in self.curve.steps]
        if (left := self.curve.left) is not None and left not in [(step.first, step.last) for step in self.curve.steps]:
            rules.append((left[0], f"still searched: {screen.count(left[1] - left[0] + 1, 'commit')}"))
        rules.sort()
        yield self._rule("")
        for point in points:
            while rules and rules[0][0] <= point.position:
                yield self._rule(rules.pop(0)[1])
            yield self._point(point)
        for _, said in rules:
            yield self._rule(said)
        if more := len(self.curve.points) - len(points):
            yield Text(f"{more} more measured", style="dim")

    def _point(self, point: PointView) -> Text:
        verdict = point.verdict or ""
        notes = sorted({mark.partition(":")[0] for run in point.runs for mark in run.marks})
        subject = screen.first_line(" ".join([*(f"[{note}]" for note in notes), point.subject]))
        drawn = Text(self._interval(point), style=screen.STYLES.get(verdict, ""))
        return self._line(screen.sha(point.sha), screen.styled(verdict), drawn, self.counts[point.sha], subject)

    def _interval(self, point: PointView) -> str:
        """The level in its interval, which goes on to the edge where it is open; without a level, the runs."""
        cells, level = [" "] * self.scale.width, point.level
        if level is None or level.estimate is None:
            for run in point.runs:
                if run.value is not None:
                    cells[self.scale.at(run.value)] = self.glyphs.run
            return "".join(cells)
        first = 0 if level.low is None else self.scale.at(level.low)
        last = self.scale.width - 1 if level.high is None else self.scale.at(level.high)
        cells[first : last + 1] = self.glyphs.line * (last + 1 - first)
        if level.low is not None:
            cells[first] = self.glyphs.left
        if level.high is not None:
            cells[last] = self.glyphs.right
        cells[self.scale.at(level.estimate)] = self.glyphs.marks.get(point.verdict or "", self.glyphs.marks[""])
        return "".join(cells)

    def _end(self, name: str, side: SideView) -> Text:
        values = sorted(value for value in side.values if value is not None)
        drawn = Text(self._quartiles(values), style=screen.STYLES[name])
        said = amounts.level(side.level, screen.first_line(self.curve.unit))
        return self._line(Text(f"{name} end", style=screen.STYLES[name]), "", drawn, str(len(values)), said)

    def _quartiles(self, values: Sequence[float]) -> str:
        """From the least run to the largest, the middle half as a box around the median."""
        cells = [" "] * self.scale.width
        if len(values) < 2:
            for value in values:
                cells[self.scale.at(value)] = self.glyphs.run
            return "".join(cells)
        lower, median, upper = quantiles(values, n=4, method="inclusive")
        first, box, middle, box_end, last = (self.scale.at(v) for v in (values[0], lower, median, upper, values[-1]))
        cells[first : last + 1] = self.glyphs.line * (last + 1 - first)
        cells[first], cells[last] = self.glyphs.left, self.glyphs.right
        cells[box : box_end + 1] = self.glyphs.box * (box_end + 1 - box)
        cells[box], cells[box_end] = "[", "]"
        cells[middle] = self.glyphs.median
        return "".join(cells)

    def _ruler(self) -> str:
        """The numbers at both edges."""
        low, high = amounts.number(self.scale.low), amounts.number(self.scale.high)
        return low + high.rjust(self.scale.width - len(low)) if len(low + high) < self.scale.width else low

    def _step(self, step: StepView) -> str:
        size = amounts.size(step.size, step.relative, screen.first_line(self.curve.unit))
        return size if len(step.shas) == 1 else f"{size}: one of {len(step.shas)} commits, {step.first} to {step.last}"

    def _rule(self, said: str) -> Text:
        width = min(self.width, RULE)
        label = f"{self.glyphs.rule * 2} {self._cut(said, width - 6)} " if said else ""
        return Text(label + self.glyphs.rule * (width - cell_len(label)), style="bold" if said else "dim", no_wrap=True)

    def _line(
        self, first: Text | str, second: Text | str, drawn: Text | str, count: str, last: str, style: str = ""
    ) -> Text:
        columns = [_padded(first, SHA), _padded(second, VERDICT), _padded(drawn, self.scale.width)]
        columns.append(Text(count.rjust(self.counted)))
        if last and (self.subject is None or self.subject >= LEAST_SUBJECT):
            columns.append(Text(self._cut(last, self.subject)))
        line = Text(GAP, no_wrap=True).join(columns)
        line.no_wrap = True
        line.rstrip()
        line.stylize(style)
        return line

    def _cut(self, text: str, width: int | None) -> str:
        if width is None or cell_len(text) <= width:
            return text
        return set_cell_size(text, width - cell_len(self.glyphs.cut)).rstrip() + self.glyphs.cut


def _padded(text: Text | str, width: int) -> Text:
    found = text.copy() if isinstance(text, Text) else Text(text)
    found.pad_right(width - found.cell_len)
    return found


def _count(point: PointView) -> str:
    """How many runs count, of how many."""
    kept = sum(not run.dropped for run in point.runs)
    return str(kept) if kept == len(point.runs) else f"{kept} of {len(point.runs)}"


def _limits(curve: CurveView) -> tuple[float, float]:
    """Around the levels and the runs that count."""
    levels = [edge for point in curve.points if point.level is not None for edge in _edges(point.level)]
    runs = [run.value for point in curve.points for run in point.runs if not run.dropped]
    ends = [*curve.good.values, *curve.bad.values]
    known = [value for value in (*levels, *runs, *ends) if value is not None and math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _edges(level: IntervalView) -> Iterable[float | None]:
    return level.estimate, level.low, level.high


def _nearest(curve: CurveView, most: int | None) -> Sequence[PointView]:
    """Those nearest to what is still searched, or to the largest step; in order."""
    if most is None or len(curve.points) <= most:
        return curve.points
    spans = [curve.left] if curve.left is not None else [(step.first, step.last) for step in curve.steps[:1]]
    low, high = spans[0] if spans else (0, curve.candidates)
    middle = (low + high) / 2
    kept = sorted(curve.points, key=lambda point: abs(point.position - middle))[:most]
    return sorted(kept, key=lambda point: point.position)
