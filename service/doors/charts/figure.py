"""The picture itself: the metric over the commits, and beside it what both ends gave."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.application.curve import Curve, Point, Run, Step
from service.domain import amounts
from service.doors.charts.ends import ends
from service.doors.charts.markers import FARTHEST, INK, LOOKS, QUIET, RULE, Look, columns, label_below, markers
from service.doors.charts.words import clean, short

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "firstbad",
        "text.parse_math": False,
        "text.usetex": False,
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.unicode_minus": True,
        "path.simplify": False,
    }
)
# The reader's own fonts draw the text; those here only measure it.
warnings.filterwarnings("ignore", message="Glyph .* missing from font")

WIDTH, HEIGHT = 9.0, 4.3
MAIN, BESIDE = (0.09, 0.25, 0.65, 0.58), (0.79, 0.25, 0.19, 0.58)
SHADE, STEP, PAPER = "#ececec", "#fbeee6", "#ffffff"
#: As shares of the axis: between labels below the commits, and the least that a step's label needs to its right.
APART, ROOM = 0.145, 0.3
#: So many steps get a label; all are drawn.
LABELLED = 5
#: With more commits than that on a side, markers are smaller.
CROWDED = 40


def drawn(curve: Curve) -> bytes:
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor=PAPER)
    main = figure.add_axes(MAIN)
    beside = figure.add_axes(BESIDE, sharey=main)
    _frame(figure, main, curve)
    low, high = _limits(curve)
    main.set_ylim(low, high)
    _searched(main, curve)
    _levels_of_ends(main, curve)
    for look in LOOKS:
        _commits(
            main, [point for point in curve.points if (point.verdict or point.end or "") == look.name], look, low, high
        )
    _odd_runs(main, curve, low, high)
    _steps(main, curve)
    ends(beside, curve)
    _legend(figure, main)
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _frame(figure: Figure, axes: Axes, curve: Curve) -> None:
    figure.text(MAIN[0], 0.955, clean(curve.name, 60), fontsize=12, fontweight="bold", color=INK, va="center")
    figure.text(MAIN[0], 0.895, clean(curve.headline, 110), color=QUIET, va="center")
    margin = 0.03 * curve.candidates + 0.3
    axes.set_xlim(-margin, curve.candidates + margin)
    axes.set_xlabel(f"commit, and its place among {curve.candidates} candidates (0: the good end)", color=INK)
    axes.set_ylabel(clean(amounts.quality(curve.unit, curve.better), 50), color=INK)
    labelled = _labelled(curve)
    names = [(float(point.position), short(point.sha), str(point.position)) for point in labelled]
    label_below(axes, names)
    axes.xaxis.labelpad = 14
    axes.tick_params(colors=INK, labelsize=8)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    if not curve.points:
        axes.text(0.5, 0.5, "nothing is measured yet", transform=axes.transAxes, ha="center", color=QUIET)


def _labelled(curve: Curve) -> list[Point]:
    """As many as have room: the ends first, then commits at steps, then the others."""
    worse = {step.last for step in curve.steps}
    wanted = sorted(curve.points, key=lambda point: (not point.end, point.position not in worse, point.position))
    apart = APART * max(curve.candidates, 1)
    kept: list[Point] = []
    for point in wanted:
        if all(abs(point.position - other.position) >= apart for other in kept):
            kept.append(point)
    return kept


def _limits(curve: Curve) -> tuple[float, float]:
    """Around all that counts; what was dropped may lie outside and is drawn at the edge."""
    kept = [run.value for point in curve.points for run in point.runs if not run.dropped]
    levels = [value for point in curve.points if point.level for value in _bounds(point.level)]
    values = [min(max(value, -FARTHEST), FARTHEST) for value in (*kept, *levels) if math.isfinite(value)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.05 * abs(low) or 1.0
    # Above them stand the sizes of the steps.
    return low - margin, high + margin * (1.5 + min(len(curve.steps), LABELLED))


def _bounds(level: amounts.Estimate) -> Iterator[float]:
    yield from (value for value in (level.estimate, level.low, level.high) if value is not None)


def _searched(axes: Axes, curve: Curve) -> None:
    if curve.left is None:
        return
    first, last = curve.left
    axes.axvspan(first - 1, last, color=SHADE, linewidth=0, zorder=0.5, gid="searched", label="still searched")


def _levels_of_ends(axes: Axes, curve: Curve) -> None:
    for look, side in zip(LOOKS, (curve.good, curve.bad), strict=False):
        if side.level is not None and math.isfinite(side.level.estimate):
            axes.axhline(side.level.estimate, color=look.colour, linewidth=0.8, linestyle=":", gid=f"level-{look.name}")


def _commits(axes: Axes, points: Sequence[Point], look: Look, low: float, high: float) -> None:
    """Single runs, and over them each commit's level with its interval; runs stand out where no level is known."""
    name, size = look.name or "undecided", 3 if len(points) > CROWDED else 5
    sure = [(point.position, point.level) for point in points if point.level and math.isfinite(point.level.estimate)]
    known = {at for at, _ in sure}
    runs = [(point.position, run.value) for point in points for run in point.runs if _counts(run)]
    markers(axes, [run for run in runs if run[0] in known], ".", look.pale, min(size + 1, 5), f"runs-{name}", "")
    alone = [run for run in runs if run[0] not in known]
    markers(axes, alone, look.shape, look.colour, size - 1, f"alone-{name}", "" if sure else name, hollow=True)
    line = [(at, edge) for at, level in sure for edge in (max(level.low, low), min(level.high, high), math.nan)]
    if line:
        axes.plot(*columns(line), color=look.colour, linewidth=0.3 * size, gid=f"intervals-{name}")
    markers(axes, [(at, level.estimate) for at, level in sure], look.shape, look.colour, size, f"commits-{name}", name)


def _odd_runs(axes: Axes, curve: Curve, low: float, high: float) -> None:
    every = [(point.position, run) for point in curve.points for run in point.runs if math.isfinite(run.value)]
    dropped = [(at, min(max(run.value, low), high)) for at, run in every if run.dropped]
    marked = [(at, run.value) for at, run in every if run.marks and not run.dropped]
    markers(axes, dropped, "x", QUIET, 5, "dropped", "dropped run")
    markers(axes, marked, "v", "#a06a00", 5, "marked", _named(run for _, run in every), hollow=True)


def _named(runs: Iterable[Run]) -> str:
    """What marks say, without their details."""
    names = sorted({mark.partition(":")[0] for run in runs for mark in run.marks})
    return clean(", ".join(names), 40)


def _steps(axes: Axes, curve: Curve) -> None:
    for rank, step in enumerate(sorted(curve.steps, key=lambda step: step.first)):
        gid = f"step-{short(step.shas[0])}" if step.shas else "step"
        if step.first == step.last:
            axes.axvline(step.first - 0.5, color=INK, linewidth=1.2, linestyle="--", gid=gid)
        else:
            searched = curve.left == (step.first, step.last)
            axes.axvspan(step.first - 1, step.last, color=SHADE if searched else STEP, linewidth=0, zorder=0.6, gid=gid)
            axes.axvline(step.first - 1, color=INK, linewidth=0.8, linestyle="--")
            axes.axvline(step.last, color=INK, linewidth=0.8, linestyle="--")
        if rank < LABELLED:
            _size(axes, curve, step, rank)


def _size(axes: Axes, curve: Curve, step: Step, rank: int) -> None:
    first, last = (step.first - 0.5,) * 2 if step.first == step.last else (step.first - 1, step.last)
    leftwards = last > (1 - ROOM) * curve.candidates
    axes.annotate(
        clean(amounts.size(step.size, step.relative, curve.unit), 60),
        (first if leftwards else last, 1 - 0.07 * rank),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if leftwards else 4, -2),
        textcoords="offset points",
        ha="right" if leftwards else "left",
        va="top",
        fontsize=8,
        color=INK,
    )


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(MAIN[0] - 0.01, 0.0),
            ncols=6,
            frameon=False,
            fontsize=8,
            labelcolor=INK,
            handletextpad=0.4,
            columnspacing=1.5,
        )


def _counts(run: Run) -> bool:
    return not run.dropped and math.isfinite(run.value)
