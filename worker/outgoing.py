"""Results on their way to the service: on disk before they are sent, and until the service has recorded them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.contract import Task
from worker.reading import NO_ATTEMPT, head

log = logging.getLogger(__name__)

BROKEN = ".broken"
#: Of a file that is being written.
HALF = ".new"
#: The kind of what ended, by the task that tells of it.
KINDS = {Task.BUILT: "build", Task.PROBED: "probe", Task.SURVEYED: "survey"}
#: Seconds from when the service has read a result until it should have recorded it, each time that it was sent. After
#: the last, an hour in all, it is given up: what the service cannot record must not go on for ever.
PAUSES_S = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 900.0, 900.0)
Key = tuple[str, str, int]


class Unreachable(Exception):
    """The broker cannot be reached now."""


@dataclass(frozen=True)
class Look:
    """What the broker knows: which results are recorded, and whether the service has read all that was sent to it."""

    recorded: frozenset[Key]
    all_read: bool


@dataclass(eq=False)
class Kept:
    """A result that is not known to be recorded.

    `text`: where it could not be put on disk. `key`: None for what nobody will ever say to be recorded. `sent`: how
    often; `sent_at` and `read_at`, since when the service has read it, are of the last time, by the worker's clock.
    """

    path: Path
    key: Key | None
    text: str | None = None
    sent: int = 0
    sent_at: float = 0.0
    read_at: float | None = None
    busy: bool = False


class Outgoing:
    """What is kept outlives a restart of the worker, which sends it again.

    `send(task, message)` and `look(keys)` raise Unreachable when they cannot. `clock`: seconds.
    """

    def __init__(
        self,
        folder: Path,
        send: Callable[[str, dict[str, Any]], None],
        look: Callable[[Sequence[Key]], Look],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._send, self._look, self._clock = folder, send, look, clock
        self._flushing, self._lock = threading.Lock(), threading.Lock()
        self._kept: list[Kept] = []
        folder.mkdir(parents=True, exist_ok=True)
        for half in folder.glob(f"*{HALF}"):
            # A worker was killed while it wrote; that its run is over was not told.
            half.unlink(missing_ok=True)
        self._kept = [Kept(path, _key_in(path)) for path in sorted(folder.glob("*.json"))]

    def keys(self) -> frozenset[Key]:
        """Of what has ended and is not known to be recorded."""
        with self._lock:
            return frozenset(kept.key for kept in self._kept if kept.key is not None)

    def deliver(self, task: str, message: dict[str, Any]) -> None:
        """Never loses it: what cannot be sent now, or gets lost on its way, is sent by a later `flush`."""
        path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        kept = Kept(path, key_of(task, message), busy=True)
        with self._lock:
            self._kept.append(kept)
        try:
            text = json.dumps({"task": task, "message": message})
            if not _written(path, text):
                kept.text = text
            try:
                self._send_once(kept, task, message)
            except Unreachable as error:
                where = "on disk" if kept.text is None else "in memory alone"
                log.warning("%s is kept %s, since the broker cannot be reached: %s", task, where, error)
        finally:
            kept.busy = False

    def look(self) -> None:
        """Forgets what is recorded. Errors: Unreachable."""
        asked = self._clock()
        with self._lock:
            waiting = [kept for kept in self._kept if kept.key is not None]
        if not waiting:
            return
        found = self._look([kept.key for kept in waiting if kept.key is not None])
        # Results are read in the order in which they were sent.
        latest = max((kept.sent_at for kept in waiting if kept.key in found.recorded), default=0.0)
        for kept in waiting:
            if kept.key in found.recorded:
                self._forget(kept)
            elif kept.sent and kept.read_at is None and kept.sent_at < (asked if found.all_read else latest):
                kept.read_at = asked

    def flush(self) -> None:
        """Forgets what is recorded, and sends what was not sent or got lost, oldest first, until the broker fails."""
        with self._flushing, contextlib.suppress(Unreachable):
            self.look()
            with self._lock:
                waiting = [kept for kept in self._kept if not kept.busy]
            for kept in waiting:
                if self._is_due(kept):
                    self._send_again(kept)

    def _is_due(self, kept: Kept) -> bool:
        if not kept.sent:
            return True
        return kept.read_at is not None and self._clock() - kept.read_at >= PAUSES_S[kept.sent - 1]

    def _send_again(self, kept: Kept) -> None:
        """Errors: Unreachable."""
        try:
            read = json.loads(kept.text if kept.text is not None else kept.path.read_text(encoding="utf-8"))
            task, message = read["task"], read["message"]
        except FileNotFoundError:
            self._forget(kept)
            return
        except OSError as error:
            log.warning("%s cannot be read now: %s", kept.path, error)
            return
        except (ValueError, KeyError, TypeError):
            log.exception("%s is no message and is set aside", kept.path)
            self._set_aside(kept)
            return
        if kept.sent == len(PAUSES_S):
            told = "%s %s.%s was sent %d times and never recorded: its result is set aside. See the service's log"
            log.error(told, *kept.key or (task, "", ""), kept.sent)
            self._set_aside(kept)
            return
        again = kept.sent
        self._send_once(kept, task, message)
        log.info("%s was sent %s", task, "again, as nobody recorded it" if again else "late")

    def _send_once(self, kept: Kept, task: str, message: dict[str, Any]) -> None:
        """Errors: Unreachable."""
        self._send(task, message)
        kept.sent_at, kept.read_at = self._clock(), None
        kept.sent += 1
        if kept.key is None:
            self._forget(kept)

    def _forget(self, kept: Kept) -> None:
        self._let_go(kept)
        with contextlib.suppress(OSError):
            kept.path.unlink(missing_ok=True)

    def _set_aside(self, kept: Kept) -> None:
        """Where it cannot be, it stays for the next life of this worker."""
        self._let_go(kept)
        with contextlib.suppress(OSError):
            kept.path.rename(kept.path.with_suffix(BROKEN))

    def _let_go(self, kept: Kept) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._kept.remove(kept)


def key_of(task: object, message: object) -> Key | None:
    """Whose result it is; None where the service will not say that it has it."""
    kind = KINDS.get(Task(task)) if isinstance(task, str) and task in set(Task) else None
    if kind is None or not isinstance(message, Mapping):
        return None
    found = head(kind, message)
    return None if found is None or found.attempt == NO_ATTEMPT else found.key


def _key_in(path: Path) -> Key | None:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return key_of(read["task"], read["message"])
    except (OSError, ValueError, KeyError, TypeError):
        # What is wrong with it is told when it is to be sent.
        return None


def _written(path: Path, text: str) -> bool:
    """Whole or not at all. A disk that is full does not keep it from being sent."""
    fresh = path.with_suffix(HALF)
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    except OSError as error:
        log.warning("%s cannot be kept on disk until it is recorded: %s", path.name, error)
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    return True
