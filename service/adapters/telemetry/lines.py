"""Log lines of the service: as text or as JSON, each with the ids of what it is about, none with a password."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import structlog
from structlog.typing import Processor

#: Names and passwords in addresses.
_CREDENTIALS = re.compile(r"(://)[^/@\s\"']+@")
#: A password beside others in the words of PostgreSQL, or after the question mark of an address.
_NAMED = re.compile(r"(password=)(?:'[^']*'|[^\s&\"']+)", re.IGNORECASE)
#: As SQLAlchemy and redis take it, slashes and all; a parser of addresses would end the host there.
_WRITTEN = re.compile(r"[a-z0-9+]+://[^:/@]*:([^@]+)@", re.IGNORECASE)
#: Shorter ones would be found in any text.
SHORTEST = 4
#: What their level would let through says nothing that ours do not.
LOUD = ("amqp", "httpx", "httpcore", "urllib3", "botocore", "aiobotocore", "fsspec", "s3fs", "alembic", "matplotlib")
#: Celery's two lines for each message, which name it by an id that stands nowhere else. We write one (handling.py).
DOUBLE = ("celery.worker.strategy", "celery.app.trace")


def set_up(level: str, how: str, addresses: Collection[str] = ()) -> None:
    """All lines of this process go to its standard error, those of uvicorn and Celery among them. `how`: "text" or
    "json". `addresses`: URLs whose passwords are shown nowhere."""
    last: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if how != "json":
        plain = structlog.dev.plain_traceback
        last = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=plain)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            last,
            hiding(addresses),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    for name in (*LOUD, *DOUBLE):
        logging.getLogger(name).setLevel(logging.WARNING)


def hiding(addresses: Collection[str]) -> Callable[[Any, str, Any], str]:
    """The last processor: takes passwords out of a line that is written otherwise."""
    passwords = {form for address in addresses for form in _passwords(address) if len(form) >= SHORTEST}
    longest_first = sorted(passwords, key=lambda form: (-len(form), form))

    def hide(logger: Any, method: str, line: Any) -> str:
        text = str(line)
        for form in longest_first:
            text = text.replace(form, "***")
        return _NAMED.sub(r"\1***", _CREDENTIALS.sub(r"\1***@", text))

    return hide


def _passwords(address: str) -> set[str]:
    """As they are written in the address, as they are, and as JSON and Python quote them; but not one that is a name
    there as well, as it stands in lines of many kinds, and is no secret."""
    written, names = set(_WRITTEN.findall(address)), set[str | None]()
    with suppress(ValueError):
        parts = urlsplit(address)
        written |= {parts.password} if parts.password else set()
        written |= {value for name, values in parse_qs(parts.query).items() if "password" in name for value in values}
        names = {parts.username, parts.hostname, parts.path.strip("/"), parts.scheme}
    plain = {form for found in written for form in (found, unquote(found)) if form not in names}
    return plain | {quoted for form in plain for quoted in _quoted(form)}


def _quoted(text: str) -> tuple[str, ...]:
    """Also what is quoted by the one and then by the other, as an error's text in a line of JSON."""
    shown = repr(text)[1:-1]
    return (shown, *(json.dumps(form, ensure_ascii=False)[1:-1] for form in (text, shown)))
