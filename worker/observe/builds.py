"""Why a build failed: the first line of its log that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from worker.observe.lines import readable, without_stamp


class Says(IntEnum):
    """What a line tells of a failure. Of the lines that tell most the first one counts."""

    CODE = 0  #: a compiler or linker, of the project's own code
    TOOL = 1  #: whatever else of a build, what it cannot do
    FAILED = 2  #: only that something before it went wrong


@dataclass(frozen=True)
class Rule:
    """`more`: the sentence goes on in the next line that is not empty."""

    name: str
    says: Says
    pattern: re.Pattern[str]
    more: bool = False


def _rule(name: str, says: Says, pattern: str, *, more: bool = False) -> Rule:
    return Rule(name, says, re.compile(pattern), more)


_PROGRAM = r"^(?:\S*/)?(?:[\w.]+-)*"
_COMPILER = rf"{_PROGRAM}(?:gcc|g\+\+|cc|c\+\+|cc1|cc1plus|as|clang|clang\+\+|nvcc|ptxas|fatbinary|nvlink)(?:-[\d.]+)?"
_LINKER = rf"{_PROGRAM}(?:ld|ld\.bfd|ld\.gold|ld\.lld|ld64|mold|lld)"

#: The first that matches a line counts for it, so what is only an echo of another failure stands first.
RULES = (
    _rule("collect2", Says.FAILED, r"^collect2: error: ld returned"),
    _rule("clang-linker", Says.FAILED, r"^(?:\S*/)?clang(?:\+\+)?(?:-\d+)?: error: linker command failed"),
    _rule("command", Says.FAILED, r"(?i)\b(?:error|errors\.\w+): command .* (?:failed|returned|died)\b"),
    _rule("called", Says.FAILED, r"CalledProcessError: |Error compiling objects for extension"),
    _rule("cargo-end", Says.FAILED, r"^error: (?:could not compile|aborting due to|failed to run)"),
    _rule("pip-end", Says.FAILED, r"^(?:error|ERROR): (?:subprocess-exited-with-error|metadata-generation-failed)"),
    _rule("wheel-end", Says.FAILED, r"^ERROR: (?:Failed building|Failed to build|Could not build|Failed to install)"),
    _rule("wheel-failed", Says.FAILED, r"^(?:error: |[×x] )?Failed (?:to build|building) |did not run successfully"),
    _rule("uv-end", Says.FAILED, r"^(?:error: )?(?:The build backend|Call to `\S+`) (?:returned an error|failed)"),
    _rule("make-end", Says.FAILED, r"^g?make(?:\[\d+\])?: \*\*\* \[|^g?make(?:\[\d+\])?: \*\*\* .* Error \d+$"),
    _rule("ninja-end", Says.FAILED, r"^ninja: build stopped: |^FAILED: "),
    _rule("gcc", Says.CODE, r"^[^\s:][^:]*:\d+(?::\d+)?: (?:fatal |internal compiler )?error: "),
    _rule("nvcc", Says.CODE, r"^\S.*\(\d+\): (?:catastrophic )?error(?: #\S+)?: "),
    _rule("driver", Says.CODE, rf"{_COMPILER}(?: fatal\s*: | error\s*: |: (?:fatal |internal )?error: )"),
    _rule("undefined", Says.CODE, r": undefined reference to |undefined symbol: |^Undefined symbols for "),
    _rule("twice", Says.CODE, r": multiple definition of |duplicate symbol"),
    _rule("ld", Says.CODE, rf"{_LINKER}: (?:error: |cannot find |symbol\(s\) not found|.*: (?:file|relocation) )"),
    _rule("rustc", Says.CODE, r"^error\[E\d{4}\]: "),
    _rule("go", Says.CODE, r"^(?:\./|\S+/)?[^\s:]+\.go:\d+:(?:\d+:)? "),
    _rule("cython", Says.CODE, r"^[^\s:]+\.(?:pyx|pxd|pxi):\d+:\d+: "),
    _rule("cmake", Says.TOOL, r"^CMake Error at [^:]+:\d+ \(.*\):$", more=True),
    _rule("cmake-plain", Says.TOOL, r"^CMake Error: ?\S"),
    _rule("cmake-bare", Says.TOOL, r"^CMake Error(?: in .*)?:$", more=True),
    _rule("make", Says.TOOL, r"^g?make(?:\[\d+\])?: \*\*\* |^[^\s:]*[Mm]akefile\S*:\d+: \*\*\* "),
    _rule("ninja", Says.TOOL, r"^ninja: (?:error|fatal): "),
    _rule("meson", Says.TOOL, r"^(?:\S*meson\.build:\d+:\d+: )?ERROR: (?!No matching)"),
    _rule("go-tool", Says.TOOL, r"^go: (?!downloading|finding|extracting|found|added|upgraded|warning)"),
    _rule("npm", Says.TOOL, r"^npm (?:ERR!|error) (?!code|errno|syscall|A complete)\S"),
    _rule("uv", Says.TOOL, r"^[×x] No solution found", more=True),
    _rule("cause", Says.TOOL, r"^cause: (?:Because |Failed to (?:fetch|parse))"),
    _rule("syntax", Says.TOOL, r"^(?:SyntaxError|IndentationError|TabError): "),
    _rule("shell", Says.TOOL, r"^\S+: line \d+: .*(?:command not found|No such file|Permission denied)"),
    _rule("firstbad", Says.TOOL, r"^firstbad: \S"),
    _rule("error", Says.TOOL, r"^(?:error|fatal|fatal error|E): \S"),
)

_HEADER = "Traceback (most recent call last):"
_LAST = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*)?$")
#: Only lines with one of these are looked at: most of a log are commands, and a log may have a million lines.
_WORTH = (
    b"rror|RROR|ERR!|atal|ailed|AILED|Traceback|*** |ndefined |uplicate |multiple def|cannot find|not found|: file |"
    b"relocation|.go:|.pyx:|.pxd:|.pxi:|go: |E: |cause: |No solution|: line |did not run|build stopped|firstbad"
).split(b"|")

#: A step's number before what a builder of images prints.
_STEP = re.compile(r"^#\d+ \d+\.\d+ ")


def first_error(lines: Iterable[bytes]) -> str | None:
    """The first of those that say most; time stamps, colours and indents aside."""
    best: tuple[Says, str] | None = None
    for says, text in _found(lines):
        if best is None or says < best[0]:
            best = (says, text)
        if says is Says.CODE:
            break
    return best[1] if best else None


def of_code(lines: Iterable[bytes]) -> bool:
    """Whether a compiler or a linker found something wrong in the code."""
    return any(says is Says.CODE for says, _ in _found(lines))


def _found(lines: Iterable[bytes]) -> Iterator[tuple[Says, str]]:
    """Every line that says something of a failure."""
    open_at: int | None = None  # the indent of a traceback that has not come to its end
    unfinished: tuple[Rule, str] | None = None
    for line in lines:
        if open_at is None and unfinished is None and not any(part in line for part in _WORTH):
            continue
        whole = _STEP.sub("", readable(without_stamp(line)))
        text, indent = whole.strip(), len(whole) - len(whole.lstrip())
        if unfinished is not None and text:
            yield unfinished[0].says, f"{unfinished[1]} {text}"
            unfinished = None
            continue
        if text == _HEADER:
            open_at = indent
            continue
        if open_at is not None and text and indent <= open_at and _LAST.match(text):
            open_at = None
            yield _of_exception(text), text
            continue
        rule = matching(text)
        if rule is not None and rule.more:
            unfinished = (rule, text)
        elif rule is not None:
            yield rule.says, text
    if unfinished is not None:
        yield unfinished[0].says, unfinished[1]


def matching(text: str) -> Rule | None:
    """The rule that a line falls under; the line without its indent."""
    return next((rule for rule in RULES if rule.pattern.search(text)), None)


def _of_exception(text: str) -> Says:
    rule = matching(text)
    return Says.FAILED if rule is not None and rule.says is Says.FAILED else Says.TOOL
