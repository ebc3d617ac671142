"""JSONPaths that workers take, by the same rules: they would refuse one only when its first run is over."""

from __future__ import annotations

import operator
import re
from typing import Any

from jsonpath_ng import Fields, Index, JSONPath, Root
from jsonpath_ng.ext.arithmetic import Operation
from jsonpath_ng.ext.filter import Expression
from jsonpath_ng.ext.parser import parse

LONGEST = 1000
#: Filters that run Python's regular expressions, which may take for ever.
_ENDLESS = re.compile(r"=~|\bsub\(|\bsplit\(")
_AGAIN = ("Parent", "Union", "_Union")


def wrong(written: str) -> str:
    """What keeps it from being used; empty when nothing does."""
    if len(written) > LONGEST:
        return f"it has more than {LONGEST} characters"
    if written.count("..") > 1:
        return "it has .. more than once, which may take for ever"
    if _ENDLESS.search(written):
        return "it has =~, sub or split, whose regular expressions may take for ever"
    try:
        dear = _dear(parse(written))
    except Exception as error:  # noqa: BLE001 the library raises what it comes to, which is the request's fault
        return str(error)[:200] or type(error).__name__
    why = "it has a product, `parent`, |, $ or + behind something, or two indices: it may find more than memory holds"
    return why if dear else ""


# The same stands in the worker, which shares no code with us: who changes one changes both, as a test of all kinds of
# paths demands.
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
