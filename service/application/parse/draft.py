"""What was read of a text: values for a request, each with where it comes from, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Certainty(StrEnum):
    """`high`: the text says so. `medium`: it follows from the words around. `low`: it is likely; look at it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        return ("low", "medium", "high").index(self.value)


@dataclass(frozen=True)
class Origin:
    """A piece of the text, in characters from its beginning; `quoted` is just what stands there."""

    start: int
    end: int
    quoted: str


@dataclass(frozen=True)
class Field:
    """`name`: as in a request, parts of a mapping by dots; `why`: in words."""

    name: str
    value: object
    certainty: Certainty
    why: str
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Candidate:
    value: str
    origin: Origin


@dataclass(frozen=True)
class Missing:
    """What a request needs and the text does not say for sure. `candidates`: what it may be."""

    name: str
    question: str
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Draft:
    fields: tuple[Field, ...]
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def request(self) -> Mapping[str, object]:
        """As a request file holds it."""
        document: dict[str, object] = {}
        for each in self.fields:
            outer, dot, inner = each.name.partition(".")
            if dot:
                part = document.setdefault(outer, {})
                assert isinstance(part, dict)
                part[inner] = each.value
            else:
                document[outer] = each.value
        return document


@dataclass(frozen=True)
class Known:
    """What the service knows that helps to read: `projects`: names of recipes, by the package that each builds."""

    projects: Mapping[str, str] = field(default_factory=dict)
    project: str | None = None
