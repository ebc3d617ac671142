"""Why a wheel cannot be put together without a build."""

from __future__ import annotations


class CannotOverlay(Exception):
    """A sentence that names the file for which only a build can tell what the wheel holds. The order is then built."""
