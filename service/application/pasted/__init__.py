"""A script that was pasted from where people tell of failures, taken apart: its server, and what comes after it.

A script that works as it is keeps its meaning: where anything about it is in doubt it is left alone, and a note says
why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from service.application.pasted import installs, serving, shell, transcript, waiting
from service.application.pasted.rewriting import few, listed, quoted, without
from service.application.pasted.shell import Part, Statement
from service.application.pasted.targets import Project
from service.domain.bisection import Serve
from service.domain.servers import Server

__all__ = ["Project", "Split", "split"]

#: What a shell keeps for the commands that follow.
_STATE_NODES = ("variable_assignment", "variable_assignments", "declaration_command", "function_definition")
_STATE_COMMANDS = ("set", "cd", "pushd", "popd", "ulimit", "umask", "shopt", "unset", "alias", "source", ".")
_SAYING = ("echo", "printf")
#: What would be another value when it is asked for again.
_FLEETING = re.compile(r"\$\{?RANDOM\b|\$\$|\b(?:mktemp|shuf|uuidgen|date|socket)\b")
_OWN_SHELL = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")


@dataclass(frozen=True)
class Split:
    """Either `script`, or `serve` and what comes after it. `notes`: all that was done, and why something was not."""

    script: str | None
    serve: Serve | None = None
    check: str | None = None
    notes: tuple[str, ...] = ()


class _Doubt(Exception):
    """Why a script is left alone."""


def split(script: str, servers: Sequence[Server], project: Project) -> Split:
    """Never raises. Made of its own results it makes these results."""
    if script.startswith("#!") and not _OWN_SHELL.match(script):
        return Split(script)
    cleaned = transcript.clean(script.replace("\r\n", "\n"))
    if cleaned.beyond:
        return Split(script, notes=_unread(script, cleaned.beyond, servers))
    read = shell.read(cleaned.text)
    if read.beyond or read.broken is not None:
        why = read.beyond or f"its line {read.broken} could not be read as a shell script"
        return Split(script, notes=_unread(script, why, servers))
    try:
        made = _apart(read, servers, project)
    except _Doubt as doubt:
        return Split(script, notes=(f"The script is run as it was written: {doubt}.",))
    notes = (*cleaned.notes, *made.notes)
    return Split(made.script, made.serve, made.check, notes) if notes else Split(script)


def _unread(script: str, why: str, servers: Sequence[Server]) -> tuple[str, ...]:
    """Only where something would have been done about it."""
    known = any(" ".join(words[-2:]) in script for server in servers for words in server.commands)
    return (f"The script is run as it was written: {why}.",) if known else ()


def _apart(read: shell.Script, servers: Sequence[Server], project: Project) -> Split:
    """Errors: _Doubt."""
    found = installs.find(read.parts, project)
    _check_folders(read, found)
    hits = [(part, hit) for part in read.parts for each in part.commands if (hit := serving.hit(each, servers))]
    if len(hits) > 1:
        names = ", ".join(dict.fromkeys(hit.server.name for _, hit in hits))
        raise _Doubt(f"it starts {len(hits)} servers ({names})")
    notes = _install_notes(read, found, project)
    if hits:
        return _Paste(read, found, *hits[0]).split(notes)
    if hidden := [part.text for part in read.parts if serving.hides(part, servers)]:
        notes = (*notes, f"Run as written, although it seems to start a server: {listed(hidden)}.")
    kept = [part for part in read.parts if found.keeps(part)]
    if not any(map(_works, kept)):
        return Split(read.text)
    return Split(without(read, kept, found.rewritten), notes=notes)


def _check_folders(read: shell.Script, found: installs.Found) -> None:
    """Of environments that would not be there."""
    folders = list(dict.fromkeys(found.folders))
    for part in filter(found.keeps, read.parts):
        text = part.text
        for folder in folders:
            if f"{folder.rstrip('/')}/" in text:
                raise _Doubt(f"{quoted(part.text)} uses the environment {folder} that it makes itself")


def _install_notes(read: shell.Script, found: installs.Found, project: Project) -> tuple[str, ...]:
    gone = sorted(found.dropped, key=lambda drop: drop.part.start)
    extras = sorted({extra for drop in gone for extra in drop.extras})
    notes = []
    if gone:
        said = listed(" ".join(word.text for word in drop.without) or drop.part.text for drop in gone)
        notes.append(f"Left out, since each commit's own package and environment are there already: {said}.")
    if extras:
        notes.append(f"The extras {few(extras)} are not installed: install by name what is needed of them.")
    if found.others:
        said = listed(found.rewritten.get(part.start, part.text) for part in found.others)
        notes.append(f"Stays, and needs a network (network: bridge): {said}.")
    if within := [part.text for part in read.parts if installs.nested(part, project)]:
        notes.append(f"Stays, although it may install the package under test: {listed(within)}.")
    return tuple(notes)


@dataclass(frozen=True)
class _Paste:
    """One with a server."""

    read: shell.Script
    found: installs.Found
    server: Part
    hit: serving.Hit

    def split(self, notes: tuple[str, ...]) -> Split:
        """Errors: _Doubt."""
        name, text = self.hit.server.name, quoted(self.server.text)
        if not serving.is_in_front(self.server, self.hit):
            raise _Doubt(f"{name} is started within {_KINDS.get(self.server.node.type, 'other commands')}")
        if self.own.background and self.own.parts[-1] is not self.server:
            raise _Doubt(f"{name} is started in the background together with what follows it")
        if not self.own.background and (why := self._status_counts()):
            raise _Doubt(why)
        if why := self._may_not_show():
            raise _Doubt(why)
        port = serving.port(self.hit, self._variables())
        if port is None:
            raise _Doubt(f"the port of {name} in {text} is not known before it runs")
        front = serving.foreground(self.server, self.hit)
        if front is None:
            raise _Doubt(f"{text} cannot be told to show what it prints")
        check = self._check()
        known = self.hit.server
        serve = Serve(self._command(front), known.ready_http, known.ready_log, port=port)
        return Split(None, serve, check, (_served_note(serve, front, check), *notes, *self._notes(check)))

    def _status_counts(self) -> str:
        """Why a server in the foreground may be meant to end: how it does so is looked at."""
        readers = [each.name for each in self.server.commands if each.node != self.hit.command.node]
        if self.hit.command.name == "timeout":
            return f"{quoted(self.server.text)} ends by itself"
        if not all(name in ("tee", "cat", "ts") for name in readers):
            return f"what {quoted(self.server.text)} prints is read by {listed(readers)}"
        following = next(iter(self.later), None)
        if following is not None and "$?" in following.text:
            return f"{quoted(following.text)} looks at how {self.hit.server.name} ended"
        return ""

    def _may_not_show(self) -> str:
        """Why it may be ready and not be seen to be."""
        written, server = serving.doubt(self.hit, self._variables()), self.hit.server
        how = f"answer {server.ready_http} on 127.0.0.1" if server.ready_http else f"print {server.ready_log!r}"
        return f"with {quoted(written)} {server.name} may not {how}" if written else ""

    @cached_property
    def known(self) -> waiting.Known:
        return waiting.learn(self.read.statements, self.own)

    @cached_property
    def own(self) -> Statement:
        return next(each for each in self.read.statements if any(part is self.server for part in each.parts))

    @cached_property
    def earlier(self) -> list[Part]:
        return [part for part in self.read.parts if part.start < self.server.start]

    @cached_property
    def later(self) -> list[Part]:
        return [part for part in self.read.parts if part.start > self.server.start]

    @cached_property
    def about_it(self) -> list[Part]:
        """What waits for the server, as long as nothing else has begun, and what ends it or an older one."""
        gone = [part for part in self.earlier if self._is_about_old(part)]
        begun = False
        for part in self.later:
            if waiting.ends(part, self.known) or (not begun and waiting.waits(part, self.known)):
                gone.append(part)
            elif self.found.keeps(part) and _works(part) and not _says(part):
                begun = True
        return gone

    def _is_about_old(self, part: Part) -> bool:
        return waiting.ends(part, self.known) or (part.function is not None and part.function in self.known.waits)

    @cached_property
    def again(self) -> list[Part]:
        """What came before the server and counts for the check, too."""
        return [part for part in self._kept(self.earlier) if _is_state(part)]

    def _kept(self, parts: Iterable[Part]) -> list[Part]:
        about_it = {part.start for part in self.about_it}
        return [part for part in parts if self.found.keeps(part) and part.start not in about_it]

    def _variables(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for part in self.earlier:
            for name, value in part.assignments.items():
                made = shell.expanded(value, found)
                found.pop(name, None)
                if len(made) <= shell.LONGEST_VALUE:
                    found[name] = made
        return {**found, **self.hit.command.assigned}

    def _command(self, front: serving.Foreground) -> str:
        """All that comes before the server, and it."""
        kept = [*self._kept(self.earlier), self.server]
        return without(self.read, kept, {**self.found.rewritten, self.server.start: front.text}).strip("\n")

    def _check(self) -> str | None:
        """What follows the server, behind what it needs of what came before. Errors: _Doubt."""
        after = self._kept(self.later)
        for part in after:
            if waiting.minds(part, self.known):
                raise _Doubt(f"{quoted(part.text)} minds the process of the server by itself")
        if not any(_works(part) and not _says(part) for part in after):
            return None
        for part in self.again:
            if _FLEETING.search(part.text) and part.node.type != "function_definition":
                raise _Doubt(f"{quoted(part.text)} would be another value in the check")
        again = [part for part in self.again if not part.is_comment]
        return without(self.read, [*again, *after], self.found.rewritten).strip("\n") + "\n"

    def _notes(self, check: str | None) -> tuple[str, ...]:
        notes = []
        if self.about_it:
            said = listed(part.text for part in sorted(self.about_it, key=lambda part: part.start))
            notes.append(f"Left out, since firstbad waits for the server and ends it: {said}.")
        if check is not None and self.again:
            notes.append(f"Before the check, too: {few(map(_name, self.again))}.")
        return tuple(notes)


def _served_note(serve: Serve, front: serving.Foreground, check: str | None) -> str:
    how = f" ({', '.join(front.changes)})" if front.changes else ""
    ready = f"answers {serve.ready_http} on port {serve.port}" if serve.ready_http else f"prints {serve.ready_log!r}"
    then = "what follows it is the check" if check else "nothing follows it, so it is good once it is ready"
    return f"{quoted(front.text)} is served{how} until it {ready}; {then}."


def _name(part: Part) -> str:
    """Values are not told: they may be secret."""
    names = part.assignments
    return few(f"`{name}=…`" for name in names) if names else quoted(part.text)


def _works(part: Part) -> bool:
    return not (part.is_comment or _is_state(part))


def _is_state(part: Part) -> bool:
    return part.node.type in _STATE_NODES or (part.command is not None and part.command.name in _STATE_COMMANDS)


def _says(part: Part) -> bool:
    return part.command is not None and part.command.name in _SAYING


_KINDS = {
    "if_statement": "an if",
    "function_definition": "a function",
    "for_statement": "a loop",
    "while_statement": "a loop",
    "case_statement": "a case",
    "subshell": "a subshell",
}
