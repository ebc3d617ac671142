"""What a client does, told step by step without doing it, so that it is written once for both clients.

A flow is a generator: it yields a step, is sent what came of it, and returns its result. What its client met
(httpx.TransportError) is raised where it yielded.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from firstbad.call import Call

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Comes to an httpx.Response with its body. `open`: without, and `Read` brings that piece by piece."""

    call: Call[Any]
    open: bool = False


@dataclass(frozen=True)
class Read:
    """The next piece of the answer that is open; None at its end."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Give:
    """To who iterates."""

    item: Any


Step = Send | Read | Pause | Give
Flow = Generator[Step, Any, T]


class Turn(Generic[T]):
    """A flow on its way; `went(None)` begins it. `step`: to be done next; None once there is a `result`."""

    def __init__(self, flow: Flow[T]) -> None:
        self._flow = flow
        self.result: T
        self.step: Step | None = None

    def went(self, came: object) -> None:
        try:
            self.step = self._flow.send(came)
        except StopIteration as end:
            self.result, self.step = end.value, None

    def failed(self, error: Exception) -> None:
        try:
            self.step = self._flow.throw(error)
        except StopIteration as end:
            self.result, self.step = end.value, None

    def close(self) -> None:
        self._flow.close()
