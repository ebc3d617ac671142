"""The two ways to do steps: in a thread that waits, and in a task that others run beside."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import httpx

from firstbad.base import Base
from firstbad.retry import Retry
from firstbad.steps import Flow, Give, Pause, Read, Send, Step, Turn

T = TypeVar("T")


class Sync(Base):
    def __init__(
        self, base_url: str, token: str | None = None, *, timeout_s: float = 60.0, retry: Retry | None = None
    ) -> None:
        super().__init__(base_url, token, timeout_s=timeout_s, retry=retry)
        self._http = httpx.Client(**self.options())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def done(self, flow: Flow[T]) -> T:
        turn = Turn(flow)
        for _ in self._played(turn):
            pass
        return turn.result

    def given(self, flow: Flow[None]) -> Generator[Any, None, None]:
        return self._played(Turn(flow))

    def _played(self, turn: Turn[Any]) -> Generator[Any, None, None]:
        with closing(turn), closing(Doing(self._http)) as doing:
            turn.went(None)
            while (step := turn.step) is not None:
                if isinstance(step, Give):
                    yield step.item
                    turn.went(None)
                    continue
                try:
                    came = doing.do(step)
                except httpx.TransportError as error:
                    turn.failed(error)
                else:
                    turn.went(came)


class Async(Base):
    """As Sync, on asyncio or trio."""

    def __init__(
        self, base_url: str, token: str | None = None, *, timeout_s: float = 60.0, retry: Retry | None = None
    ) -> None:
        super().__init__(base_url, token, timeout_s=timeout_s, retry=retry)
        self._http = httpx.AsyncClient(**self.options())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def done(self, flow: Flow[T]) -> T:
        turn = Turn(flow)
        async for _ in self._played(turn):
            pass
        return turn.result

    def given(self, flow: Flow[None]) -> AsyncGenerator[Any, None]:
        return self._played(Turn(flow))

    async def _played(self, turn: Turn[Any]) -> AsyncGenerator[Any, None]:
        doing = AsyncDoing(self._http)
        try:
            turn.went(None)
            while (step := turn.step) is not None:
                if isinstance(step, Give):
                    yield step.item
                    turn.went(None)
                    continue
                try:
                    came = await doing.do(step)
                except httpx.TransportError as error:
                    turn.failed(error)
                else:
                    turn.went(came)
        finally:
            turn.close()
            with anyio.CancelScope(shield=True):
                await doing.close()


class Doing:
    """Steps of one flow, and the answer that it has open. Errors of `do`: httpx.TransportError."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._answer: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def do(self, step: Step) -> Any:
        match step:
            case Send():
                return self._send(step)
            case Read():
                return next(self._pieces, None)
            case Pause():
                return threading.Event().wait(step.seconds)
        raise AssertionError(step)

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _send(self, step: Send) -> httpx.Response:
        self.close()
        answer = self._http.send(_request(self._http, step), stream=step.open)
        if step.open:
            self._answer, self._pieces = answer, answer.iter_bytes()
            if not answer.is_success:
                answer.read()
        return answer


class AsyncDoing:
    """As Doing."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._answer: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes]

    async def do(self, step: Step) -> Any:
        match step:
            case Send():
                return await self._send(step)
            case Read():
                return await anext(self._pieces, None)
            case Pause():
                return await anyio.sleep(step.seconds)
        raise AssertionError(step)

    async def close(self) -> None:
        if self._answer is not None:
            await self._answer.aclose()
            self._answer = None

    async def _send(self, step: Send) -> httpx.Response:
        await self.close()
        answer = await self._http.send(_request(self._http, step), stream=step.open)
        if step.open:
            self._answer, self._pieces = answer, answer.aiter_bytes()
            if not answer.is_success:
                await answer.aread()
        return answer


def _request(http: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    call, more = step.call, dict[str, Any]()
    if call.json is not None:
        more["json"] = call.json
    elif call.content is not None:
        more["content"] = call.content
    if call.patient:
        more["timeout"] = _patient(http.timeout)
    return http.build_request(
        call.method, call.path, params=dict(call.params) or None, headers=dict(call.headers), **more
    )


def _patient(timeout: httpx.Timeout) -> httpx.Timeout:
    return httpx.Timeout(connect=timeout.connect, write=timeout.write, pool=timeout.pool, read=None)
