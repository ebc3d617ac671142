"""Where job folders end."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import needs
from tests.waiting import eventually
from worker.run.bin import Bin


def test_what_cannot_be_removed_at_once_is_removed_a_little_later(tmp_path: Path) -> None:
    """As the folder of a run that is just ending, whose worker was killed."""
    needs("root")
    thrown, trash = tmp_path / "jobs" / "b1.1", tmp_path / "trash"
    (thrown / "busy").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "firstbad-test", thrown / "busy"], check=True)
    folders = Bin(trash)
    folders.throw(thrown)
    assert not thrown.exists()
    assert not folders.wait(0.2)
    (left,) = trash.iterdir()
    subprocess.run(["umount", left / "busy"], check=True)
    eventually(lambda: not left.exists())
