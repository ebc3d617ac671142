"""Logs go to the store compressed; the plain ones stay in their job folders for as long as something reads them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from worker.build.store import Store
from worker.run.logs import compress
from worker.spans import part


def keep_log(store: Store, log: Path, name: str) -> str:
    """Its path in the store. `name`: of the order and its attempt, such as b57c9a720f7.4.1. Errors: NodeFault."""
    path, packed = f"logs/{name}.log.zst", log.with_name(f"{log.name}.zst")
    try:
        with part("store"):
            compress(log, packed)
            store.put(packed, path)
    finally:
        with contextlib.suppress(OSError):
            packed.unlink(missing_ok=True)
    return path
