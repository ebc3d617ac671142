"""Markers and labels, the same wherever they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

INK, QUIET, RULE = "#222222", "#666666", "#e4e4e4"
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


def markers(
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
        *columns(places),
        linestyle="none",
        marker=shape,
        markersize=size,
        markerfacecolor=face,
        markeredgecolor=colour,
        markeredgewidth=1 if hollow or shape == "x" else 0,
        gid=gid,
        label=label or f"_{gid}",
    )


def label_below(axes: Axes, names: Sequence[tuple[float, str, str]]) -> None:
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


def columns(places: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    listed = list(places)
    return [x for x, _ in listed], [min(max(y, -FARTHEST), FARTHEST) for _, y in listed]
