"""Folders that all workers of one user on one node share, for what they share too: ports, and GPUs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from worker.errors import NodeFault, fault_of


def shared_path(what: str) -> Path:
    return Path(tempfile.gettempdir(), f"firstbad-{what}-{os.geteuid()}")


def shared_folder(what: str) -> Path:
    """Nobody else can write there. Errors: NodeFault."""
    folder = shared_path(what)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise fault_of(error, f"making {folder}") from error
    if found.st_uid != os.geteuid() or not folder.is_dir() or folder.is_symlink():
        raise NodeFault("node-io", f"{folder} is not this user's own folder", "Remove it.")
    return folder
