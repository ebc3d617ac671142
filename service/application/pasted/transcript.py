"""What is around a script that was copied out of a page or a terminal: code fences, prompts, what commands printed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.application.pasted import shell

_FENCE = re.compile(r"\s*(?:```|~~~)\s*([\w+-]*)\s*")
_SHELLS = ("", "bash", "sh", "shell", "console", "zsh", "shell-session", "terminal", "text", "txt")
#: `$ `, `(venv) $ `, `ann@gpu7:~/x$ `, `root@gpu7:/# `.
_PROMPT = re.compile(r"\s*(?:\([\w. -]+\) ?)?(?:\$ |[\w.-]+@[\w.-]+[: ][^\s$#]* ?[$#] )(?=\S)")


@dataclass(frozen=True)
class Cleaned:
    text: str
    notes: tuple[str, ...] = ()


def clean(text: str) -> Cleaned:
    """A script that neither begins with a fence nor with a prompt comes back as it is."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    begun = next((line for line in lines if line.strip()), "")
    notes: list[str] = []
    if _FENCE.fullmatch(begun.rstrip("\n")):
        lines = _fenced(lines)
        notes.append("The code fences around the script are left out.")
    if any(_PROMPT.match(line) for line in _first_command(lines)):
        unprompted, printed = _unprompted(lines)
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
        fence = _FENCE.fullmatch(line.rstrip("\n"))
        if fence is not None:
            language = None if language is not None else fence[1].lower()
        elif language in _SHELLS:
            kept.append(line)
    return kept


def _first_command(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.lstrip().startswith("# ")][:1]


def _unprompted(lines: list[str]) -> tuple[list[str] | None, int]:
    """The commands alone, and how many lines were left out as printed by them; None when a command has no end."""
    kept: list[str] = []
    command: list[str] = []
    printed = 0
    for line in lines:
        prompt = _PROMPT.match(line)
        if command and _goes_on(command):
            command.append(re.sub(r"^\s*> ", "", line))
        elif prompt is not None:
            kept += command
            command = [line[prompt.end() :]]
        elif not line.strip() or line.lstrip().startswith("# "):
            kept += [*command, line]
            command = []
        else:
            printed += 1
    if command and _goes_on(command):
        return None, 0
    return kept + command, printed


def _goes_on(command: list[str]) -> bool:
    """Whether the shell would ask for another line."""
    text = "".join(command)
    if len(text) > shell.LONGEST:
        return False
    if re.search(r"(?<!\\)(?:\\\\)*\\\r?\n?$", text) or re.search(r"(?:\||&&)\s*$", text):
        return True
    return shell.read(text).broken is not None or _open_document(text)


def _open_document(text: str) -> bool:
    """A here-document whose last line has not come; the grammar is content with its end."""
    begun = [(match[1], match[2]) for match in re.finditer(r"<<(-?)\s*['\"]?(\w+)['\"]?", text)]
    lines = text.split("\n")
    return any(all((line.lstrip("\t") if dash else line) != word for line in lines[1:]) for dash, word in begun)


def _lines(number: int) -> str:
    return "1 line that commands printed" if number == 1 else f"{number} lines that commands printed"
