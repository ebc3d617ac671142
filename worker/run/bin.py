"""Where job folders end: removing them may take longer than the run did, and nobody shall wait for it."""

from __future__ import annotations

import queue
import threading
import uuid
from pathlib import Path

from worker.run.job import delete

#: What a killed worker ran may write on for a moment, and no folder is removed while something comes into it.
TRIES, PAUSE_S = 20, 0.5


class Bin:
    """A folder beside those that are thrown away. What is left in it when a worker is killed goes at the next start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: queue.SimpleQueue[tuple[Path, threading.Event]] = queue.SimpleQueue()
        self._lock, self._pause = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def throw(self, path: Path) -> None:
        """Takes the folder away at once, and removes it soon."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            moved = self.folder / uuid.uuid4().hex
            path.rename(moved)
        except OSError:
            delete(path)
            return
        self._put(moved)

    def empty(self) -> None:
        """Removes soon what a worker left in it that was killed, and what could not be removed before."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            self._put(path)

    def _put(self, path: Path) -> threading.Event:
        removed = threading.Event()
        self._waiting.put((path, removed))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="bin", daemon=True)
                self._thread.start()
        return removed

    def _work(self) -> None:
        while True:
            path, removed = self._waiting.get()
            for _ in range(TRIES):
                delete(path)
                if not path.exists() or self._pause.wait(PAUSE_S):
                    break
            removed.set()

    def wait(self, seconds: float) -> bool:
        """Until what was thrown so far is removed; false when it takes longer."""
        return self._put(self.folder / "nothing").wait(seconds)
