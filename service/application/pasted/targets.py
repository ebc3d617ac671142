"""What commands of pip, uv, conda and poetry install or remove, and which of it is the package under test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from service.application.pasted.shell import Command, Word
from service.domain.recipe import Recipe

#: Recipes for any project: their names are no package's.
_FOR_ANY = ("python", "source")
#: Options of pip and uv that take a value behind them.
_VALUED = re.compile(
    r"-[ifcrtpCPn]|--(?:"
    r"index-url|extra-index-url|find-links|constraint|requirement|target|python|torch-backend|"
    r"prefix|root|index-strategy|prerelease|resolution|config-settings|cache-dir|timeout|"
    r"retries|no-binary|only-binary|upgrade-package|refresh-package|index|default-index|"
    r"exclude-newer|trusted-host|proxy|log|platform|python-version|implementation|abi|"
    r"override|name|channel"
    r")"
)
EDITABLE = ("-e", "--editable")
REQUIREMENT = ("-r", "--requirement")
CONDAS = ("conda", "mamba", "micromamba")
PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:(\[[^\]]*\])\s*)?(?:[=<>!~;@].*)?", re.DOTALL)


@dataclass(frozen=True)
class Project:
    """The package under test by each of its names, and whether a wheel of it is installed before a script runs."""

    names: frozenset[str]
    installed: bool

    @staticmethod
    def of(recipe: Recipe, repo: str) -> Project:
        folder = re.split(r"[/:]", repo.rstrip("/"))[-1].removesuffix(".git")
        named = (recipe.package, recipe.name if recipe.name not in _FOR_ANY else None, folder)
        names = frozenset(str(canonicalize_name(name)) for name in named if name)
        return Project(names, recipe.build_command is not None)

    def is_named(self, name: str) -> bool:
        return canonicalize_name(name) in self.names


def module(command: Command) -> tuple[str, ...]:
    """The words behind `python -m`."""
    texts = command.texts
    if not command.words or PYTHON.fullmatch(command.name) is None or "-m" not in texts[:5]:
        return ()
    return texts[texts.index("-m") + 1 :]


def installed(command: Command) -> list[Word] | None:
    """What it installs or removes, files of requirements too; None when it does neither."""
    words = arguments(command)
    if words is None:
        return None
    return [target for _, target in pairs(words)]


def arguments(command: Command) -> list[Word] | None:
    """The words behind `install`."""
    texts = list(command.texts)
    begun = len(texts) - len(module(command)) if module(command) else 0
    program = texts[begun].rpartition("/")[2] if begun < len(texts) else ""
    rest = texts[begun + 1 :]
    if program == "uv" and rest[:1] == ["pip"]:
        rest, begun, program = rest[1:], begun + 1, "pip"
    adds = {"uv": "add", "poetry": "add"}.get(program)
    if re.fullmatch(r"pip[\d.]*", program) or program in CONDAS or adds:
        actions = (adds,) if adds else ("install", "uninstall")
        place = next((place for place, text in enumerate(rest) if not text.startswith("-")), None)
        if place is not None and rest[place] in actions:
            return list(command.words[begun + 2 + place :])
    return None


def pairs(words: Sequence[Word]) -> Iterator[tuple[Word | None, Word]]:
    """Each target, with the option before it that makes it one."""
    waiting: Word | None = None
    for word in words:
        if waiting is not None:
            if waiting.text in EDITABLE or waiting.text in REQUIREMENT:
                yield waiting, word
            waiting = None
        elif _VALUED.fullmatch(word.text) or word.text in EDITABLE:
            waiting = word
        elif word.text.startswith("--editable="):
            yield None, Word(word.text.partition("=")[2], word.start, word.end)
        elif not word.text.startswith("-"):
            yield None, word


def targets(command: Command, project: Project) -> Iterator[tuple[Word | None, Word, str]]:
    """Those that are the package under test, with their extras."""
    for option, word in pairs(arguments(command) or []):
        if option is not None and option.text in REQUIREMENT:
            continue
        extras = _ours(word.text, project)
        if extras is not None:
            yield option, word, extras


def _ours(target: str, project: Project) -> str | None:
    """The extras of the package under test, like "[audio]" or ""; None when it is another one."""
    local = re.fullmatch(r"(\.{1,2}/?|\.?/?[^\[@]*?/?)(\[[^\]]*\])?", target)
    if target.startswith(("git+", "http://", "https://")) or target.endswith(".whl"):
        last = re.split(r"[@#?]", target.rpartition("://")[2] or target)[0].rstrip("/").rpartition("/")[2]
        return "" if last == "*.whl" or project.is_named(re.split(r"-(?=[\d$*])|\.git$", last)[0]) else None
    if local is not None and local[1].startswith((".", "/")):
        folder = local[1].rstrip("/").rpartition("/")[2]
        return (local[2] or "") if folder in (".", "..") or project.is_named(folder) else None
    named = _NAME.fullmatch(target)
    return (named[2] or "") if named is not None and project.is_named(named[1]) else None
