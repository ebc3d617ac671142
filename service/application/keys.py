"""What a commit's wheel is known by: a key of all that goes into it, and one of what its compiled files are made from.

Two commits with the same key have the same wheel, which is then built once, for whoever asks.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from service.application.ports import History
from service.domain.bisection import Bisection, FailureIn, Request, ResolvedFixup
from service.domain.recipe import SandboxKind
from service.search.graph import Range

PROJECT = "pyproject.toml"
#: Tables of pyproject.toml that no build reads. Workers, who share no code with us, leave out the same ones.
IDLE_TOOLS = frozenset(
    """
    bandit basedpyright black bumpversion bumpver cibuildwheel codespell commitizen coverage deptry flake8
    importlinter interrogate isort mypy nox pixi poe poethepoet pydocstyle pylint pyrefly pyright pytest
    pytest-enabler refurb repo-review ruff semantic_release taskipy towncrier tox ty typos vulture yapf
    """.split()  # noqa: SIM905 (a list of so many is not read)
)


@dataclass(frozen=True)
class Keys:
    """`native`: None where no wheel is put together from another one's compiled files."""

    content: str
    native: str | None


@dataclass(frozen=True)
class Scope:
    """What a bisection looks at: the range, and the keys of its commits and ends; none where nothing is built."""

    range: Range
    keys: Mapping[str, Keys] = field(default_factory=dict)


def scope_of(history: History, bisection: Bisection) -> Scope:
    """Reads the repository, so not within a transaction."""
    request, bad = bisection.request, bisection.bad_sha or ""
    range_ = history.range(request.repo, bisection.good_shas, bad, first_parent=request.first_parent)
    if request.recipe.build_command is None:
        return Scope(range_)
    shas = frozenset({*range_.shas, *bisection.good_shas, bad})
    return Scope(range_, _keys(history, bisection, shas))


def fixups_of(history: History, bisection: Bisection, shas: Collection[str]) -> dict[str, tuple[ResolvedFixup, ...]]:
    """By commit, the fix-ups that apply to it, in the order in which they were given."""
    found: dict[str, tuple[ResolvedFixup, ...]] = {}
    for patch in bisection.setup.fixups:
        applies = frozenset(history.range(bisection.request.repo, (patch.good,), patch.bad).shas)
        for sha in applies.intersection(shas):
            found[sha] = (*found.get(sha, ()), patch)
    return found


def _keys(history: History, bisection: Bisection, shas: frozenset[str]) -> dict[str, Keys]:
    request, recipe = bisection.request, bisection.request.recipe
    trees = history.trees(request.repo, shas, recipe.wheel_paths)
    natives, settings = _natives(history, request, shas)
    fixups = fixups_of(history, bisection, shas)
    shared = _digest(_shared(bisection))
    keys = {}
    for sha in shas:
        fixed = [asdict(patch) | {"name": "", "good": "", "bad": ""} for patch in fixups.get(sha, ())]
        own = [shared, sha if _names_sha(request) else "", fixed, natives.get(sha), settings.get(sha)]
        keys[sha] = Keys(_digest([*own, trees[sha]]), _digest(own) if natives else None)
    return keys


def _natives(history: History, request: Request, shas: frozenset[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Of each commit, its native tree and its build settings; none where each wheel is built in full."""
    if not request.recipe.native_paths or request.failure_in is FailureIn.BUILD:
        return {}, {}
    natives = history.trees(request.repo, shas, request.recipe.native_paths)
    read: dict[bytes | None, str] = {}
    settings = {}
    for sha, text in history.files(request.repo, shas, PROJECT).items():
        if text not in read:
            read[text] = build_settings(text)
        settings[sha] = read[text]
    return natives, settings


def build_settings(pyproject: bytes | None) -> str:
    """A digest of what pyproject.toml tells the build, but for the project's own fields, which are metadata alone."""
    try:
        document = tomllib.loads((pyproject or b"").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return hashlib.sha256(pyproject or b"").hexdigest()
    tools = {name: table for name, table in document.pop("tool", {}).items() if name not in IDLE_TOOLS}
    project = document.pop("project", {})
    return _digest([document, tools, sorted(project.get("dynamic", [])) if isinstance(project, dict) else project])


def _shared(bisection: Bisection) -> list[object]:
    """What is the same for all commits. The repository is part of it: who can write to one shall not make another's."""
    request, recipe, builder = bisection.request, bisection.request.recipe, bisection.setup.builder
    in_build = request.failure_in is FailureIn.BUILD
    return [
        request.repo,
        recipe.build_command,
        recipe.build_network,
        recipe.package,
        recipe.overlay_command,
        [] if in_build else list(recipe.wheel_indexes),
        list(recipe.wheel_paths),
        list(recipe.native_paths),
        sorted(recipe.env.items()),
        request.sandbox,
        recipe.image if request.sandbox is SandboxKind.DOCKER and builder is None else None,
        asdict(builder) if builder is not None else None,
        [request.failure_in, request.reproduction.failure] if in_build else None,
    ]


def _names_sha(request: Request) -> bool:
    return any("{sha}" in value for value in request.recipe.env.values())


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:32]
