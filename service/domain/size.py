"""Sizes as people write them."""

from __future__ import annotations

import re

from service.domain.errors import BadRequest

#: A letter alone is what container engines mean by it.
_UNITS = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", start=1)
    for unit, base in ((letter, 1024), (f"{letter}ib", 1024), (f"{letter}b", 1000))
}
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,9})?) ?([A-Za-z]{0,3})")
LARGEST = 1 << 50


def size(written: str | float, *, field: str) -> int:
    """Bytes of `"16GiB"`, `"512m"`, `"64GB"` (10^9 each), or of a number of them. Errors: BadRequest."""
    parts = _SIZE.fullmatch(str(written).strip())
    factor = _UNITS.get(parts[2].lower()) if parts else None
    found = int(float(parts[1]) * factor) if parts and factor else 0
    if not 0 < found <= LARGEST:
        raise BadRequest(
            f"{field}: {str(written)[:80]!r} is no size between 1 byte and 1024 TiB",
            value=str(written),
            field=field,
            advice="write it like 16GiB, 512MiB or 64GB, or as a number of bytes",
        )
    return found


def told(size: int) -> str:
    """In the largest unit that it is a whole number of: "16 GiB", "1000 B"."""
    units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    return next((f"{size // factor} {unit}" for unit, factor in units if size % factor == 0 and size), f"{size} B")
