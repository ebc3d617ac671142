"""Results on their way to the service: sent at once, or kept on disk until the broker is back."""

from __future__ import annotations

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


class Unreachable(Exception):
    """The broker cannot be reached now."""


class Outgoing:
    """`send(task, message)` raises Unreachable when it cannot. What is kept outlives a restart of the worker."""

    def __init__(self, folder: Path, send: Callable[[str, dict[str, Any]], None]) -> None:
        self._folder, self._send = folder, send
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def deliver(self, task: str, message: dict[str, Any]) -> None:
        """Never loses it: what cannot be sent now is sent by a later `flush`."""
        try:
            self._send(task, message)
        except Unreachable as error:
            log.warning("%s is kept on disk, since the broker cannot be reached: %s", task, error)
            self._keep(task, message)

    def _keep(self, task: str, message: dict[str, Any]) -> None:
        path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        with path.with_suffix(".new").open("w", encoding="utf-8") as file:
            json.dump({"task": task, "message": message}, file)
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".new").rename(path)

    def flush(self) -> None:
        """Sends what is kept, oldest first, until it is empty or the broker fails again."""
        with self._lock:
            for path in sorted(self._folder.glob("*.json")):
                try:
                    kept = json.loads(path.read_text(encoding="utf-8"))
                    self._send(kept["task"], kept["message"])
                except Unreachable:
                    return
                except (ValueError, KeyError, TypeError):
                    log.exception("%s is no message and is set aside", path)
                    path.rename(path.with_suffix(".broken"))
                else:
                    path.unlink()
                    log.info("%s was sent late", kept["task"])
