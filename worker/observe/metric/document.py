"""Numbers by a JSONPath into the last JSON document that was printed."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from typing import Any

import jsonpath_ng.ext.parser
from jsonpath_ng import Fields, Index, JSONPath, Root
from jsonpath_ng.ext.arithmetic import Operation
from jsonpath_ng.ext.filter import Expression

from worker.observe.metric.values import SHOWN, Found, NothingFound, NotThere

#: So many characters are looked at first where a document may begin, then eight times as many, and so on; where there
#: is none, no more in all than the text has so many times.
WINDOW, READINGS = 4096, 20
#: Where a document begins: at the beginning of a line, or else behind words.
_AT_START, _BEHIND_WORDS = re.compile(r"(?m)^[ \t]*(?=[\[{])"), re.compile(r"(?m)^[^\n{]+(?=\{)")
#: Filters that run Python's regular expressions, which may take for ever. The service refuses the same, when asked.
_REFUSED = re.compile(r"=~|\bsub\(|\bsplit\(")
_ONCE = "`..` and `$` once, and one index in brackets"
#: By these a path finds the same thing many times, and at each step more often.
_AGAIN = ("Parent", "Union", "_Union")


def by_path(text: str, path: str, unit_path: str | None = None) -> list[Found]:
    """Errors: NothingFound."""
    wanted, of_unit = _parsed(path), _parsed(unit_path) if unit_path else None
    documents = list(_documents(text, _AT_START)) or list(_documents(text, _BEHIND_WORDS))
    if not documents:
        raise NotThere("no JSON document was printed: let the check print it, as by cat results.json")
    found = _matches(wanted, documents[-1], path)
    if not found:
        raise NotThere(f"the JSONPath {path[:SHOWN]!r} finds nothing in the last JSON document: correct it")
    said = _matches(of_unit, documents[-1], unit_path or "") if of_unit is not None else []
    units = _units(said, len(found), unit_path or "")
    return [Found(value, unit) for value, unit in zip(found, units, strict=True)]


def _units(found: list[Any], count: int, path: str) -> list[str]:
    """Of each number its own, where there are as many; else the one that all have. Errors: NothingFound."""
    said = [each.strip() if isinstance(each, str) else "" for each in found]
    if len(said) == count or not said:
        return said or [""] * count
    if len(set(said)) > 1:
        raise NothingFound(f"the path of the unit, {path[:SHOWN]!r}, finds {len(said)} of them for {count} numbers")
    return said[:1] * count


def _matches(wanted: Any, document: Any, path: str) -> list[Any]:
    try:
        return [match.value for match in wanted.find(document)]
    except Exception as error:  # noqa: BLE001 as above: AssertionError, NotImplementedError and AttributeError are known
        why = f"the JSONPath {path[:SHOWN]!r} fails on the last JSON document: {_said(error)}"
        raise NothingFound(why) from error


def _parsed(path: str) -> Any:
    dear = f"the JSONPath {path[:SHOWN]!r} may take for ever: no =~, sub, split, product, `parent` or |, {_ONCE}"
    if _REFUSED.search(path) or path.count("..") > 1:
        raise NothingFound(dear)
    try:
        wanted = jsonpath_ng.ext.parser.parse(path)
        is_dear = _dear(wanted)
    except Exception as error:  # noqa: BLE001 the library raises what it comes to, and no request may end a worker
        raise NothingFound(f"{path[:SHOWN]!r} is no JSONPath: {_said(error)}") from error
    if is_dear:
        raise NothingFound(dear)
    return wanted


# The same stands in service.application.json_paths, which shares no code with workers: who changes one changes both, as
# a test of all kinds of paths demands.
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
