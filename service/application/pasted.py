"""A script that was pasted from where people tell of failures, taken apart: its server, and what comes after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.bisection import Serve
from service.domain.recipe import Recipe
from service.domain.servers import Server


@dataclass(frozen=True)
class Project:
    """The package under test, by each of its names, and whether its wheel is installed before the script runs."""

    names: frozenset[str]
    installed: bool

    @staticmethod
    def of(recipe: Recipe, repo: str) -> Project:
        return Project(frozenset(), recipe.build_command is not None)


@dataclass(frozen=True)
class Split:
    script: str | None
    serve: Serve | None = None
    check: str | None = None
    notes: tuple[str, ...] = ()


def split(script: str, servers: Sequence[Server], project: Project) -> Split:
    return Split(script)
