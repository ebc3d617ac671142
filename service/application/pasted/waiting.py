"""What a script does about a server that it started: waiting for it, noting which process it is, and ending it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from service.application.pasted.shell import Command, Part, Statement

_LOOPS = ("while_statement", "for_statement", "c_style_for_statement")
_ASKS = ("curl", "wget", "nc", "ncat", "grep", "ss", "lsof")
_IDLE = ("sleep", "echo", "printf", ":", "true", "false", "break", "exit", "return", "kill", "tail", "seq", "local")
_RUNS = ("timeout", "bash", "sh")
_ENDS = ("kill", "wait", "disown", "pkill", "killall", "fuser")
#: Of those, what is told by name which processes to end.
_BY_NAME = ("pkill", "killall", "fuser")
_LAST = re.compile(r"\$!|\bjobs -p\b|(?<![\w%])%[%+\d]")
_VARIABLE = re.compile(r"\$\{?(\w+)")
_ASKING = re.compile(rf"\b(?:{'|'.join(_ASKS)})\b")


@dataclass(frozen=True)
class Known:
    """`ids`: variables with the number of the server's process. `its`: beginnings of the parts to which `$!` is that
    process. `alone`: nothing else runs in the background after it. `waits`, `ends`: functions that do so."""

    ids: frozenset[str]
    its: frozenset[int]
    alone: bool
    waits: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)


def learn(statements: Sequence[Statement], own: Statement) -> Known:
    last: Statement | None = None
    its: list[Part] = []
    others = False
    for statement in statements:
        its += statement.parts if last is own else ()
        if statement.background:
            others = others or (last is own)
            last = statement
    names = {name for part in its for name, value in part.assignments.items() if "$!" in value}
    known = Known(frozenset(names), frozenset(part.start for part in its), not others)
    for statement in statements:
        for part in statement.parts:
            _learn_function(part, known)
    return known


def _learn_function(part: Part, known: Known) -> None:
    name = part.function
    if name is None:
        return
    names = [command.name for command in part.commands]
    if _all(names, _ENDS + _IDLE) and any(each in _ENDS for each in names):
        known.ends.add(name)
    elif _waits(names, part.text):
        known.waits.add(name)


def waits(part: Part, known: Known) -> bool:
    """It does nothing but wait for a server."""
    command = part.command
    if command is not None:
        asks = command.name in _RUNS and re.search(r"\b(?:until|while)\b", part.text) is not None
        return command.name in ("sleep", *known.waits) or (asks and _waits([command.name], part.text))
    if part.node.type in _LOOPS:
        return _waits([each.name for each in part.commands], part.text)
    return part.function in known.waits


def ends(part: Part, known: Known) -> bool:
    """It does nothing but note which process the server is, or end it."""
    command = part.command
    if command is not None:
        return _ends(command, part, known)
    assigned = part.assignments
    return part.function in known.ends or (bool(assigned) and set(assigned) <= known.ids)


def _ends(command: Command, part: Part, known: Known) -> bool:
    if command.name == "trap":
        done = re.split(r"[\s;&|]+", command.texts[1].strip() if len(command.texts) > 1 else "")
        return done[0] in (*_ENDS, *known.ends)
    if command.name not in _ENDS:
        return command.name in known.ends
    return (
        command.name in _BY_NAME or minds(part, known) or (known.alone and "$" not in part.text) or "lsof" in part.text
    )


def minds(part: Part, known: Known) -> bool:
    """It says something of the process that the server is."""
    if _LAST.search(part.text) and (known.alone or part.start in known.its):
        return True
    return not known.ids.isdisjoint(_VARIABLE.findall(part.text))


def _waits(names: Collection[str], text: str) -> bool:
    asks = _ASKING.search(text) is not None or "kill -0" in text
    return bool(names) and _all(names, _ASKS + _IDLE + _RUNS) and asks and "sleep" in text


def _all(names: Collection[str], allowed: Collection[str]) -> bool:
    return all(name in allowed for name in names)
