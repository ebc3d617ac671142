"""The picture itself: the metric over the commits, and beside it what both ends gave."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.application.curve import Curve, Mark, Point, Run
from service.doors import numbers
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
INK, QUIET, SHADE, STEP, PAPER, RULE = "#222222", "#666666", "#ececec", "#fbeee6", "#ffffff", "#e4e4e4"
#: As shares of the axis: between labels below the commits, and the least that a step's label needs to its right.
APART, ROOM = 0.145, 0.3
#: So many steps get a label; all are drawn.
LABELLED = 5
#: With more commits than that on a side, marks are smaller.
CROWDED = 40
#: Beyond it nothing can be placed.
FARTHEST = 1e100


@dataclass(frozen=True)
class Look:
    """Told apart by colour and by shape. `pale`: for single runs."""

    name: str
    colour: str
    pale: str
    shape: str


LOOKS = (
    Look("good", "#0072b2", "#a6cfe8", "o"),
    Look("bad", "#c44e00", "#efbf9d", "s"),
    Look("", "#666666", "#c4c4c4", "D"),
)


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
        _commits(main, [point for point in curve.points if (point.verdict or point.end) == look.name], look, low, high)
    _odd_runs(main, curve, low, high)
    _steps(main, curve)
    _ends(beside, curve)
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
    axes.set_ylabel(clean(numbers.quality(curve.unit, curve.better), 50), color=INK)
    labelled = _labelled(curve)
    names = [(float(point.position), short(point.sha), str(point.position)) for point in labelled]
    _label_below(axes, names)
    axes.xaxis.labelpad = 14
    axes.tick_params(colors=INK, labelsize=8)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    if not curve.points:
        axes.text(0.5, 0.5, "nothing is measured yet", transform=axes.transAxes, ha="center", color=QUIET)


def _label_below(axes: Axes, names: Sequence[tuple[float, str, str]]) -> None:
    """Two lines, each one text of its own, so that it is centred in any font."""
    axes.set_xticks([at for at, _, _ in names], [upper for _, upper, _ in names])
    for at, _, lower in names:
        axes.annotate(
            lower,
            (at, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -17),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
            color=INK,
            annotation_clip=False,
        )


def _labelled(curve: Curve) -> list[Point]:
    """As many as have room: the ends first, then commits at steps, then the others."""
    worse = {mark.high for mark in curve.steps}
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


def _bounds(level: numbers.Estimate) -> Iterator[float]:
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
    _marks(axes, [run for run in runs if run[0] in known], ".", look.pale, min(size + 1, 5), f"runs-{name}", "")
    alone = [run for run in runs if run[0] not in known]
    _marks(axes, alone, look.shape, look.colour, size - 1, f"alone-{name}", "" if sure else name, hollow=True)
    line = [(at, edge) for at, level in sure for edge in (max(level.low, low), min(level.high, high), math.nan)]
    if line:
        axes.plot(*_columns(line), color=look.colour, linewidth=0.3 * size, gid=f"intervals-{name}")
    _marks(axes, [(at, level.estimate) for at, level in sure], look.shape, look.colour, size, f"commits-{name}", name)


def _odd_runs(axes: Axes, curve: Curve, low: float, high: float) -> None:
    every = [(point.position, run) for point in curve.points for run in point.runs if math.isfinite(run.value)]
    dropped = [(at, min(max(run.value, low), high)) for at, run in every if run.dropped]
    marked = [(at, run.value) for at, run in every if run.marks and not run.dropped]
    _marks(axes, dropped, "x", QUIET, 5, "dropped", "dropped run")
    _marks(axes, marked, "v", "#a06a00", 5, "marked", _named(run for _, run in every), hollow=True)


def _named(runs: Iterable[Run]) -> str:
    """What marks say, without their details."""
    names = sorted({mark.partition(":")[0] for run in runs for mark in run.marks})
    return clean(", ".join(names), 40)


def _marks(
    axes: Axes,
    places: Sequence[tuple[float, float]],
    shape: str,
    colour: str,
    size: float,
    gid: str,
    label: str,
    *,
    hollow: bool = False,
) -> None:
    if not places:
        return
    face = "none" if hollow else colour
    axes.plot(
        *_columns(places),
        linestyle="none",
        marker=shape,
        markersize=size,
        markerfacecolor=face,
        markeredgecolor=colour,
        markeredgewidth=1 if hollow or shape == "x" else 0,
        gid=gid,
        label=label or f"_{gid}",
    )


def _steps(axes: Axes, curve: Curve) -> None:
    for rank, mark in enumerate(sorted(curve.steps, key=lambda mark: mark.low)):
        gid = f"step-{short(mark.shas[0])}" if mark.shas else "step"
        if mark.low == mark.high:
            axes.axvline(mark.low - 0.5, color=INK, linewidth=1.2, linestyle="--", gid=gid)
        else:
            searched = curve.left == (mark.low, mark.high)
            axes.axvspan(mark.low - 1, mark.high, color=SHADE if searched else STEP, linewidth=0, zorder=0.6, gid=gid)
            axes.axvline(mark.low - 1, color=INK, linewidth=0.8, linestyle="--")
            axes.axvline(mark.high, color=INK, linewidth=0.8, linestyle="--")
        if rank < LABELLED:
            _size(axes, curve, mark, rank)


def _size(axes: Axes, curve: Curve, mark: Mark, rank: int) -> None:
    first, last = (mark.low - 0.5,) * 2 if mark.low == mark.high else (mark.low - 1, mark.high)
    leftwards = last > (1 - ROOM) * curve.candidates
    axes.annotate(
        clean(numbers.size(mark.size, mark.relative, curve.unit), 60),
        (first if leftwards else last, 1 - 0.07 * rank),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if leftwards else 4, -2),
        textcoords="offset points",
        ha="right" if leftwards else "left",
        va="top",
        fontsize=8,
        color=INK,
    )


def _ends(axes: Axes, curve: Curve) -> None:
    """A strip of every run and, from four on, a box of the quartiles."""
    axes.set_xlim(-0.5, 1.5)
    sides = (curve.good.values, curve.bad.values)
    _label_below(axes, [(at, f"{LOOKS[at].name} end", _runs(values)) for at, values in enumerate(sides)])
    axes.spines["left"].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    axes.tick_params(axis="y", labelleft=False, left=False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    for at, (look, values) in enumerate(zip(LOOKS, sides, strict=False)):
        finite = [value for value in values if math.isfinite(value)]
        places = [(at - 0.18 + 0.36 * _scattered(index), value) for index, value in enumerate(finite)]
        _marks(axes, places, look.shape, look.pale, 3.5, f"end-{look.name}", "")
        if len(finite) >= 4:
            line = {"color": look.colour, "linewidth": 1.2}
            box = axes.boxplot(
                finite,
                positions=[at],
                widths=0.6,
                showfliers=False,
                manage_ticks=False,
                boxprops=line,
                whiskerprops=line,
                capprops=line,
                medianprops={**line, "linewidth": 2.2},
            )
            box["boxes"][0].set_gid(f"box-{look.name}")


def _runs(values: Sequence[float]) -> str:
    return "1 run" if len(values) == 1 else f"{len(values)} runs"


def _scattered(index: int) -> float:
    """From 0 to 1, evenly and always the same: multiples of the golden ratio."""
    return (index * 0.6180339887) % 1.0


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


def _columns(places: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    listed = list(places)
    return [x for x, _ in listed], [min(max(y, -FARTHEST), FARTHEST) for _, y in listed]
