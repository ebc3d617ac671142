"""Files and pages from package indexes: bounded in size and time, and told from what is not there."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx

from worker.build.source import redacted
from worker.errors import fault_of

PAGE_BYTES = 64 * 1024 * 1024
WHEEL_BYTES = 8 * 1024**3
#: Seconds: for a connection, and between two pieces of what is sent.
TIMEOUT = httpx.Timeout(15.0, connect=10.0)
_MISSING = (404, 410)
_PIECE = 1024 * 1024
_WHO = {"User-Agent": "firstbad"}


class NotFetched(Exception):
    """Why there is nothing, as a sentence that names the host."""


class Stop(Protocol):
    def check(self) -> None: ...


@dataclass(frozen=True)
class Page:
    """`url`: where it was in the end."""

    url: str
    kind: str
    text: str


@dataclass(frozen=True)
class Downloads:
    """`ends`: the time, of the monotonic clock, by which everything must be here."""

    client: httpx.Client
    stop: Stop
    ends: float

    def page(self, url: str, accept: str) -> Page:
        """Errors: NotFetched, Stopped."""
        content = bytearray()
        with self._answer(url, {"Accept": accept}) as answer:
            for piece in self._pieces(answer, PAGE_BYTES):
                content += piece
            kind = answer.headers.get("Content-Type", "")
            encoding = answer.charset_encoding or "utf-8"
            final = str(answer.url)
        try:
            return Page(final, kind.partition(";")[0].strip().lower(), content.decode(encoding, "replace"))
        except LookupError as error:
            raise NotFetched(f"{host(url)} answers in the unknown encoding {encoding[:50]!r}") from error

    def file(self, url: str, into: Path) -> None:
        """Errors: NotFetched, Stopped, NodeFault when the node cannot keep it."""
        with self._answer(url, {}) as answer:
            _write(self._pieces(answer, WHEEL_BYTES), into)

    @contextlib.contextmanager
    def _answer(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        self.stop.check()
        try:
            with self.client.stream("GET", url, headers=headers) as answer:
                if answer.status_code in _MISSING:
                    raise NotFetched(f"not in the index {host(url)}")
                if not answer.is_success:
                    raise NotFetched(f"the index {host(url)} answers {answer.status_code}")
                yield answer
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            said = redacted(str(error) or type(error).__name__)
            raise NotFetched(f"the index {host(url)} cannot be reached: {said[:200]}") from error

    def _pieces(self, answer: httpx.Response, most: int) -> Iterator[bytes]:
        size = 0
        for piece in answer.iter_bytes(_PIECE):
            self.stop.check()
            size += len(piece)
            if size > most:
                raise NotFetched(f"{host(str(answer.url))} sends more than {most} bytes")
            if time.monotonic() > self.ends:
                raise NotFetched(f"{host(str(answer.url))} takes too long")
            yield piece


@contextlib.contextmanager
def downloads(stop: Stop, seconds: float) -> Iterator[Downloads]:
    """Proxies and certificates are those that the node's environment names, as httpx reads them."""
    for library in ("httpx", "httpcore"):
        # They log each address, with the passwords and tokens of indexes, at the level that workers log at.
        logging.getLogger(library).setLevel(logging.WARNING)
    with httpx.Client(timeout=TIMEOUT, follow_redirects=True, max_redirects=5, headers=_WHO) as client:
        yield Downloads(client, stop, time.monotonic() + seconds)


def host(url: str) -> str:
    """Without names, passwords and paths, which may be secret."""
    try:
        return httpx.URL(url).host or "of an unknown host"
    except httpx.InvalidURL:
        return "of an unknown host"


def _write(pieces: Iterator[bytes], into: Path) -> None:
    try:
        with into.open("wb") as file:
            for piece in pieces:
                file.write(piece)
    except OSError as error:
        raise fault_of(error, f"fetching {into.name}") from error
