"""Calls and flows as methods of the two clients: each with the signature and the words of what it is made of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from firstbad.base import Base
from firstbad.call import Call
from firstbad.steps import Flow
from firstbad.transport import Async, Sync

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., object])


def asks(build: Callable[P, Call[T]]) -> Callable[Concatenate[Sync, P], T]:
    """One call."""

    def method(self: Sync, /, *args: P.args, **more: P.kwargs) -> T:
        return self.done(self.sent(build(*args, **more)))

    return _like(method, build, 0)


def does(build: Callable[Concatenate[Base, P], Flow[T]]) -> Callable[Concatenate[Sync, P], T]:
    """Several calls, to one result."""

    def method(self: Sync, /, *args: P.args, **more: P.kwargs) -> T:
        return self.done(build(self, *args, **more))

    return _like(method, build, 1)


def gives(
    build: Callable[Concatenate[Base, P], Flow[None]], item: type[T]
) -> Callable[Concatenate[Sync, P], Generator[T, None, None]]:
    """One item after the other."""

    def method(self: Sync, /, *args: P.args, **more: P.kwargs) -> Generator[T, None, None]:
        return self.given(build(self, *args, **more))

    return _like(method, build, 1)


def asks_async(build: Callable[P, Call[T]]) -> Callable[Concatenate[Async, P], Coroutine[Any, Any, T]]:
    async def method(self: Async, /, *args: P.args, **more: P.kwargs) -> T:
        return await self.done(self.sent(build(*args, **more)))

    return _like(method, build, 0)


def does_async(
    build: Callable[Concatenate[Base, P], Flow[T]],
) -> Callable[Concatenate[Async, P], Coroutine[Any, Any, T]]:
    async def method(self: Async, /, *args: P.args, **more: P.kwargs) -> T:
        return await self.done(build(self, *args, **more))

    return _like(method, build, 1)


def gives_async(
    build: Callable[Concatenate[Base, P], Flow[None]], item: type[T]
) -> Callable[Concatenate[Async, P], AsyncGenerator[T, None]]:
    def method(self: Async, /, *args: P.args, **more: P.kwargs) -> AsyncGenerator[T, None]:
        return self.given(build(self, *args, **more))

    return _like(method, build, 1)


def _like(method: M, build: Callable[..., object], skipped: int) -> M:
    """`skipped`: parameters of `build` that the method does not have."""
    update_wrapper(method, build)
    found = list(signature(build).parameters.values())[skipped:]
    method.__signature__ = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *found])  # type: ignore[attr-defined]
    return method
