"""One worker process: alone in its folder, and gone with the process that started it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from worker.errors import NodeFault


def watch_parent(fd: int) -> None:
    """Ends this worker as SIGTERM would, when the process that holds the other end of the pipe is gone."""

    def wait() -> None:
        while os.read(fd, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


@contextlib.contextmanager
def alone(work_dir: Path) -> Iterator[None]:
    """Errors: NodeFault, also when another worker uses the folder: each would remove the other's jobs."""
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        file = (work_dir / "worker.lock").open("w")
    except OSError as error:
        message = f"FIRSTBAD_WORK_DIR: {str(work_dir)!r} cannot be used: {(error.strerror or str(error)).lower()}"
        raise NodeFault("work-dir", message, "Name a folder that the worker may write.") from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another worker works in {work_dir}"
            raise NodeFault("work-dir", message, "Give each worker its own FIRSTBAD_WORK_DIR.") from error
        yield
