"""The client of a firstbad service: docs/client.md.

What is named here is loaded when it is first used: the command line starts without most of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstbad.client import AsyncClient, Client
    from firstbad.errors import (
        Changed,
        ClientError,
        Conflict,
        Forbidden,
        NoService,
        NotFound,
        ProblemError,
        Refused,
        TooMany,
        Unauthorized,
        Unavailable,
    )
    from firstbad.progress import Progress
    from firstbad.retry import Retry

__all__ = [
    "DEFAULT_PORT",
    "AsyncClient",
    "Changed",
    "Client",
    "ClientError",
    "Conflict",
    "Forbidden",
    "NoService",
    "NotFound",
    "ProblemError",
    "Progress",
    "Refused",
    "Retry",
    "TooMany",
    "Unauthorized",
    "Unavailable",
]

#: Of a service that is told no other.
DEFAULT_PORT = 8377
_HOMES = {"AsyncClient": "client", "Client": "client", "Progress": "progress", "Retry": "retry"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'firstbad' has no attribute {name!r}")
    return getattr(import_module(f"firstbad.{_HOMES.get(name, 'errors')}"), name)
