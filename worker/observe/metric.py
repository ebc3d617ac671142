"""A number in what a check printed: by a regular expression, or by a JSONPath into the last JSON document."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import jsonpath_ng.ext.parser
import re2
from jsonpath_ng import Fields, Index, JSONPath, Root
from jsonpath_ng.ext.arithmetic import Operation
from jsonpath_ng.ext.filter import Expression

#: The end of the text is looked at.
MOST = 4 << 20
#: Of what a problem quotes.
SHOWN = 100
#: So many characters are looked at first where a document may begin, then eight times as many, and so on; where there
#: is none, no more in all than the text has so many times.
WINDOW, READINGS = 4096, 20
_STAMP = re.compile(rb"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
#: Where a document begins: at the beginning of a line, or else behind words.
_AT_START, _BEHIND_WORDS = re.compile(r"(?m)^[ \t]*(?=[\[{])"), re.compile(r"(?m)^[^\n{]+(?=\{)")
#: Filters that run Python's regular expressions, which may take for ever. The service refuses the same, when asked.
_REFUSED = re.compile(r"=~|\bsub\(|\bsplit\(")
_ONCE = "`..` and `$` once, and one index in brackets"
#: By these a path finds the same thing many times, and at each step more often.
_AGAIN = ("Parent", "Union", "_Union")


class Metric(Protocol):
    """Exactly one of the two is given."""

    @property
    def pattern(self) -> str | None: ...

    @property
    def json_path(self) -> str | None: ...


@dataclass(frozen=True)
class Samples:
    """`values`: of one run at most one, the last number that was found. `problem`: why there is none, or that there
    were several."""

    values: tuple[float, ...] = ()
    problem: str = ""


def samples(text: bytes, metric: Metric) -> Samples:
    """The text as it was printed, or as a log with our time stamps keeps it."""
    text = _COLOURS.sub(b"", _STAMP.sub(b"", text[-MOST:])).replace(b"\r\n", b"\n")
    if metric.pattern is not None:
        return _by_pattern(text, metric.pattern)
    return _by_path(text.decode("utf-8", "replace"), metric.json_path or "")


def _by_pattern(text: bytes, pattern: str) -> Samples:
    """RE2: no expression takes more than linear time. `^` and `$` are those of lines."""
    options = re2.Options()
    options.log_errors = False
    try:
        wanted = re2.compile(f"(?m){pattern}".encode(), options)
    except re2.error as error:
        return Samples(problem=f"the pattern {pattern[:SHOWN]!r} cannot be used: {_words(error)}")
    group = 1 if wanted.groups else 0
    found = [said for match in wanted.finditer(text) if (said := match.group(group)) is not None]
    if not found:
        return Samples(problem=f"the pattern {pattern[:SHOWN]!r} matches nothing in the output")
    return _last([said.decode("utf-8", "replace") for said in found], "matches")


def _words(error: re2.error) -> str:
    told = error.args[0] if error.args else ""
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    return text.replace(": (?m)", ": ")


def _by_path(text: str, path: str) -> Samples:
    dear = f"the JSONPath {path[:SHOWN]!r} may take for ever: no =~, sub, split, product, `parent` or |, {_ONCE}"
    if _REFUSED.search(path) or path.count("..") > 1:
        return Samples(problem=dear)
    try:
        wanted = jsonpath_ng.ext.parser.parse(path)
        is_dear = _dear(wanted)
    except Exception as error:  # noqa: BLE001 the library raises what it comes to, and no request may end a worker
        return Samples(problem=f"{path[:SHOWN]!r} is no JSONPath: {_said(error)}")
    if is_dear:
        return Samples(problem=dear)
    documents = list(_documents(text, _AT_START)) or list(_documents(text, _BEHIND_WORDS))
    if not documents:
        return Samples(problem="no JSON document was printed")
    try:
        found = [match.value for match in wanted.find(documents[-1])]
    except Exception as error:  # noqa: BLE001 as above: AssertionError, NotImplementedError and AttributeError are known
        return Samples(problem=f"the JSONPath {path[:SHOWN]!r} fails on the last JSON document: {_said(error)}")
    if not found:
        return Samples(problem=f"the JSONPath {path[:SHOWN]!r} finds nothing in the last JSON document")
    return _last(found, "values")


def _dear(part: Any, first: bool = True) -> bool:
    """Whether what it finds may be more than the document holds: things that are found again and again, and products
    and sums of sums, of which a text may be larger than memory. `first`: it is asked once, and not of each match."""
    if isinstance(part, list | tuple):
        return any(_dear(each, False) for each in part)
    again = isinstance(part, Operation) and part.op is operator.mul or type(part).__name__ in _AGAIN
    if again or (isinstance(part, Root | Operation) and not first):
        return True
    if isinstance(part, Index) and len(part.indices) > 1 or isinstance(part, Fields) and _twice(part.fields):
        return True
    if not isinstance(part, JSONPath | Expression):
        return False
    once = {"left": first, "right": first and isinstance(part, Operation), "value": True}
    return any(_dear(each, once.get(name, False)) for name, each in vars(part).items())


def _twice(names: tuple[str, ...]) -> bool:
    return len(set(names)) < len(names)


def _said(error: Exception) -> str:
    return str(error)[:SHOWN] or type(error).__name__


def _documents(text: str, starts: re.Pattern[str]) -> Iterator[Any]:
    """Objects and arrays that end with their line, none of them part of another."""
    at, budget = 0, READINGS * len(text)
    while budget >= 0 and (start := starts.search(text, at)):
        document, end, read = _decoded(text, start.end())
        if document is not None and not text[end : _end_of_line(text, end)].strip():
            yield document
        budget -= read
        at = end if document is not None else _end_of_line(text, start.end())


def _decoded(text: str, begin: int) -> tuple[Any, int, int]:
    """The document that begins there or None, its end, and how much more than a first look it took."""
    size, read = WINDOW, 0
    while True:
        window = text[begin : begin + size]
        try:
            document, end = json.JSONDecoder().raw_decode(window)
            return document, begin + end, 0
        except json.JSONDecodeError as error:
            cut = error.pos > len(window) - 16 or error.msg.startswith("Unterminated")
            if len(window) < size or not cut:
                return None, begin, read
        except (ValueError, RecursionError):  # a number of more digits, or more levels, than Python reads
            return None, begin, read + size
        size *= 8
        read += size


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _last(found: list[Any], what: str) -> Samples:
    value = found[-1]
    number = _number(value)
    if number is None:
        return Samples(
            problem=f"{str(value)[:SHOWN]!r} is no number: the pattern's first group, or the path, must be one"
        )
    if not math.isfinite(number):
        shown = value if isinstance(value, str) else number  # an integer may have more digits than Python writes
        return Samples(problem=f"{str(shown)[:SHOWN]!r} is not a finite number")
    return Samples((number,), f"{len(found)} {what}, of which the last counts" if len(found) > 1 else "")


def _number(value: Any) -> float | None:
    """Also of text, with separators between thousands; of nan and inf what they are."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    text = value.strip()
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    return float(text.replace(",", "").replace("_", "")) if _NUMBER.fullmatch(text) else None
