"""Text that came from elsewhere, made harmless and short enough for a picture."""

from __future__ import annotations

import re

#: No characters of XML, or such as turn the writing round, or break a line.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: str, most: int) -> str:
    fit = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", re.sub(r"[\t\r\n ]+", " ", text[: 4 * most]).strip())
    return fit if len(fit) <= most else f"{fit[: most - 1]}…"


def short(sha: str) -> str:
    return sha[:10]
