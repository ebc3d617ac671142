"""The client that commands use."""

from __future__ import annotations

from firstbad import Client, Retry
from service.cli import settings

#: Who waits for an answer wants to know at once that nobody listens there.
_RETRY = Retry(refused=False)


def connect(url: str, *, timeout_s: float = 60.0, retry: Retry = _RETRY) -> Client:
    """With the token of FIRSTBAD_TOKEN. Errors: NoService, BadRequest."""
    return Client(url, settings.token(), timeout_s=timeout_s, retry=retry)
