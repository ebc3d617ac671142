"""Logs as they come: of what runs, of what is tried again, to the end; of what has ended already, the stored one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from service.application import queries
from service.application.ports import Ports
from service.domain.bisection import Build, Probe
from service.domain.errors import NotFound, Removed
from service.domain.evidence import Log
from service.domain.lifecycle import LIVE_BUILDS, LIVE_PROBES


@dataclass(frozen=True)
class Standing:
    """`attempt`: 0 before the first. `log`: of what has ended. Errors of it: NotFound, Removed."""

    live: bool
    attempt: int
    log: Callable[[], Log]


def of_probe(probe: Probe, keep_s: float | None = None) -> Standing:
    return Standing(probe.state in LIVE_PROBES, probe.attempt, lambda: queries.log_of(probe, keep_s))


def of_build(build: Build | None, key: str, keep_s: float | None = None) -> Standing:
    live = build is not None and build.state in LIVE_BUILDS
    return Standing(live, build.attempt if build is not None else 0, lambda: queries.log_of_build(build, key, keep_s))


def follow(ports: Ports, kind: str, id: str, look: Callable[[], Standing]) -> Iterator[bytes]:
    """`look`: how it stands now. Pieces may be empty, so that whoever reads can leave. Errors: NotFound, at once;
    StoreBusy, QueueUnavailable."""
    standing = look()
    if not standing.live:
        return ports.artifacts.read(standing.log().path)
    return _live(ports, kind, id, look, standing)


def _live(ports: Ports, kind: str, id: str, look: Callable[[], Standing], standing: Standing) -> Iterator[bytes]:
    shown: set[int] = set()
    lost: set[int] = set()
    while standing.live:
        attempt = standing.attempt
        with closing(_attempt(ports, kind, id, attempt)) as pieces:
            for piece in pieces:
                if piece and shown and attempt not in shown:
                    yield f"\n[firstbad: attempt {attempt}]\n".encode()
                shown |= {attempt} if piece else set()
                yield piece
                if not piece and _changed(standing, now := look()):
                    standing = now
                    break
            else:
                was, standing = standing, look()
                if attempt not in lost and not _changed(was, standing):
                    yield f"\n[firstbad: nothing more is heard of attempt {attempt}]\n".encode()
                lost.add(attempt)
    if standing.attempt not in shown:
        yield from _stored(ports, standing)


def _attempt(ports: Ports, kind: str, id: str, attempt: int) -> Generator[bytes, None, None]:
    yield from ports.live.follow(kind, id, attempt)


def _changed(was: Standing, now: Standing) -> bool:
    return (was.live, was.attempt) != (now.live, now.attempt)


def _stored(ports: Ports, standing: Standing) -> Iterator[bytes]:
    """Of what was over before anything of it was seen."""
    try:
        yield from ports.artifacts.read(standing.log().path)
    except (NotFound, Removed) as error:
        yield f"[firstbad: {error.detail}]\n".encode()
