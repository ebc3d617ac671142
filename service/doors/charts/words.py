"""A picture in words, and text that came from elsewhere made harmless and short enough for one."""

from __future__ import annotations

import re

from service.application.curve import Curve
from service.domain import amounts

#: No characters of XML, or such as turn the writing round, or break a line.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: str, most: int) -> str:
    fit = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", re.sub(r"[\t\r\n ]+", " ", text[: 4 * most]).strip())
    return fit if len(fit) <= most else f"{fit[: most - 1]}…"


def short(sha: str) -> str:
    return sha[:10]


def title(curve: Curve) -> str:
    return clean(
        f"{curve.name} over commits: {curve.headline}" if curve.headline else f"{curve.name} over commits", 300
    )


def description(curve: Curve) -> str:
    """What the picture shows, in words."""
    unit = curve.unit
    parts = [
        f"{len(curve.points)} of {curve.candidates + 1} commits were measured; {amounts.quality(unit, curve.better)}",
        *(
            f"{name} end: {amounts.level(side.level, unit) or 'no level yet'}, {len(side.values)} runs"
            for name, side in (("good", curve.good), ("bad", curve.bad))
        ),
        *(f"step at {_where(step.shas)}: {amounts.size(step.size, step.relative, unit)}" for step in curve.steps),
        *((f"searched: commits {curve.left[0]} to {curve.left[1]}",) if curve.left else ()),
        *curve.notes,
    ]
    return clean(". ".join(parts) + ".", 3000)


def _where(shas: tuple[str, ...]) -> str:
    return short(shas[0]) if len(shas) == 1 else f"one of {len(shas)} commits"
