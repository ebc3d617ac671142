"""What a run is given that nobody else may see: asked for by name, had from the node, and hidden in what it writes."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Iterable, Mapping

from worker.errors import NodeFault

#: Shorter values would be found in any text.
SHORTEST = 4


def picked(offered: Mapping[str, str | None], names: Iterable[str]) -> dict[str, str]:
    """The values of these names. `offered`: None where the node offers it, but does not have it. Errors: NodeFault."""
    found: dict[str, str] = {}
    for name in names:
        value = offered.get(name)
        if name not in offered:
            advice = f"Add {name} to FIRSTBAD_SECRETS of this node, if its runs may have it."
            raise NodeFault("secret", f"this node does not offer the secret {name}", advice)
        if not value:
            advice = f"Set {name} where the worker starts, or take it from its FIRSTBAD_SECRETS."
            raise NodeFault("secret", f"this node offers the secret {name}, but has no value for it", advice)
        found[name] = value
    return found


def forms(secrets: Mapping[str, str]) -> list[tuple[bytes, str]]:
    """What a value may look like in a log, and the name to put there instead; the longest first."""
    found: dict[bytes, str] = {}
    for name, value in secrets.items():
        for form in _forms(value.strip()):
            found.setdefault(form, name)
    return sorted(found.items(), key=lambda form: (-len(form[0]), form[0]))


def _forms(value: str) -> set[bytes]:
    raw = value.encode("utf-8", "surrogateescape")
    if len(raw) < SHORTEST:
        return set()
    quoted = {urllib.parse.quote(raw, safe=safe).encode() for safe in ("", "/")}
    return {raw, *quoted, urllib.parse.quote_plus(raw).encode(), *_in_base64(raw)}


def _in_base64(raw: bytes) -> set[bytes]:
    """Wherever it stands in what was encoded: without the signs that its neighbours have a part in."""
    found = set()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + raw)
            first = -(-before * 8 // 6)
            last = (before + len(raw)) * 8 // 6
            found.add(text[first:last])
    return {form for form in found if len(form) > SHORTEST}
