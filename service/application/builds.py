"""The life of a build: asked for by a probe or ahead of one, made once for all, in as few native builds as can be.

A wheel whose compiled files exist already is put together from them. One whose compiled files are being made waits for
that build. Only what is left is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.application import turns
from service.application.keys import Keys
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Build, Message, Origin
from service.domain.lifecycle import LIVE_BUILDS, LIVE_PROBES, BuildState, moved

#: Wheels that stand on their own, so that others can stand on them.
_BASES = frozenset({Origin.BUILT, Origin.PREBUILT})
#: The fault of a build that did not end in its time.
TOO_SLOW = "build-timeout"
_IN_WORK = frozenset({BuildState.QUEUED, BuildState.RUNNING})


@dataclass(frozen=True)
class Place:
    """Where somebody who wants a build stands in line; `held`: that one is paused."""

    turn: str
    asked_at: datetime
    held: bool = False


def place_of(build: Build) -> Place:
    return Place(build.turn, build.asked_at or build.queued_at, build.held)


def placed(build: Build, place: Place) -> Build:
    return replace(build, turn=place.turn, asked_at=place.asked_at, held=place.held)


def first_of(*places: Place) -> Place:
    """Where a build stands that several want."""
    return min(places, key=lambda place: (place.held, turns.rank_of(place.turn), place.asked_at, place.turn))


def ask(tx: Transaction, bisection: Bisection, sha: str, keys: Keys, now: datetime, *, ahead: bool = False) -> Build:
    """The build of these keys: made new, taken up again, or as it is. `ahead`: nobody waits for it yet."""
    if keys.native is not None:
        tx.lock_native(keys.native)
    build = tx.build(keys.content, lock=True)
    place = Place(turns.turn_of(bisection, ahead=ahead), bisection.created_at, held=bisection.paused_at is not None)
    if build is None:
        build = Build(keys.content, BuildState.QUEUED, bisection.request.repo, sha, bisection.id, now)
        return start(tx, placed(replace(build, native_key=keys.native, ahead=ahead, used_at=now), place), now)
    if ahead and build.state is BuildState.FAULTED:
        # The nodes could not do it: only for a probe is it tried again.
        return build
    if _to_be_built_anew(build, bisection):
        anew = replace(build, bisection_id=bisection.id, ahead=ahead, used_at=now)
        return start(tx, placed(replace(anew, faults=(), failure=None, notes=()), place), now)
    return _asked_again(tx, build, place, now, ahead=ahead)


def _to_be_built_anew(build: Build, bisection: Bisection) -> bool:
    """A failure is believed by the bisection that saw it; to the next one it may have been the network's that day."""
    if build.state is BuildState.FAILED:
        return build.bisection_id != bisection.id
    return build.state in (BuildState.FAULTED, BuildState.CANCELLED, BuildState.EVICTED)


def wanted_at(tx: Transaction, build: Build, place: Place, now: datetime) -> Build:
    """A build that there is, with one more that waits for it. The caller has it locked."""
    return _asked_again(tx, build, place, now, ahead=False)


def _asked_again(tx: Transaction, build: Build, place: Place, now: datetime, *, ahead: bool) -> Build:
    """What was begun ahead is waited for from now on: its order is sent once more, to go before the others."""
    # A mere wish puts nothing elsewhere that somebody waits for, who may be paused.
    put = build.state in LIVE_BUILDS and (build.ahead or not ahead)
    mine = placed(build, first_of(place_of(build), place)) if put else build
    wanted = _save(tx, replace(mine, ahead=build.ahead and ahead, used_at=now))
    if build.ahead and not ahead and build.state is BuildState.QUEUED and build.sent_at is not None:
        key = f"build:{build.key}:{build.attempt}:wanted"
        tx.post(Message("build", key, {"id": build.key, "attempt": build.attempt}), now)
    if not ahead and build.state is BuildState.WAITING and build.native_key is not None:
        _hurry(tx, tx.builds_of_native(build.native_key), place, now)
    return wanted


def _hurry(tx: Transaction, others: Sequence[Build], place: Place, now: datetime) -> None:
    """What is waited for is not ahead any more, and waits where those stand who wait for it. Who is paused hurries
    nothing."""
    if place.held:
        return
    for other in others:
        # Its turn may come at this moment, which takes no lock of its native code.
        other = tx.build(other.key, lock=True) or other  # noqa: PLW2901
        if _makes_natives(other) and (other.ahead or first_of(place_of(other), place) != place_of(other)):
            _asked_again(tx, other, place, now, ahead=False)


def _makes_natives(build: Build) -> bool:
    return build.state in _IN_WORK and build.base_key is None


def locked(tx: Transaction, key: str) -> Build | None:
    """The build, with nobody else at it or at another of its native code until the transaction ends.

    The native key first, always: whoever ends a build locks those that wait for it, and whoever hurries one the other
    way round. A key's native key never changes, so that it can be read before.
    """
    found = tx.build(key)
    if found is None or found.native_key is None:
        return tx.build(key, lock=True)
    tx.lock_native(found.native_key)
    return tx.build(key, lock=True)


def lock(tx: Transaction, keys: Iterable[Keys], there: Iterable[Build] = ()) -> None:
    """What one transaction is going to ask for or to let go, in an order that is the same for all: native keys first.
    `there`: builds whose keys are not among these."""
    found = {(key.content, key.native) for key in keys} | {(build.key, build.native_key) for build in there}
    for native in sorted({native for _, native in found if native is not None}):
        tx.lock_native(native)
    for content in sorted({content for content, _ in found}):
        tx.build(content, lock=True)


def lock_those_of(tx: Transaction, bisection_id: str) -> None:
    """All that it waits for or has begun ahead. The caller holds the bisection's lock."""
    keys = {probe.build_key for probe in tx.probes(bisection_id) if probe.state in LIVE_PROBES}
    waited = [build for key in keys if key is not None and (build := tx.build(key)) is not None]
    lock(tx, (), (*waited, *tx.builds_ahead(bisection_id)))


def start(tx: Transaction, build: Build, now: datetime, delay_s: float = 0.0) -> Build:
    """Sends it on its cheapest way. The caller has it locked, or it is new."""
    if build.native_key is None:
        return queue(tx, replace(build, base_key=None), now, delay_s)
    others = [other for other in tx.builds_of_native(build.native_key) if other.key != build.key]
    base = base_of(others)
    if base is not None:
        tx.save_build(replace(base, used_at=now))
        return queue(tx, replace(build, base_key=base.key), now, delay_s)
    if any(_makes_natives(other) for other in others):
        if not build.ahead:
            _hurry(tx, others, place_of(build), now)
        if build.state is BuildState.WAITING:
            return build
        return _save(tx, replace(build, state=moved(build.state, BuildState.WAITING), base_key=None))
    for other in others:
        if other.bisection_id == build.bisection_id and (over := _alike(build, other)) is not None:
            return _save(tx, replace(over, finished_at=now))
    return queue(tx, replace(build, base_key=None), now, delay_s)


def base_of(builds: Sequence[Build]) -> Build | None:
    """The one whose compiled files serve all others: the one used last, as it may be kept longest."""
    found = [build for build in builds if build.state is BuildState.BUILT and build.origin in _BASES]
    return max(found, key=lambda build: (build.used_at or build.queued_at, build.key), default=None)


def _alike(build: Build, other: Build) -> Build | None:
    """The end that it shares with a build of the same native code, as far as one bisection has seen: what a compiler
    refused, or did not finish in its time however often, will go no better a second time."""
    which = f"not built: its native code is that of {other.sha[:10]}, which"
    if other.state is BuildState.FAILED and other.failure is not None and other.failure.code_refused:
        state = moved(build.state, BuildState.FAILED)
        note = f"{which} does not compile"
        return replace(build, state=state, failure=other.failure, log=other.log, notes=(note,))
    if other.state is BuildState.FAULTED and all(fault.kind == TOO_SLOW for fault in other.faults):
        state = moved(build.state, BuildState.FAULTED)
        return replace(build, state=state, faults=other.faults, notes=(f"{which} takes too long",))
    return None


def queue(tx: Transaction, build: Build, now: datetime, delay_s: float = 0.0) -> Build:
    """A new attempt, which waits for its turn: whatever an older one still reports is stale from here on."""
    state = moved(build.state, BuildState.QUEUED)
    fresh = replace(build, state=state, attempt=build.attempt + 1, queued_at=now, started_at=None, finished_at=None)
    fresh = replace(fresh, due_at=now + timedelta(seconds=delay_s) if delay_s else None, sent_at=None)
    return _save(tx, replace(fresh, silent_since=None, node=None, log_removed_at=None))


def ended(tx: Transaction, build: Build, now: datetime) -> tuple[Build, ...]:
    """Keeps a build that has ended, and starts those that waited for its compiled files; those that ended by that.

    The caller has it locked, and by that all of its native code.
    """
    tx.save_build(build)
    if build.native_key is None:
        return ()
    over: list[Build] = []
    for other in tx.builds_of_native(build.native_key):
        if other.state is BuildState.WAITING:
            started = start(tx, other, now)
            over += [started] if started.state not in LIVE_BUILDS else []
    return tuple(over)


def cancel(tx: Transaction, found: Build, now: datetime) -> None:
    """Stops a live build that nobody needs, so that no probe waits for what ends by that. The caller holds the lock of
    its native code."""
    build = tx.build(found.key, lock=True) or found
    if build.sent_at is not None and build.state is not BuildState.WAITING:
        turns.stop(tx, "build", build.key, build.attempt, now)
    ended(tx, replace(build, state=moved(build.state, BuildState.CANCELLED), finished_at=now), now)


def drop(tx: Transaction, build: Build, now: datetime) -> None:
    """Takes its wheel out of the store; who wants it builds it again. The caller holds its lock."""
    tx.save_build(replace(build, state=moved(build.state, BuildState.EVICTED)))
    remove(tx, build.wheel_path or "", now)


def remove(tx: Transaction, path: str, now: datetime) -> None:
    """Takes a file out of the store, once this is committed."""
    tx.post(Message("remove", f"remove:{path}", {"path": path}), now)


def lose(tx: Transaction, key: str, now: datetime) -> None:
    """Its wheel is not in the store as it was: nothing is to stand on it any more."""
    build = locked(tx, key)
    if build is not None and build.state is BuildState.BUILT:
        drop(tx, build, now)


def release(tx: Transaction, key: str, now: datetime) -> None:
    """Stops what nobody waits for any more, and with a build that waited the one that it waited for."""
    build = locked(tx, key)
    if build is None or build.state not in LIVE_BUILDS:
        return
    if _needed(tx, build):
        # Whose wish it was gave it up; it is left for who waits for it.
        stand(tx, _save(tx, replace(build, ahead=False)) if build.ahead else build, now)
        return
    cancel(tx, build, now)
    if build.native_key is not None:
        for other in tx.builds_of_native(build.native_key):
            if not _makes_natives(other) or other.ahead:
                continue
            if not _needed(tx, other):
                cancel(tx, other, now)
            else:
                # Who hurried it is gone.
                stand(tx, other, now)


def stand(tx: Transaction, found: Build, now: datetime) -> None:
    """Puts it, and what it waits for, where those stand who want it; when all of them are paused, what was sent and has
    not begun is taken back. The caller holds the lock of its native code."""
    build = tx.build(found.key, lock=True) or found
    places = [Place(probe.turn, probe.asked_at or now, probe.held) for probe in tx.probes_of_build(build.key)]
    others = tx.builds_of_native(build.native_key) if build.native_key is not None else ()
    if _makes_natives(build):
        places += [place_of(other) for other in others if other.state is BuildState.WAITING and not other.ahead]
    if not places or first_of(*places) == place_of(build):
        return
    anew = placed(build, first_of(*places))
    if anew.held and build.state is BuildState.QUEUED and build.sent_at is not None:
        turns.stop(tx, "build", build.key, build.attempt, now)
        queue(tx, anew, now)
    else:
        tx.save_build(anew)
    if build.state is BuildState.WAITING:
        for other in others:
            if _makes_natives(other):
                stand(tx, other, now)


def _needed(tx: Transaction, build: Build) -> bool:
    """Whether a probe waits for it, or another build for its compiled files."""
    if tx.probes_of_build(build.key):
        return True
    if build.native_key is None or not _makes_natives(build):
        return False
    return any(other.state is BuildState.WAITING for other in tx.builds_of_native(build.native_key))


def release_ahead(tx: Transaction, bisection_id: str, keep: frozenset[str], now: datetime) -> None:
    """Stops what was begun ahead for this bisection and is not among the keys to keep; what waits first."""
    found = [build for build in tx.builds_ahead(bisection_id) if build.key not in keep]
    for build in sorted(found, key=lambda build: (build.state is not BuildState.WAITING, build.key)):
        release(tx, build.key, now)


def _save(tx: Transaction, build: Build) -> Build:
    tx.save_build(build)
    return build
