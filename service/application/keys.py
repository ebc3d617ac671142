"""What a commit's wheel is known by: a key of all that goes into it, and one of what its compiled files are made from.

Two commits with the same key have the same wheel, which is then built once, for whoever asks.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache

from service.application.ports import History
from service.domain.bisection import Bisection, FailureIn, Request, ResolvedFixup
from service.domain.recipe import SandboxKind
from service.search.graph import Range
from service.search.priors import Clues, asked_words, pointers, weights

PROJECT = "pyproject.toml"
#: What setuptools reads besides: no wheel is put together from another one where these differ.
STEERING = ("setup.py", "setup.cfg", "MANIFEST.in")
#: It shapes the tree that a build gets: ends of lines, and what is filled in.
ATTRIBUTES = ".gitattributes"
#: Tables of pyproject.toml that no build reads. Workers, who share no code with us, leave out the same ones.
IDLE_TOOLS = frozenset(
    """
    bandit basedpyright black bumpversion bumpver codespell commitizen coverage deptry flake8
    importlinter interrogate isort mypy pydocstyle pylint pyrefly pyright pytest pytest-enabler
    refurb repo-review ruff semantic_release towncrier ty typos vulture yapf
    """.split()  # noqa: SIM905 (a list of so many is not read)
)
#: A longer text, or a line with more dots, is not parsed: nested keys take quadratic time.
PARSED_BYTES, PARSED_DOTS = 64 * 1024, 200
#: In a longer range, nobody looks first where a failure points: to read what so many commits changed takes longer than
#: the probes that it saves.
MOST_LED = 20_000
#: Remembered, as what commits changed never changes: every step of a bisection asks for the same one.
LEADS_KEPT = 32
_NAMED = re.compile(r"[\w-][\w./-]*[./][\w./-]*")


@dataclass(frozen=True)
class Keys:
    """`native`: None where no wheel is put together from another one's compiled files."""

    content: str
    native: str | None


@dataclass(frozen=True)
class Lead:
    """Where to look first. `clues`: what it was made from; `prior`: a weight for each commit; `points`: the clues that
    weigh most."""

    clues: Clues | None = None
    prior: Mapping[str, float] | None = None
    points: tuple[str, ...] = ()


NO_LEAD = Lead()


@dataclass(frozen=True)
class Scope:
    """What a bisection looks at: the range, and the keys of its commits and ends; none where nothing is built."""

    range: Range
    keys: Mapping[str, Keys] = field(default_factory=dict)
    lead: Lead = NO_LEAD


def scope_of(history: History, bisection: Bisection, clues: Clues | None = None) -> Scope:
    """Reads the repository, so not within a transaction."""
    request, bad = bisection.request, bisection.bad_sha or ""
    range_ = range_of(history, bisection)
    lead = _lead(history, request.repo, range_, clues)
    if request.recipe.build_command is None:
        return Scope(range_, lead=lead)
    shas = frozenset({*range_.shas, *bisection.good_shas, bad})
    return Scope(range_, _keys(history, bisection, shas), lead)


def range_of(history: History, bisection: Bisection) -> Range:
    """Once its commits are looked up."""
    request, bad = bisection.request, bisection.bad_sha or ""
    return history.range(request.repo, bisection.good_shas, bad, first_parent=request.first_parent)


@lru_cache(maxsize=LEADS_KEPT)
def _lead(history: History, repo: str, range_: Range, clues: Clues | None) -> Lead:
    if clues is None or len(range_) > MOST_LED:
        return Lead(clues)
    changes = list(history.changes(repo, range_.shas, asked_words(clues)).values())
    found = weights(changes, clues)
    return Lead(clues, found, pointers(changes, clues) if found else ())


def fixups_of(history: History, bisection: Bisection, shas: Collection[str]) -> dict[str, tuple[ResolvedFixup, ...]]:
    """By commit, the fix-ups that apply to it, in the order in which they were given."""
    found: dict[str, tuple[ResolvedFixup, ...]] = {}
    for patch in bisection.setup.fixups:
        applies = frozenset(history.range(bisection.request.repo, (patch.good,), patch.bad).shas)
        for sha in applies.intersection(shas):
            found[sha] = (*found.get(sha, ()), patch)
    return found


def _keys(history: History, bisection: Bisection, shas: frozenset[str]) -> dict[str, Keys]:
    request = bisection.request
    trees = history.trees(request.repo, shas, request.recipe.wheel_paths)
    steering = _steering(history, request.repo, shas)
    natives = _natives(history, request, shas, steering)
    fixups = fixups_of(history, bisection, shas)
    shared = _digest(_shared(bisection))
    keys = {}
    for sha in shas:
        fixed = [asdict(fixup) | {"name": "", "good": "", "bad": ""} for fixup in fixups.get(sha, ())]
        own = [shared, sha if _tells_commit(request) or steering[sha].filled_in else "", fixed, natives.get(sha)]
        content = _digest([*own, trees[sha], steering[sha].texts])
        keys[sha] = Keys(content, _digest([shared, fixed, natives[sha]]) if natives else None)
    return keys


@dataclass(frozen=True)
class Steering:
    """What steers the build of a commit, by digest. `settings`: without what is metadata alone. `filled_in`: git puts
    the commit's id into files."""

    texts: tuple[str, ...]
    settings: str
    filled_in: bool


def _steering(history: History, repo: str, shas: frozenset[str]) -> dict[str, Steering]:
    """Few texts serve many commits: each is read once."""
    files = [history.files(repo, shas, name) for name in (PROJECT, *STEERING)]
    roots, attributes = history.files(repo, shas, ATTRIBUTES), history.trees(repo, shas, (ATTRIBUTES,))
    of_text = {text: _of_bytes(text) for texts in files for text in set(texts.values())}
    settings = {text: build_settings(text) for text in set(files[0].values())}
    found = {}
    for sha in shas:
        texts = (*(of_text[texts[sha]] for texts in files), attributes[sha])
        found[sha] = Steering(
            texts, _digest([settings[files[0][sha]], *texts[1:]]), b"export-subst" in (roots[sha] or b"")
        )
    return found


def _natives(
    history: History, request: Request, shas: frozenset[str], steering: Mapping[str, Steering]
) -> dict[str, str]:
    """Of each commit, what its compiled files are made from; none where each wheel is built in full."""
    recipe = request.recipe
    if not recipe.native_paths or request.failure_in is FailureIn.BUILD:
        return {}
    patterns = (*recipe.native_paths, *_named(recipe.build_command or ""))
    trees = history.trees(request.repo, shas, patterns)
    if recipe.overlay_command is not None:
        # The project's own way reads its settings anew for each commit.
        return {sha: _digest([trees[sha], steering[sha].texts[-1]]) for sha in shas}
    return {sha: _digest([trees[sha], steering[sha].settings]) for sha in shas}


def _named(command: str) -> tuple[str, ...]:
    """What looks like a file of the repository in a command, as a pattern: a script that compiles is native."""
    words = (word.removeprefix("./") for word in _NAMED.findall(command))
    return tuple(sorted({f"/{word}" for word in words if ".." not in word and "//" not in word and word.strip("/.")}))


def _of_bytes(text: bytes | None) -> str:
    return "" if text is None else hashlib.sha256(text).hexdigest()


def build_settings(pyproject: bytes | None) -> str:
    """A digest of what pyproject.toml tells the build, but for the project's own fields, which are metadata alone.

    Of the whole text where that is none that can be understood.
    """
    try:
        found = _told(pyproject or b"")
        return _digest(found) if found is not None else _of_bytes(pyproject)
    except RecursionError:
        return _of_bytes(pyproject)


def _told(text: bytes) -> list[object] | None:
    if len(text) > PARSED_BYTES or max(line.count(b".") for line in text.split(b"\n")) > PARSED_DOTS:
        return None
    try:
        document = tomllib.loads(text.decode("utf-8"))
    except ValueError:
        # No TOML, no UTF-8, or a number too long to be read.
        return None
    tool, project = document.pop("tool", {}), document.pop("project", {})
    if not isinstance(tool, dict) or not isinstance(project, dict):
        return None
    tools = {name: table for name, table in tool.items() if name not in IDLE_TOOLS}
    return [document, tools, project.get("dynamic")]


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


def _tells_commit(request: Request) -> bool:
    """Whether a build is told which commit it is of, and so may put that into the wheel."""
    told = "FIRSTBAD_COMMIT" in (request.recipe.build_command or "")
    return told or any("{sha}" in value for value in request.recipe.env.values())


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:32]
