"""The signature of a log: its root failure, in a form that another run of the same failure has too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from worker.observe.failures import Failure, Kind, Record
from worker.observe.frames import Frame, frames_of, most_frequent
from worker.observe.normal import normal
from worker.observe.pointers import Rank, rank
from worker.observe.reading import Reading, read
from worker.observe.records import plain

#: So many of the project's frames are a signature's; those further out only lead there.
INNERMOST = 4
#: Of a normalised message; of the line that people are shown.
LONGEST, SHOWN = 400, 300
#: Lines that a message may go on for, and lines between NCCL's warning and what fails of it.
MESSAGE, WARNED = 4, 60


@dataclass(frozen=True)
class Signature:
    """Two of them are equal when kind, type, message and frames are. `frames`: the project's, innermost first; `outer`:
    those further out. `line`: of the log, from 1, where the failure stands; `said`: how it put it."""

    kind: Kind
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    outer: tuple[Frame, ...] = ()
    line: int = field(default=0, compare=False)
    said: str = field(default="", compare=False)


def signature(log: str | Iterable[str], project: tuple[str, ...] = (), *, hang: bool = False) -> Signature | None:
    """None: nothing in the log says that it failed.

    `project`: names of its packages or folders; when empty, the package that most frames are in. `hang`: the run was
    ended because it took too long; its last line counts if nothing else does.
    """
    return signature_of(read(log, project), project, hang=hang)


def signature_of(reading: Reading, project: tuple[str, ...], *, hang: bool) -> Signature | None:
    root = _root(reading.failures.found, project)
    if hang and (root is None or root.rank >= Rank.HANDLED) and reading.last is not None:
        return _hung(reading.last, project)
    return _signature(root, reading.failures.found) if root else None


def extent(reading: Reading, found: Signature) -> tuple[int, int]:
    """The lines of a log that tell of its root failure: of all exceptions of its chain, and what NCCL warned of before.

    A message may go on for a few lines.
    """
    failures = reading.failures.found
    chain = next((failure.chain for failure in failures if failure.number == found.line and failure.chain), 0)
    numbers = [failure.number for failure in failures if chain and failure.chain == chain] or [found.line]
    return min(numbers) - (WARNED if found.kind is Kind.NCCL else 0), max(numbers) + MESSAGE


@dataclass(frozen=True)
class _Root:
    failure: Failure
    rank: Rank
    project: tuple[str, ...]


def _root(found: list[Failure], project: tuple[str, ...]) -> _Root | None:
    """The earliest of the most specific ones."""
    project = project or most_frequent(place for failure in found for place in failure.places)
    own = {id(failure): bool(frames_of(failure.places, project)) for failure in found}
    chains = {failure.chain for failure in found if failure.chain and own[id(failure)]}
    ranked = [
        (rank(failure, own[id(failure)] or failure.chain in chains), failure.number, place)
        for place, failure in enumerate(found)
    ]
    if not ranked:
        return None
    best, _, place = min(ranked)
    return _Root(found[place], best, project)


def _signature(root: _Root, found: list[Failure]) -> Signature:
    failure = root.failure
    frames = frames_of(failure.places, root.project) or _borrowed(root, found)
    message = normal(failure.message[: 2 * LONGEST], root.project)[:LONGEST].rstrip()
    said = f"{failure.type}: {failure.message}".strip(": ")[:SHOWN]
    return Signature(
        failure.kind, failure.type, message, frames[:INNERMOST], frames[INNERMOST:], failure.number, plain(said)
    )


def _borrowed(root: _Root, found: list[Failure]) -> tuple[Frame, ...]:
    """A native failure seldom knows its frames; what the same process said next often does."""
    failure = root.failure
    for other in found:
        later = other is not failure and other.number >= failure.number
        near = (other.chain and other.chain == failure.chain) or (
            other.process == failure.process or other.kind in (Kind.CUDA, Kind.NCCL)
        )
        if later and near and _native(failure, other) and (frames := frames_of(other.places, root.project)):
            return frames
    return ()


def _native(failure: Failure, other: Failure) -> bool:
    native = failure.kind in (Kind.ASSERTION, Kind.CPP, Kind.CUDA, Kind.NCCL, Kind.SIGNAL)
    return native or bool(failure.chain and failure.chain == other.chain)


def _hung(last: Record, project: tuple[str, ...]) -> Signature:
    return Signature(
        Kind.HANG,
        "hang",
        normal(last.text[: 2 * LONGEST], project)[:LONGEST],
        line=last.number,
        said=plain(last.text)[:SHOWN],
    )


def matches_text(found: Signature, failure: str) -> bool:
    """Whether the text that a user gave for the failure stands in the signature, what varies aside."""
    wanted = normal(failure).lower()
    return bool(wanted) and wanted in f"{found.type}: {normal(found.message)}".lower()
