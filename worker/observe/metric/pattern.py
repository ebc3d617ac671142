"""Numbers by a regular expression."""

from __future__ import annotations

from typing import Any

import re2

from worker.observe.metric.values import SHOWN, Found, NothingFound, NotThere


def by_pattern(text: bytes, pattern: str) -> list[Found]:
    """RE2: no expression takes more than linear time. `^` and `$` are those of lines. Errors: NothingFound."""
    wanted = _compiled(pattern)
    value, unit = _groups(wanted)
    matches = 0
    found: list[Found] = []
    for match in wanted.finditer(text):
        matches += 1
        said = match.group(value)
        if said is not None:
            found.append(Found(_text(said), _text(match.group(unit) or b"").strip() if unit else ""))
    if not found:
        how = "matches nothing in the output" if not matches else "matches, but its group takes no part in that"
        raise NotThere(f"the pattern {pattern[:SHOWN]!r} {how}: correct it, or let the check print the number")
    return found


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?m){pattern}".encode(), options)
    except re2.error as error:
        raise NothingFound(f"the pattern {pattern[:SHOWN]!r} cannot be used: {_words(error)}") from error


def _groups(wanted: Any) -> tuple[int, int]:
    """The numbers of the groups of the value, 0 for the whole match, and of the unit, 0 for none."""
    named = {_name(name): number for name, number in wanted.groupindex.items()}
    unit = named.get("unit", 0)
    others = [number for number in range(1, wanted.groups + 1) if number != unit]
    return named.get("value", others[0] if others else 0), unit


def _name(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _words(error: re2.error) -> str:
    told = error.args[0] if error.args else ""
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    return text.replace(": (?m)", ": ")


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace")
