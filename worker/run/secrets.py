"""What a run is given that nobody else may see: asked for by name, had from the node, and hidden in what it writes."""

from __future__ import annotations

import base64
import json
import re
import shlex
import urllib.parse
from collections.abc import Iterable, Mapping

from worker.errors import NodeFault

#: Shorter values would be found in any text.
SHORTEST = 4
#: So is a line of a value, or of what it is encoded to.
SHORTEST_LINE = 8
#: Of the lines that tools break base64 into.
WIDTHS = (64, 76)
_BYTES = ("utf-8", "surrogateescape")
_NAMED = {"\a": r"\a", "\b": r"\b", "\x1b": r"\E", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


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
    if len(value.encode(*_BYTES)) < SHORTEST:
        return set()
    # Each line counts by itself, since programs show texts by lines; a shell joins what it is not told to keep apart.
    lines = {line.strip() for line in value.splitlines()} - {value}
    parts = {value, " ".join(value.split()), *(line for line in lines if len(line.encode(*_BYTES)) >= SHORTEST_LINE)}
    found = {form.encode(*_BYTES) for part in parts for form in (part, *_quoted(part))}
    raws = [part.encode(*_BYTES) for part in parts]
    found |= {urllib.parse.quote(raw, safe=safe).encode() for raw in raws for safe in ("", "/")}
    found |= {urllib.parse.quote_plus(raw).encode() for raw in raws}
    raw = value.encode(*_BYTES)
    return {form for form in found if len(form) >= SHORTEST} | _in_base64(raw) | _in_lines(raw)


def _quoted(text: str) -> set[str]:
    """As JSON, Python and shells write it, without the marks around it."""
    raw = text.encode(*_BYTES)
    return {
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        repr(raw)[2:-1],
        shlex.quote(text).removeprefix("'").removesuffix("'"),
        text.replace("'", "'\\''"),
        _ansi_c(text, ascii_only=False),
        _ansi_c(text, ascii_only=True),
        # As bash's `printf %q` does where all can be shown.
        re.sub(r"""[ \t'"|&;()<>!{}*\[\]?^$`\\,]""", r"\\\g<0>", text),
    }


def _ansi_c(text: str, *, ascii_only: bool) -> str:
    """Bash's $'…'."""
    shown = text.replace("\\", r"\\").replace("'", r"\'")
    for sign, name in _NAMED.items():
        shown = shown.replace(sign, name)
    raw = shown.encode(*_BYTES)
    hidden = rb"[\x00-\x1f\x7f-\xff]" if ascii_only else rb"[\x00-\x1f\x7f]"
    return re.sub(hidden, lambda found: b"\\%03o" % found[0][0], raw).decode(*_BYTES)


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


def _in_lines(raw: bytes) -> set[bytes]:
    """Of it alone, broken into lines as tools do, without the signs at the end that others have a part in."""
    text = base64.b64encode(raw)[: len(raw) * 8 // 6]
    lines = [text[start : start + width] for width in WIDTHS for start in range(0, len(text), width)]
    return {line for line in lines if len(line) >= SHORTEST_LINE}
