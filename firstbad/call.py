"""One request, and how its answer is read: what both clients send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote
from uuid import uuid4

from service.doors.api.views import View

T = TypeVar("T", covariant=True)
U = TypeVar("U")
Item = TypeVar("Item", covariant=True)
V = TypeVar("V", bound=View)
KEY = "Idempotency-Key"


@dataclass(frozen=True)
class Call(Generic[T]):
    """`read`: of the answer's body. Errors: pydantic.ValidationError where it is none of ours.

    `again`: sent twice, it does what it does once. `patient`: its answer may keep us waiting for as long as it likes.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: object = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    patient: bool = False

    def then(self, more: Callable[[T], U]) -> Call[U]:
        """Its answer is read further."""
        read = self.read
        return replace(self, read=lambda body: more(read(body)))  # type: ignore[arg-type, return-value]


class Paged(Protocol[Item]):
    """One page of a list. `next`: path of the next one."""

    @property
    def items(self) -> tuple[Item, ...]: ...
    @property
    def next(self) -> str | None: ...


def part(text: str) -> str:
    """One part of a path."""
    return quote(text, safe="")


def got(path: str, view: type[V], **params: object) -> Call[V]:
    return Call("GET", path, view.model_validate_json, params=given(params), again=True)


def posted(
    path: str, view: type[V], json: object = None, *, key: str | None = None, again: bool = True, **params: object
) -> Call[V]:
    """With an Idempotency-Key of its own where none is given, so that sending it again begins nothing twice."""
    headers = {KEY: key if key is not None else uuid4().hex}
    return Call("POST", path, view.model_validate_json, given(params), json, headers=headers, again=again)


def given(params: Mapping[str, object]) -> dict[str, object]:
    """Those that say something."""
    return {name: value for name, value in params.items() if value is not None and value != ()}
