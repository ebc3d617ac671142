"""What is around a script that was copied out of a page or a terminal: code fences, prompts, what commands printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from service.application.pasted import shell

#: Of one command, and of all that is parsed to see where commands end, in characters.
MOST_LINES = 200
LONGEST_COMMAND = 8 * 1024
MOST_READ = 192 * 1024
_FENCE = re.compile(r"(?:```|~~~)\s*([\w+-]*)")
_SHELLS = ("", "bash", "sh", "shell", "console", "zsh", "shell-session", "terminal", "text", "txt")
#: `$ `, `(venv) $ `, `ann@gpu7:~/x$ `, `root@gpu7:/# `.
_PROMPT = re.compile(r"\s*(?:\([\w. -]+\) ?)?(?:\$ |[\w.-]+@[\w.-]+[: ][^\s$#]* ?[$#] )(?=\S)")
#: A here-document's dash and its last line; `<<<` begins none.
_DOCUMENT = re.compile(r"(?<!<)<<(-?)\s*['\"]?(\w+)['\"]?")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\r?\n?$")
_JOINING = re.compile(r"(?:\||&&)\s*$")


@dataclass(frozen=True)
class Cleaned:
    """`beyond`: why it was not looked through to its end; `text` is as it was, then."""

    text: str
    notes: tuple[str, ...] = ()
    beyond: str = ""


def clean(text: str) -> Cleaned:
    """A script that neither begins with a fence nor with a prompt comes back as it is."""
    if len(text) > shell.LONGEST:
        return Cleaned(text)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    begun = next((line for line in lines if line.strip()), "")
    notes: list[str] = []
    if _FENCE.fullmatch(begun.strip()):
        lines = _fenced(lines)
        notes.append("The code fences around the script are left out.")
    if any(_PROMPT.match(line) for line in _first_command(lines)):
        try:
            unprompted, printed = _unprompted(lines)
        except _Beyond as bound:
            return Cleaned(text, beyond=str(bound))
        if unprompted is None:
            return Cleaned(text)
        lines = unprompted
        notes.append("Prompts are left out." if not printed else f"Prompts and {_lines(printed)} are left out.")
    return Cleaned("".join(lines), tuple(notes)) if notes else Cleaned(text)


def _fenced(lines: list[str]) -> list[str]:
    """Those inside the fences of shell scripts."""
    kept: list[str] = []
    language: str | None = None
    for line in lines:
        fence = _FENCE.fullmatch(line.strip())
        if fence is not None:
            language = None if language is not None else fence[1].lower()
        elif language in _SHELLS:
            kept.append(line)
    return kept


def _first_command(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.lstrip().startswith("# ")][:1]


def _unprompted(lines: list[str]) -> tuple[list[str] | None, int]:
    """The commands alone, and how many lines were left out as printed by them; None when a command has no end.
    Errors: _Beyond."""
    kept: list[str] = []
    command = _Command()
    printed = 0
    for line in lines:
        prompt = _PROMPT.match(line)
        if command.goes_on:
            command.add(re.sub(r"^\s*> ", "", line))
        elif prompt is not None:
            kept += command.lines
            command = _Command(command.read)
            command.add(line[prompt.end() :])
        elif not line.strip() or line.lstrip().startswith("# "):
            kept += [*command.lines, line]
            command = _Command(command.read)
        else:
            printed += 1
    return (None, 0) if command.goes_on else (kept + command.lines, printed)


class _Beyond(Exception):
    """Which bound a transcript is beyond."""


@dataclass
class _Command:
    """As it grows by its lines. `read`: how much of all commands was parsed up to now, the same again and again where
    one has several lines. `goes_on`: whether the shell would ask for another line."""

    read: int = 0
    lines: list[str] = field(default_factory=list)
    goes_on: bool = False
    _documents: list[tuple[str, str]] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Errors: _Beyond."""
        self.lines.append(line)
        text = "".join(self.lines)
        if len(self.lines) > MOST_LINES or len(text) > LONGEST_COMMAND:
            raise _Beyond(f"a command in it has more than {MOST_LINES} lines or {LONGEST_COMMAND} characters")
        self.goes_on = self._waits(line) or self._is_open(text)

    def _waits(self, line: str) -> bool:
        """For the last line of a here-document; the grammar is content with its end."""
        if self._documents:
            dash, word = self._documents[0]
            if (line.lstrip("\t") if dash else line).removesuffix("\n") == word:
                del self._documents[0]
        else:
            self._documents = _DOCUMENT.findall(line)
        return bool(self._documents)

    def _is_open(self, text: str) -> bool:
        if _CONTINUED.search(text) or _JOINING.search(text):
            return True
        self.read += len(text)
        if self.read > MOST_READ:
            raise _Beyond("its commands have too many lines to be told from what they printed")
        return not shell.is_whole(text)


def _lines(number: int) -> str:
    return "1 line that commands printed" if number == 1 else f"{number} lines that commands printed"
