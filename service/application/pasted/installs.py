"""Lines of a script that make an environment, or install the package under test: firstbad does both by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from packaging.utils import canonicalize_name

from service.application.pasted.shell import Command, Part, Word
from service.application.pasted.targets import (
    CONDAS,
    EDITABLE,
    PYTHON,
    REQUIREMENT,
    Project,
    arguments,
    installed,
    module,
    pairs,
    targets,
)

_TOOLS = frozenset({"pip", "uv", "setuptools", "wheel", "virtualenv", "build"})
_IN_A_CLONE = frozenset(
    ["checkout", "switch", "fetch", "pull", "reset", "submodule", "cherry-pick", "apply", "remote", "clean"]
)
_ACTIVATE = re.compile(r"(?:.*/)?(?:bin/activate|profile\.d/conda\.sh|\.local/bin/env|\.cargo/env)")
_HOOK = re.compile(r"\bhook\b")
_CONDA = re.compile(r"\b(?:conda|mamba|micromamba)\b")


@dataclass(frozen=True)
class Dropped:
    """`without`: the words that go where others stay; all of the part goes without them. `left`: extras that the
    package's own wheel is not installed with."""

    part: Part
    without: tuple[Word, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass
class Found:
    """`folders`: of the environments that were to be made. `others`: installs that stay."""

    dropped: list[Dropped] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)

    def keeps(self, part: Part) -> bool:
        return part.start not in self._gone

    @cached_property
    def _gone(self) -> frozenset[int]:
        """The beginnings of what goes as a whole. Asked for once all is found, as `rewritten` is."""
        return frozenset(drop.part.start for drop in self.dropped if not drop.without)

    @cached_property
    def rewritten(self) -> dict[int, str]:
        """The parts of which only some words go, by their beginnings."""
        return {drop.part.start: _without(drop) for drop in self.dropped if drop.without}


def _without(drop: Dropped) -> str:
    text = drop.part.text.encode()
    for word in sorted(drop.without, key=lambda word: -word.start):
        start, end = word.start - drop.part.start, word.end - drop.part.start
        text = text[:start].rstrip(b" ") + text[end:]
    return text.decode()


def find(parts: Sequence[Part], project: Project) -> Found:
    found = Found()
    if not project.installed:
        return found
    elsewhere = {part.start for part in _elsewhere(parts, project)}
    for part in parts:
        if part.start not in elsewhere:
            _look(part, project, found)
    if any(_is_local(drop.part) for drop in found.dropped):
        found.dropped += [Dropped(part) for part in _of_the_clone(parts, project)]
        gone = {drop.part.start for drop in found.dropped}
        found.others = [part for part in found.others if part.start not in gone]
    return found


def nested(part: Part, project: Project) -> bool:
    """It installs the package under test somewhere within, as in an `if`."""
    if not project.installed or part.command is not None:
        return False
    return any(list(targets(command, project)) for command in part.commands)


def _look(part: Part, project: Project, found: Found) -> None:
    command = part.command or _piped(part)
    if command is None:
        return
    if _makes_environment(command):
        found.dropped.append(Dropped(part))
        found.folders += _folder(command)
        return
    words = installed(command)
    if words is None:
        return
    ours = list(targets(command, project))
    places = {target.start for _, target, _ in ours}
    others = [word for word in words if word.start not in places]
    if not ours and words and all(canonicalize_name(word.text.split("=")[0].strip("<>!~")) in _TOOLS for word in words):
        found.dropped.append(Dropped(part))
    elif ours and not others:
        found.dropped.append(Dropped(part, extras=tuple(extra for *_, extra in ours if extra)))
    elif ours:
        gone = tuple(word for option, target, _ in ours for word in (option, target) if word is not None)
        found.dropped.append(Dropped(part, gone, tuple(extra for *_, extra in ours if extra)))
        found.others.append(part)
    elif words:
        found.others.append(part)


def _elsewhere(parts: Sequence[Part], project: Project) -> Iterator[Part]:
    """Those that install what is in the clone of another repository."""
    others: set[str] = set()
    entered: str | None = None
    for part in parts:
        texts = part.command.texts if part.command is not None else ()
        named = (_last(re.sub(r"\[.*", "", text)) for text in texts)
        if others and _is_local(part) and (entered in others or any(name in others for name in named)):
            yield part
        if texts[:2] == ("git", "clone") and not project.is_named(folder := _last(texts[-1])):
            others.add(folder)
        elif texts[:1] == ("cd",) and len(texts) == 2:
            entered = _last(texts[1])


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _piped(part: Part) -> Command | None:
    """The first of a pipe whose others only show what it prints, or run what it fetches."""
    if part.node.type not in ("pipeline", "redirected_statement") or not part.commands:
        return None
    first, *others = part.commands
    fetched = first.name in ("curl", "wget") and "astral.sh/uv" in part.text
    shows = all(each.name in ("tee", "tail", "head", "grep", "cat") for each in others)
    return first if shows or fetched else None


def _makes_environment(command: Command) -> bool:
    texts, name = command.texts, command.name
    second = texts[1] if len(texts) > 1 else ""
    by_python = module(command)
    return (
        (name in CONDAS and second in ("create", "activate", "deactivate", "env", "init", "shell"))
        or (name == "uv" and second in ("venv", "sync", "python", "init", "self", "build"))
        or name in ("virtualenv", "deactivate")
        or by_python[:1] in (("venv",), ("virtualenv",), ("build",))
        or (name in ("source", ".") and _ACTIVATE.fullmatch(second) is not None)
        or (name == "eval" and _hooks(second))
        or (name in ("curl", "wget") and any("astral.sh/uv" in text for text in texts))
        or (PYTHON.fullmatch(name) is not None and second == "setup.py")
    )


def _hooks(text: str) -> bool:
    conda = _CONDA.search(text)
    return conda is not None and _HOOK.search(text, conda.end()) is not None


def _folder(command: Command) -> list[str]:
    """Of the environment that it makes, when it names one."""
    rest = module(command)[1:] or command.texts[2 if command.name == "uv" else 1 :]
    if command.name not in ("uv", "virtualenv") and not module(command):
        return []
    named = [text for text in rest if not text.startswith("-")]
    return named[-1:] or ([".venv"] if command.name == "uv" and command.texts[1:2] == ("venv",) else [])


def _is_local(part: Part) -> bool:
    """It installs from a folder, which was a clone."""
    command = part.command or _piped(part)
    words = pairs((arguments(command) if command else None) or [])
    targets = [word.text for option, word in words if option is None or option.text in EDITABLE]
    built = command is not None and (command.texts[1:2] == ("setup.py",) or "build" in command.texts[:3])
    return built or any(text.startswith((".", "/")) or "*.whl" in text for text in targets)


def _of_the_clone(parts: Sequence[Part], project: Project) -> Iterator[Part]:
    """The clone, the way into it and out again, and what is done there to have another commit."""
    inside = cloned = False
    for part in parts:
        command = part.command
        texts = command.texts if command is not None else ()
        if texts[:2] == ("git", "clone"):
            named = [text.rstrip("/").rpartition("/")[2].removesuffix(".git") for text in texts[2:]]
            if any(project.is_named(name) for name in named if name and not name.startswith("-")):
                cloned = True
                yield part
        elif texts[:1] == ("cd",) and len(texts) == 2:
            folder = texts[1].rstrip("/").rpartition("/")[2]
            if inside and folder in ("..", "-"):
                inside = False
                yield part
            elif not inside and project.is_named(folder):
                inside = True
                yield part
        elif (
            (inside or cloned)
            and texts[:1] == ("git",)
            and len(texts) > 1
            and texts[1] in _IN_A_CLONE
            or (
                inside
                and command is not None
                and any(
                    option is not None and option.text in REQUIREMENT and "://" not in word.text
                    for option, word in pairs(arguments(command) or [])
                )
            )
        ):
            yield part
