"""Many bisections that want one mirror brought up to date: how often git really goes to the repository."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.load.place import Place, place
from benchmarks.load.repository import Made, grow, line
from benchmarks.search.table import Row
from service.application.submission import Submission
from service.domain.access import Caller, Scope
from service.domain.lifecycle import BisectionState

COMMITS = 512
_UNPREPARED = (BisectionState.QUEUED, BisectionState.PREPARING)


def measure(count: int, workers: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="firstbad-load-") as root:
        made = line(Path(root) / "source.git", COMMITS)
        with place(Path(root) / "place", "postgresql") as where:
            return list(_rows(where, made, count, workers))


def _rows(where: Place, made: Made, count: int, workers: int) -> Iterator[Row]:
    trace = where.folder / "trace"
    trace.mkdir()
    clones, took_s = _fetches(where, made, count, workers, trace, waiting=True)
    yield Row(f"{count} at once on a repository that is new: clones", "1", str(clones), f"{took_s:.1f} s", clones == 1)
    fetches, took_s = _fetches(where, grow(made), count, workers, trace, waiting=True)
    yield Row(f"{count} that wait, and it has grown: fetches", "1", str(fetches), f"{took_s:.1f} s", fetches == 1)
    fetches, took_s = _fetches(where, grow(made), count, workers, trace, waiting=False)
    told = f"{took_s:.1f} s; a bisection must see what was there when it was submitted"
    yield Row(f"{count} that come while others are being prepared: fetches", "", str(fetches), told)


def _fetches(where: Place, made: Made, count: int, workers: int, trace: Path, waiting: bool) -> tuple[int, float]:
    """How often upload-pack was started. `waiting`: all are submitted before a control worker is there."""
    _empty(trace)
    if waiting:
        ids = _submit(where, made, count)
    with where.control_workers(workers, environment={"GIT_TRACE2_EVENT": str(trace)}):
        if not waiting:
            # Whatever else it does when it starts is over once this one is prepared.
            _prepared(where, _submit(where, made, 1, by_name=False))
            _empty(trace)
            ids = _submit(where, made, count)
        begun = time.monotonic()
        _prepared(where, ids)
        took_s = time.monotonic() - begun
    return sum(map(_is_upload_pack, trace.iterdir())), took_s


def _empty(trace: Path) -> None:
    for old in trace.iterdir():
        old.unlink()


def _submit(where: Place, made: Made, count: int, *, by_name: bool = True) -> list[str]:
    bad = "main" if by_name else made.shas[-1]
    form = Submission(good=(made.shas[0],), bad=bad, repo=str(made.path), project="source", script="true")
    return [where.wired.flow.submit(form, Caller("ada", Scope.ADMIN)).id for _ in range(count)]


def _prepared(where: Place, ids: list[str]) -> None:
    pause, end = threading.Event(), time.monotonic() + 300
    while any(where.wired.flow.bisection(id).state in _UNPREPARED for id in ids):
        assert time.monotonic() < end, "they were not prepared within 300 s"
        pause.wait(0.1)


def _is_upload_pack(file: Path) -> bool:
    events = map(json.loads, file.read_text().splitlines())
    return any(event["event"] == "start" and "upload-pack" in " ".join(event["argv"][:2]) for event in events)
