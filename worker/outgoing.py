"""Results on their way to the service: on disk before they are sent, and until the broker has them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

BROKEN = ".broken"
Message = tuple[str, dict[str, Any]]


class Unreachable(Exception):
    """The broker cannot be reached now."""


class Outgoing:
    """`send(task, message)` raises Unreachable when it cannot. What is kept outlives a restart of the worker.

    A broker that takes it, and is not heard any more, gets it again: the service counts a result once.
    """

    def __init__(self, folder: Path, send: Callable[[str, dict[str, Any]], None]) -> None:
        self._folder, self._send = folder, send
        self._flushing, self._lock = threading.Lock(), threading.Lock()
        self._under_way: set[Path] = set()
        self._homeless: list[Message] = []
        folder.mkdir(parents=True, exist_ok=True)

    def deliver(self, task: str, message: dict[str, Any]) -> None:
        """Never loses it: what cannot be sent now is sent by a later `flush`."""
        path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        with self._lock:
            self._under_way.add(path)
        try:
            kept = self._keep(path, task, message)
            try:
                self._send(task, message)
            except Unreachable as error:
                where = "on disk" if kept else "in memory alone"
                log.warning("%s is kept %s, since the broker cannot be reached: %s", task, where, error)
                if not kept:
                    with self._lock:
                        self._homeless.append((task, message))
            else:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        finally:
            with self._lock:
                self._under_way.discard(path)

    @staticmethod
    def _keep(path: Path, task: str, message: dict[str, Any]) -> bool:
        """Whole or not at all. A disk that is full does not keep it from being sent."""
        fresh = path.with_suffix(".new")
        try:
            with fresh.open("w", encoding="utf-8") as file:
                json.dump({"task": task, "message": message}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(path)
        except OSError as error:
            log.warning("%s cannot be kept on disk until it is sent: %s", task, error)
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            return False
        return True

    def flush(self) -> None:
        """Sends what is kept, oldest first, until it is empty or the broker fails again."""
        with self._flushing, contextlib.suppress(Unreachable):
            for path in sorted(self._folder.glob("*.json")):
                with self._lock:
                    if path in self._under_way:
                        continue
                self._send_kept(path)
            while self._homeless:
                self._send(*self._homeless[0])
                with self._lock:
                    del self._homeless[0]

    def _send_kept(self, path: Path) -> None:
        """Errors: Unreachable."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            task, message = kept["task"], kept["message"]
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s cannot be read now: %s", path, error)
            return
        except (ValueError, KeyError, TypeError):
            log.exception("%s is no message and is set aside", path)
            path.rename(path.with_suffix(BROKEN))
            return
        self._send(task, message)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        log.info("%s was sent late", task)
