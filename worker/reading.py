"""Orders as they come: read as far as a worker can, and refused by name where it cannot. Nothing here raises for what
stands in a message, but for NodeFault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from worker.contract import VERSION, BuildResult, Fault, ProbeResult, SurveyResult, is_name
from worker.errors import NodeFault

#: What an order is called by, for each kind.
NAMES = {"build": "key", "probe": "probe", "survey": "bisection"}
#: Of an attempt that cannot be read, as that of another version of firstbad. No attempt has it.
NO_ATTEMPT = 0
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Head:
    """Whose order it is. `bisection`: as far as the order says. `attempt_known`: the service counts it as we do."""

    kind: str
    id: str
    attempt: int
    attempt_known: bool
    bisection: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.kind, self.id, self.attempt)

    @property
    def bound(self) -> dict[str, str | int]:
        """What log lines about it carry."""
        found: dict[str, str | int] = {self.kind: self.id, "attempt": self.attempt}
        if self.kind == "survey":
            return {"bisection": self.id, "attempt": self.attempt}
        return {"bisection": self.bisection, **found} if self.bisection else found


def head(kind: str, raw: object) -> Head | None:
    """None when it does not say whose order it is, so that nobody could be answered."""
    if not isinstance(raw, Mapping):
        return None
    id = _text(raw.get(NAMES[kind]))
    if id is None:
        return None
    attempt = _number(raw.get("attempt"))
    bisection = _text(raw.get("bisection")) or ""
    return Head(kind, id, NO_ATTEMPT if attempt is None else attempt, attempt is not None, bisection)


def parsed(raw: Mapping[str, Any], model: type[M], node: str) -> M:
    """Errors: NodeFault, for what this worker does not understand. The version counts before anything else: what
    another one means by a field that both have cannot be known."""
    version = raw.get("version")
    if version is True or version != VERSION:
        raise other_version(version, node)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        message = f"the order cannot be read: {said}"[:2000]
        raise NodeFault("order", message, "The service sent it: see its log, and tell its operator.") from error


def other_version(version: object, node: str) -> NodeFault:
    """Which of the two is to be upgraded is known where both count versions by the same numbers."""
    shown = version if isinstance(version, int) and not isinstance(version, bool) else repr(version)[:60]
    message = f"the order has version {shown} of the contract, the worker on {node} reads version {VERSION}"
    return NodeFault("version", message, _upgrade(version, node))


def version_said(said: object) -> object:
    """Of a text in Redis: a number where it is one."""
    number = _number(said)
    return said if number is None else number


def mismatch(version: object, node: str) -> str:
    """What is wrong between this worker and its service; empty when nothing is."""
    if version is None or version == VERSION:
        return ""
    said = f"the service has version {version} of the contract, the worker on {node} has version {VERSION}"
    return f"{said}. {_upgrade(version, node)}"


def _upgrade(version: object, node: str) -> str:
    if isinstance(version, int) and not isinstance(version, bool):
        older = f"the worker on {node}" if version > VERSION else "the service"
        return f"Upgrade firstbad on {older}, so that both have the same version."
    return f"Install the same version of firstbad for the service and for the worker on {node}."


def failure(found: Head, node: str, fault: Fault) -> BuildResult | ProbeResult | SurveyResult:
    """The answer to an order that came to nothing."""
    if found.kind == "build":
        return BuildResult(key=found.id, attempt=found.attempt, node=node, seconds=0.0, fault=fault)
    if found.kind == "probe":
        return ProbeResult(probe=found.id, attempt=found.attempt, node=node, fault=fault)
    return SurveyResult(bisection=found.id, attempt=found.attempt, node=node, fault=fault)


def fault_of(fault: NodeFault) -> Fault:
    return Fault(kind=fault.kind, message=fault.message, advice=fault.advice)


def _text(value: object) -> str | None:
    """A name that can be part of a key in Redis, and of an answer in JSON."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return text if is_name(text) else None


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        return int(value)
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and isinstance(value, int) and 0 <= value < 10**9 else None
