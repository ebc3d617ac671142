"""The table of moves, each pair of states with its expected answer."""

from enum import StrEnum

import pytest

from service.domain.lifecycle import (
    LIVE_BISECTIONS,
    LIVE_BUILDS,
    LIVE_PROBES,
    MOVES,
    BisectionState,
    BuildState,
    IllegalMove,
    ProbeState,
    moved,
)

ALLOWED = {
    BisectionState: """
        queued>preparing preparing>checking_ends checking_ends>searching searching>confirming searching>suspects
        confirming>found confirming>suspects confirming>searching
        queued>refused preparing>refused checking_ends>refused searching>refused confirming>refused
        found>checking_ends suspects>checking_ends refused>checking_ends failed>checking_ends cancelled>checking_ends
        searching>checking_ends confirming>checking_ends cancelled>queued
        queued>failed preparing>failed checking_ends>failed searching>failed confirming>failed
        queued>cancelled preparing>cancelled checking_ends>cancelled searching>cancelled confirming>cancelled
    """,
    ProbeState: """
        planned>building planned>queued planned>judged planned>faulted planned>cancelled
        building>queued building>judged building>faulted building>cancelled
        queued>queued queued>building queued>running queued>judged queued>faulted queued>cancelled
        running>queued running>building running>judged running>faulted running>cancelled
    """,
    BuildState: """
        waiting>queued waiting>failed waiting>faulted waiting>cancelled
        queued>queued queued>waiting queued>running queued>built queued>failed queued>faulted queued>cancelled
        running>queued running>waiting running>built running>failed running>faulted running>cancelled
        built>queued built>waiting built>failed built>faulted built>evicted
        failed>queued failed>waiting failed>failed failed>faulted
        faulted>queued faulted>waiting faulted>failed faulted>faulted
        cancelled>queued cancelled>waiting cancelled>failed cancelled>faulted
        evicted>queued evicted>waiting evicted>failed evicted>faulted
    """,
}
PAIRS = [(kind, was, to) for kind in ALLOWED for was in kind for to in kind]


@pytest.mark.parametrize(("kind", "was", "to"), PAIRS, ids=lambda value: str(getattr(value, "value", "")))
def test_each_pair_of_states(kind: type[StrEnum], was: StrEnum, to: StrEnum) -> None:
    written = f"{was}>{to}".replace(" ", "_")
    if written in ALLOWED[kind].split():
        assert moved(was, to) is to
    else:
        with pytest.raises(IllegalMove, match=str(to)):
            moved(was, to)


def test_what_is_live_is_exactly_what_may_end_by_itself() -> None:
    ends = {BisectionState.CANCELLED, ProbeState.CANCELLED, BuildState.CANCELLED}
    for kind, live in ((BisectionState, LIVE_BISECTIONS), (ProbeState, LIVE_PROBES), (BuildState, LIVE_BUILDS)):
        assert {state for state in kind if any(to in ends for to in MOVES[kind][state])} == live
