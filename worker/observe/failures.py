"""What the readers of a log pass on: one failure each, as the log says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    PYTHON = "python exception"
    CPP = "c++ terminate"
    CUDA = "cuda error"
    NCCL = "nccl error"
    SIGNAL = "signal"
    RUST = "rust panic"
    GO = "go panic"
    JVM = "jvm exception"
    NODE = "node error"
    PYTEST = "pytest failure"
    COMPILER = "compiler error"
    ASSERTION = "assertion"
    HANG = "hang"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Record:
    """A line without what was put before it. `process`: who wrote it, "" when it does not say.

    `opens`: a time stamp or a level stood before it. `source`: so did the logging file, as on each line of a record.
    """

    number: int
    process: str
    level: str
    text: str
    opens: bool = False
    source: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A frame as the log names it."""

    path: str
    function: str


@dataclass(slots=True, eq=False)
class Failure:
    """`places`: innermost last. `chain`: failures with the same number led to each other. `wraps`: another one, named
    after it, is its cause. `handled`: somebody caught it and went on. `line_only`: nothing but one line says so."""

    kind: Kind
    type: str
    message: str
    number: int
    process: str = ""
    places: list[Place] = field(default_factory=list)
    chain: int = 0
    wraps: bool = False
    handled: bool = False
    line_only: bool = False


#: So many failures are kept at a time, of which the oldest of each type and text are the first.
KEPT = 400
#: Frames of one failure: the outermost and the innermost.
OUTERMOST, INNERMOST = 60, 140


class Failures:
    """All that was found so far, in bounded memory. `live_until`: up to that line number somebody wants every line."""

    def __init__(self) -> None:
        self.found: list[Failure] = []
        self.live_until = 0
        self._chains = 0

    def add(self, failure: Failure) -> Failure:
        self.found.append(failure)
        if len(self.found) > 2 * KEPT:
            self._thin_out()
        return failure

    def drop(self, failure: Failure) -> None:
        if failure in self.found:
            self.found.remove(failure)

    def listen(self, number: int, lines: int) -> None:
        self.live_until = max(self.live_until, number + lines)

    def new_chain(self) -> int:
        self._chains += 1
        return self._chains

    def _thin_out(self) -> None:
        """Repetitions go first; the newest may still be written to."""
        old, new = self.found[:-20], self.found[-20:]
        first: dict[tuple[str, str, str, bool], Failure] = {}
        for failure in old:
            first.setdefault((failure.kind, failure.type, failure.message, failure.handled), failure)
        weak = sorted(first.values(), key=lambda failure: (failure.line_only or failure.handled, failure.number))
        self.found = sorted(weak[:KEPT], key=lambda failure: failure.number) + new


def add_place(places: list[Place], place: Place) -> None:
    """In the order innermost last."""
    if len(places) >= OUTERMOST + INNERMOST:
        del places[OUTERMOST]
    places.append(place)
