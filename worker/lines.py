"""Log lines: as text or as JSON, each with what it is about, none with what must not be seen."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from celery import signals
from structlog.typing import Processor

from worker.run.secrets import forms
from worker.threads import broke

#: Names and passwords in addresses.
_CREDENTIALS = re.compile(r"(://)[^/@\s\"']+@")
#: What their level would let through says nothing that ours do not.
LOUD = ("amqp", "httpx", "httpcore", "urllib3", "botocore", "aiobotocore", "docker", "fsspec", "s3fs")


def set_up(how: str, secret: Mapping[str, str]) -> None:
    """All of this process's lines go to its standard error, Celery's among them. `how`: "text" or "json".

    `secret`: values by the names that are written in their place.
    """
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
            hiding(secret),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Libraries' warnings about their own next releases: for who writes a worker, not for who runs one.
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    threading.excepthook = _thread_broke
    # With a receiver Celery leaves all of this as it is.
    signals.setup_logging.connect(_as_they_are, weak=False)


def _thread_broke(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread is not None else "without a name"
    error = args.exc_value or args.exc_type()
    logging.getLogger(__name__).critical("the thread %s broke", name, exc_info=error)
    broke(args.thread)


def _as_they_are(**_: Any) -> None:
    return


def hiding(secret: Mapping[str, str]) -> Callable[[Any, str, Any], str]:
    """The last processor: takes values and credentials out of a line that is written otherwise."""
    found = [(form.decode("utf-8", "surrogateescape"), f"***{name}***") for form, name in forms(secret)]

    def hide(logger: Any, method: str, line: Any) -> str:
        text = str(line)
        for form, name in found:
            if form in text:
                text = text.replace(form, name)
        return _CREDENTIALS.sub(r"\1***@", text)

    return hide
