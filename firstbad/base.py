"""What both clients have in common: where they send to, and how often."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from firstbad.call import Call, Paged
from firstbad.errors import NoService
from firstbad.retry import Retry
from firstbad.site import Site
from firstbad.steps import Flow, Give, Pause, Read, Send
from service.doors import paths

T = TypeVar("T")
#: Longest time that an address may take to be reached.
CONNECT_S = 5.0


class Base:
    def __init__(
        self, base_url: str, token: str | None = None, *, timeout_s: float = 60.0, retry: Retry | None = None
    ) -> None:
        """`timeout_s`: without a word of the service. `retry`: of calls that are safe to send again; see Retry."""
        self.site = Site(base_url, token)
        self.retry = retry if retry is not None else Retry()
        self.timeout_s = timeout_s

    @property
    def base_url(self) -> str:
        return self.site.url

    def url(self, path: str) -> str:
        """Of a link as the views hold it."""
        return self.site.url + path

    def options(self) -> dict[str, Any]:
        """Of the HTTP client."""
        return {
            "base_url": self.site.api,
            "timeout": httpx.Timeout(self.timeout_s, connect=CONNECT_S),
            "trust_env": self.site.trust_env,
            "headers": self.site.headers,
        }

    def sent(self, call: Call[T]) -> Flow[T]:
        """What the answer holds. Errors: ProblemError, NoService."""
        answer = yield from self._answered(Send(call))
        try:
            return call.read(answer.content)
        except ValidationError:
            raise self.site.stranger(answer) from None

    def pieces(self, call: Call[bytes]) -> Flow[None]:
        """Gives the body piece by piece, as it arrives. Errors: as `sent`, with the first piece."""
        yield from self.opened(call)
        try:
            while (piece := (yield Read())) is not None:
                yield Give(piece)
        except httpx.TransportError as error:
            raise self.site.unreachable(error) from None

    def opened(self, call: Call[bytes]) -> Flow[httpx.Response]:
        """The answer is there, and `Read` brings its body. Errors: as `sent`."""
        return (yield from self._answered(Send(call, open=True)))

    def pages(self, call: Call[Paged[T]]) -> Flow[None]:
        """Gives each item of a list, also of those pages that come after the first. Errors: as `sent`."""
        follows: Call[Paged[T]] | None = call
        while follows is not None:
            page = yield from self.sent(follows)
            for item in page.items:
                yield Give(item)
            follows = self._after(follows, page)

    def whole(self, call: Call[Paged[T]]) -> Flow[tuple[T, ...]]:
        """As `pages`, at once."""
        page = yield from self.sent(call)
        found = list(page.items)
        while (follows := self._after(call, page)) is not None:
            page = yield from self.sent(follows)
            found += page.items
        return tuple(found)

    def _after(self, call: Call[Paged[T]], page: Paged[T]) -> Call[Paged[T]] | None:
        if page.next is None:
            return None
        # Nowhere else: the token goes with it.
        if not page.next.startswith(f"{paths.API}/"):
            raise NoService(f"{self.site.shown} names a next page that is none of it", "see the service's log")
        return replace(call, path=page.next.removeprefix(paths.API), params={})

    def _answered(self, send: Send) -> Flow[httpx.Response]:
        for tried in count(1):
            met: httpx.TransportError | int
            asked_s = None
            try:
                answer: httpx.Response = yield send
                if answer.is_success:
                    return answer
                error, met = self.site.problem(answer), answer.status_code
                asked_s = getattr(error, "after_s", None)
            except httpx.TransportError as broken:
                error, met = self.site.unreachable(broken), broken
            pause_s = self.retry.pause_s(tried, asked_s)
            if pause_s is None or not self.retry.worth(met, again=send.call.again):
                raise error
            yield Pause(pause_s)
        raise AssertionError("a count has no end")
