"""Following a log through what a probe or a build goes through. That pieces arrive in time is tests/end_to_end's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.domain.errors import NotFound
from service.domain.evidence import Log
from tests.application.conftest import World
from tests.application.native import UNCOMPILED, begun
from tests.fakes.workers import result


def store(world: World, path: str, text: bytes) -> None:
    file = Path(world.flow.ports.artifacts._root) / path  # noqa: SLF001
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)


def until_something(pieces: Iterator[bytes]) -> bytes:
    return next(piece for piece in pieces if piece)


@pytest.fixture
def running(world: World) -> World:
    """With one probe, of the bad end, that runs."""
    world.submit()
    world.workers.prepare(world.flow)
    world.workers.start(world.flow)
    return world


def test_what_runs_is_shown_and_its_end_is_the_end(running: World) -> None:
    order = running.workers.seen[0]
    ends = lambda: running.flow.probed(result(order, 1))  # noqa: E731
    running.live.writes["probe", order.probe, 1] = [b"one\n", b"", b"two\n", ends, b"three\n", b""]
    assert b"".join(running.flow.follow(order.probe)) == b"one\ntwo\nthree\n"
    assert running.live.closed == [("probe", order.probe, 1)]


def test_what_waits_is_shown_from_when_it_runs(world: World) -> None:
    world.submit()
    world.workers.prepare(world.flow)
    order = world.workers.probes[0]
    pieces = world.flow.follow(order.probe)
    assert [next(pieces) for _ in range(5)] == [b""] * 5
    world.workers.start(world.flow)
    assert next(pieces) == b""
    pieces.close()
    assert world.live.closed == [("probe", order.probe, 1)]


def test_what_ended_before_anything_was_seen_is_shown_as_it_was_stored(running: World) -> None:
    order = running.workers.seen[0]
    pieces = running.flow.follow(order.probe)
    assert next(pieces) == b""
    ended = result(order, 1)
    assert ended.outcome is not None
    assert ended.outcome.log is not None
    store(running, ended.outcome.log.path, b"all of it\n")
    running.flow.probed(ended)
    assert b"".join(pieces) == b"all of it\n"
    assert b"".join(running.flow.follow(order.probe)) == b"all of it\n"


def test_a_log_that_is_in_the_store_no_more_is_told(running: World) -> None:
    order = running.workers.seen[0]
    pieces = running.flow.follow(order.probe)
    assert next(pieces) == b""
    running.flow.probed(result(order, 1))
    assert b"there is no artifact" in b"".join(pieces)
    with pytest.raises(NotFound):
        running.flow.follow(order.probe)
    with pytest.raises(NotFound):
        running.flow.follow("none.1")
    with pytest.raises(NotFound, match="there is no build"):
        running.flow.follow_build("none")


def test_the_next_attempt_is_followed_under_its_name(running: World) -> None:
    order = running.workers.seen[0]
    dies = lambda: running.workers.seen.append(order)  # noqa: E731
    running.live.writes["probe", order.probe, 1] = [b"begins\n", dies]
    running.live.writes["probe", order.probe, 2] = [b"again\n", b""]
    pieces = running.flow.follow(order.probe)
    assert until_something(pieces) == b"begins\n"
    assert until_something(pieces) == b"\n[firstbad: nothing more is heard of attempt 1]\n"
    assert [next(pieces) for _ in range(3)] == [b""] * 3
    running.workers.probes.insert(0, order)
    running.workers.fault(running.flow)
    running.wait_for_retry()
    assert until_something(pieces) == b"\n[firstbad: attempt 2]\n"
    assert next(pieces) == b"again\n"


def test_a_cancelled_probe_ends_the_following(running: World) -> None:
    order = running.workers.seen[0]
    pieces = running.flow.follow(order.probe)
    assert next(pieces) == b""
    running.flow.cancel(order.bisection, "me")
    assert b"left no log" in b"".join(pieces)


def test_a_build_is_followed_as_well(native: World) -> None:
    begun(native)
    order = native.workers.builds[0]
    store(native, "logs/build.log", b"compiled\n")
    pieces = native.flow.follow_build(order.key)
    native.live.writes["build", order.key, order.attempt] = [
        b"compiling\n",
        lambda: native.workers.build(native.flow, failure=replace(UNCOMPILED), log=Log("logs/build.log", 9)),
        b"",
    ]
    assert b"".join(pieces) == b"compiling\n"
    assert b"".join(native.flow.follow_build(order.key)) == b"compiled\n"
