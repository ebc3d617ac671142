"""Ready-made ways to the numbers that well-known tools print."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from service.domain.metric import Aggregate, Better, Column

_PART = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Number:
    """One number, or a family of them. `name` may have parts, as in "{test}.median", which stand again in what finds
    the number: `pattern` (there escaped), `json_path` and `unit_path` (there between double quotes) and `csv`.

    `parts`: regular expressions that parts must match in full. `label`: how the tool prints the name. `better`: None
    where it is not known. `aggregate`: what is made of several numbers, where a tool prints several of the same.
    """

    name: str
    better: Better | None = None
    unit: str = ""
    label: str = ""
    pattern: str | None = None
    json_path: str | None = None
    unit_path: str | None = None
    csv: Column | None = None
    aggregate: Aggregate | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def named(self, written: str) -> Number | None:
        """With its parts filled in, when this is its name, or its label, alone or as printed with the unit."""
        labels = (self.label, f"{self.label} ({self.unit})") if self.label else ()
        for template in (self.name, *labels):
            found = re.fullmatch(self._expression(template), written, re.IGNORECASE)
            if found is not None:
                return self._filled(found.groupdict())
        return None

    def _expression(self, template: str) -> str:
        """A part that stands in it twice is the same twice."""
        made, seen = "", set[str]()
        for place, piece in enumerate(_PART.split(template)):
            if not place % 2:
                made += re.escape(piece)
            else:
                made += f"(?P={piece})" if piece in seen else f"(?P<{piece}>{self.parts.get(piece, '.+')})"
                seen.add(piece)
        return made

    def _filled(self, parts: Mapping[str, str]) -> Number:
        label = _put(self.label, parts)
        where = {key: _put(value, parts) for key, value in self.csv.where.items()} if self.csv is not None else {}
        return replace(
            self,
            name=_put(self.name, parts),
            label=label,
            pattern=_put(self.pattern, {**parts, "label": label}, re.escape) if self.pattern is not None else None,
            json_path=_put(self.json_path, parts, _quotable) if self.json_path is not None else None,
            unit_path=_put(self.unit_path, parts, _quotable) if self.unit_path is not None else None,
            csv=replace(self.csv, where=where) if self.csv is not None else None,
        )


@dataclass(frozen=True)
class Reader:
    """Of one tool's output. `pattern`: of those numbers that are found in no other way; it may hold "{label}"."""

    name: str
    numbers: tuple[Number, ...]
    pattern: str | None = None

    def number(self, written: str) -> Number | None:
        """The first that has this name, complete."""
        return next((found for each in self._complete() if (found := each.named(written)) is not None), None)

    def _complete(self) -> tuple[Number, ...]:
        return tuple(
            replace(each, pattern=self.pattern)
            if each.pattern is None and each.json_path is None and each.csv is None
            else each
            for each in self.numbers
        )


def key(name: str) -> str:
    """By which a reader is known however its name's words are joined."""
    return re.sub(r"[-_. ]+", "-", name.strip().lower())


def _put(template: str, parts: Mapping[str, str], written: Callable[[str], str] = str) -> str:
    return _PART.sub(lambda match: written(parts[match[1]]) if match[1] in parts else match[0], template)


def _quotable(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
