"""The states of a bisection, a probe and a build, and the one table of moves between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar


class BisectionState(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    CHECKING_ENDS = "checking ends"
    SEARCHING = "searching"
    CONFIRMING = "confirming"
    FOUND = "found"
    SUSPECTS = "suspects"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ProbeState(StrEnum):
    PLANNED = "planned"
    BUILDING = "building"
    QUEUED = "queued"
    RUNNING = "running"
    JUDGED = "judged"
    FAULTED = "faulted"
    CANCELLED = "cancelled"


class BuildState(StrEnum):
    """`waiting`: for a build of the same native code. `evicted`: its wheel had to make room in the store."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    BUILT = "built"
    FAILED = "failed"
    FAULTED = "faulted"
    CANCELLED = "cancelled"
    EVICTED = "evicted"


S = TypeVar("S", bound=StrEnum)
_B, _P, _W = BisectionState, ProbeState, BuildState
_ENDS = {_B.REFUSED, _B.FAILED, _B.CANCELLED}

#: By type first: members of two StrEnums with the same text are equal, so one flat table would mix them up.
MOVES: Mapping[type[StrEnum], Mapping[StrEnum, frozenset[StrEnum]]] = {
    BisectionState: {
        _B.QUEUED: frozenset({_B.PREPARING} | _ENDS),
        _B.PREPARING: frozenset({_B.CHECKING_ENDS} | _ENDS),
        _B.CHECKING_ENDS: frozenset({_B.SEARCHING} | _ENDS),
        # When somebody speaks of an end, the ends are looked at anew.
        _B.SEARCHING: frozenset({_B.CONFIRMING, _B.SUSPECTS, _B.CHECKING_ENDS} | _ENDS),
        _B.CONFIRMING: frozenset({_B.FOUND, _B.SUSPECTS, _B.SEARCHING, _B.CHECKING_ENDS} | _ENDS),
        # An end of its own kind is taken back when the verdicts that it stands on have changed, one of faults when
        # somebody wants it tried again, and one whose budget was spent when that has grown.
        _B.FOUND: frozenset({_B.CHECKING_ENDS}),
        _B.SUSPECTS: frozenset({_B.CHECKING_ENDS}),
        _B.REFUSED: frozenset({_B.CHECKING_ENDS}),
        _B.FAILED: frozenset({_B.CHECKING_ENDS}),
        _B.CANCELLED: frozenset({_B.CHECKING_ENDS, _B.QUEUED}),
    },
    ProbeState: {
        _P.PLANNED: frozenset({_P.BUILDING, _P.QUEUED, _P.JUDGED, _P.FAULTED, _P.CANCELLED}),
        _P.BUILDING: frozenset({_P.QUEUED, _P.JUDGED, _P.FAULTED, _P.CANCELLED}),
        _P.QUEUED: frozenset({_P.QUEUED, _P.BUILDING, _P.RUNNING, _P.JUDGED, _P.FAULTED, _P.CANCELLED}),
        _P.RUNNING: frozenset({_P.QUEUED, _P.BUILDING, _P.JUDGED, _P.FAULTED, _P.CANCELLED}),
        _P.JUDGED: frozenset(),
        _P.FAULTED: frozenset(),
        _P.CANCELLED: frozenset(),
    },
    BuildState: {
        _W.WAITING: frozenset({_W.QUEUED, _W.FAILED, _W.FAULTED, _W.CANCELLED}),
        _W.QUEUED: frozenset({_W.QUEUED, _W.WAITING, _W.RUNNING, _W.BUILT, _W.FAILED, _W.FAULTED, _W.CANCELLED}),
        _W.RUNNING: frozenset({_W.QUEUED, _W.WAITING, _W.BUILT, _W.FAILED, _W.FAULTED, _W.CANCELLED}),
        _W.BUILT: frozenset({_W.QUEUED, _W.WAITING, _W.FAILED, _W.FAULTED, _W.EVICTED}),
        _W.FAILED: frozenset({_W.QUEUED, _W.WAITING, _W.FAILED, _W.FAULTED}),
        _W.FAULTED: frozenset({_W.QUEUED, _W.WAITING, _W.FAILED, _W.FAULTED}),
        _W.CANCELLED: frozenset({_W.QUEUED, _W.WAITING, _W.FAILED, _W.FAULTED}),
        _W.EVICTED: frozenset({_W.QUEUED, _W.WAITING, _W.FAILED, _W.FAULTED}),
    },
}

#: A live thing may still change by itself.
LIVE_BISECTIONS = frozenset({_B.QUEUED, _B.PREPARING, _B.CHECKING_ENDS, _B.SEARCHING, _B.CONFIRMING})
LIVE_PROBES = frozenset({_P.PLANNED, _P.BUILDING, _P.QUEUED, _P.RUNNING})
LIVE_BUILDS = frozenset({_W.WAITING, _W.QUEUED, _W.RUNNING})


class IllegalMove(Exception):
    """A bug of ours: a state was asked to become one that the table does not allow."""


def moved(was: S, to: S) -> S:
    """`to`, when the table allows the move."""
    if to not in MOVES[type(was)][was]:
        raise IllegalMove(f"{type(was).__name__}: {was!s} cannot become {to!s}")
    return to
