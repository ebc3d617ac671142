"""Waiting for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(true: Callable[[], object], seconds: float = 60.0, what: str = "it", pause_s: float = 0.02) -> None:
    """Waits until it is, and fails when it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(pause_s)
