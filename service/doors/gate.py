"""Who asks, found out before anything else is done: nothing but `/healthz` answers whom nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from math import ceil
from time import time

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.application.ports import StoreBusy
from service.application.sign_in import SignIn
from service.domain import access
from service.domain.access import Caller
from service.domain.errors import TooMany, Unauthenticated, UserError
from service.domain.sign_in import CALLBACK
from service.doors import signing_in
from service.doors.api import problems

#: Where a balancer or an engine looks that has no token.
OPEN_PATHS = frozenset({"/healthz"})
RETRY_AFTER_S = 5


@dataclass(frozen=True)
class Gate:
    """`open`: whoever asks is an admin, as on a machine's own loopback. `public`: whom nobody knows may read.

    `rate`: requests of one token, or of one address without one; `failures`: wrong tokens of one address. Both as in
    "1200/minute"; nothing is counted where all is open. `own`: with which `firstbad up` looks whether all is ready.
    """

    open: bool = True
    public: bool = False
    rate: str = "1200/minute"
    failures: str = "20/minute"
    own: str = field(default="", repr=False)


class Gatekeeper:
    """ASGI middleware; `scope["state"]["caller"]` holds the Caller for the routes."""

    def __init__(
        self, app: ASGIApp, gate: Gate, recognize: Callable[[str], Caller], sign_in: SignIn | None = None
    ) -> None:
        self.app, self.gate, self.recognize, self.sign_in = app, gate, recognize, sign_in
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._rate, self._failures = parse(gate.rate), parse(gate.failures)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        try:
            caller = await self._caller(scope)
            headers = self._counted(caller, scope)
        except Unauthenticated as error:
            if self.sign_in is not None and _is_page(scope):
                await signing_in.to_sign_in(scope["path"])(scope, receive, send)
            else:
                await _refuse(error, scope, receive, send)
            return
        except UserError as error:
            await _refuse(error, scope, receive, send)
            return
        except StoreBusy as error:
            await _busy(error, scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, _adding(send, headers))

    async def _caller(self, scope: Scope) -> Caller:
        if self.gate.open:
            return Caller(_named("api from", scope), access.Scope.ADMIN)
        written = Headers(scope=scope).get("authorization", "")
        if written:
            return await self._recognized(written, scope)
        if self.sign_in is not None and (found := await self._signed_in(self.sign_in, scope)) is not None:
            return found
        if self.gate.public and scope["method"] in signing_in.READING:
            return Caller(_named("anyone from", scope), access.Scope.READ)
        raise Unauthenticated(
            "this needs a token",
            field="Authorization",
            advice="send Authorization: Bearer with one (for firstbad: FIRSTBAD_TOKEN); its operator makes them, by "
            "firstbad token create",
        )

    async def _signed_in(self, sign_in: SignIn, scope: Scope) -> Caller | None:
        """By a browser's session, or on the way to one. Errors: TooMany, WrongCsrf."""
        if scope["path"] in (signing_in.SIGN_IN, CALLBACK):
            # Each costs us questions to another service.
            address = _named("sign-ins of", scope)
            if not self._limiter.hit(self._failures, address):
                raise self._too_many(self._failures, address, "sign-ins came from this address")
            return Caller(address, None)
        headers = Headers(scope=scope)
        text = signing_in.cookie_of(sign_in, headers.get("cookie", ""))
        found = await run_in_threadpool(sign_in.caller, text) if text else None
        if found is not None:
            signing_in.require_csrf(text, scope["method"], scope["path"], headers.get(signing_in.CSRF_HEADER, ""))
        return found

    async def _recognized(self, written: str, scope: Scope) -> Caller:
        if self.gate.own and compare_digest(written.encode(), f"Bearer {self.gate.own}".encode()):
            return Caller("firstbad up", access.Scope.READ)
        kind, _, text = written.partition(" ")
        try:
            if kind.lower() != "bearer":
                advice = "write: Bearer, a blank, the token"
                raise Unauthenticated("Authorization is no bearer token", field="Authorization", advice=advice)
            return await run_in_threadpool(self.recognize, text.strip())
        except Unauthenticated:
            # Others may share the address, behind a proxy: who has a token that works is not kept out.
            address = _named("failures of", scope)
            if not self._limiter.hit(self._failures, address):
                raise self._too_many(self._failures, address, "wrong tokens came from this address") from None
            raise

    def _counted(self, caller: Caller, scope: Scope) -> dict[str, str]:
        """Headers that tell how much is left."""
        if self.gate.open:
            return {}
        if not self._limiter.hit(self._rate, caller.name):
            raise self._too_many(self._rate, caller.name, "requests came from this caller")
        left = self._limiter.get_window_stats(self._rate, caller.name).remaining
        return {"RateLimit-Policy": f'"default";q={self._rate.amount};w={self._rate.get_expiry()}',
                "RateLimit": f'"default";r={left};t={self._wait_s(self._rate, caller.name)}'}  # fmt: skip

    def _too_many(self, item: RateLimitItem, who: str, what: str) -> TooMany:
        wait_s = self._wait_s(item, who)
        return TooMany(f"more than {item.amount} {what} in {item.get_expiry()} s", wait_s)

    def _wait_s(self, item: RateLimitItem, who: str) -> int:
        return max(1, ceil(self._limiter.get_window_stats(item, who).reset_time - time()))


def _is_page(scope: Scope) -> bool:
    """That somebody looks at with a browser."""
    wants = Headers(scope=scope).get("accept", "")
    return scope["method"] == "GET" and signing_in.here(scope["path"]) == scope["path"] and "text/html" in wants


def _named(what: str, scope: Scope) -> str:
    return f"{what} {scope['client'][0]}" if scope.get("client") else what.partition(" ")[0]


def _adding(send: Send, headers: dict[str, str]) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and headers:
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return sent


async def _refuse(error: UserError, scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"WWW-Authenticate": 'Bearer realm="firstbad"'} if isinstance(error, Unauthenticated) else {}
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.wait_s)
    await problems.response(problems.of_user_error(error, scope["path"]), headers)(scope, receive, send)


async def _busy(error: StoreBusy, scope: Scope, receive: Receive, send: Send) -> None:
    problem = problems.busy(error, scope["path"], RETRY_AFTER_S)
    await problems.response(problem, {"Retry-After": str(RETRY_AFTER_S)})(scope, receive, send)
