"""Keys of builds, beside what workers make of the same commits."""

from __future__ import annotations

from service.application.keys import IDLE_TOOLS
from worker.build.project import APART


def test_service_and_worker_leave_out_the_same_tables_of_pyproject() -> None:
    """One list each, since workers share no code with the service."""
    assert IDLE_TOOLS == APART
