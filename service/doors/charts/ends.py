"""What both ends gave, run by run, beside the commits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from service.application.curve import Curve
from service.doors.charts.markers import INK, LOOKS, RULE, label_below, markers


def ends(axes: Axes, curve: Curve) -> None:
    """A strip of every run and, from four on, a box of the quartiles."""
    axes.set_xlim(-0.5, 1.5)
    sides = (curve.good.values, curve.bad.values)
    label_below(axes, [(at, f"{LOOKS[at].name} end", _runs(values)) for at, values in enumerate(sides)])
    axes.spines["left"].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    axes.tick_params(axis="y", labelleft=False, left=False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    for at, (look, values) in enumerate(zip(LOOKS, sides, strict=False)):
        finite = [value for value in values if math.isfinite(value)]
        places = [(at - 0.18 + 0.36 * _scattered(index), value) for index, value in enumerate(finite)]
        markers(axes, places, look.shape, look.pale, 3.5, f"end-{look.name}", "")
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
