"""What the command line alone takes from the environment; the rest are options of its commands."""

from __future__ import annotations

import os


def token() -> str | None:
    """Never an option: what is typed is seen by other users of the machine, and kept by the shell."""
    return os.environ.get("FIRSTBAD_TOKEN", "").strip() or None
