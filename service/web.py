"""The HTTP application: mounts the doors, turns errors into answers, and keeps out what no honest client sends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from secrets import token_hex

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from prometheus_client import CollectorRegistry
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from service.application.flow import Flow
from service.application.ports import StoreBusy
from service.application.sign_in import SignIn
from service.domain.errors import TooLarge, UserError
from service.doors import health, metrics, paths, signing_in
from service.doors.api import openapi, problems
from service.doors.api.routes import router
from service.doors.api.views import Root
from service.doors.api.watching import Limits, Watchers
from service.doors.dashboard import pages
from service.doors.gate import RETRY_AFTER_S, Gate, Gatekeeper

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
BODY_BYTES = 1024 * 1024
_ID = re.compile(r"/(bisection|probe|build)s/([A-Za-z0-9][A-Za-z0-9._-]{0,99})")

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class WrongHost(UserError):
    """A page elsewhere can make a browser resolve its own name to this machine; the Host header gives it away."""

    slug = "wrong-host"
    title = "The request is for another host"
    status = 421


def create_app(
    flow: Flow,
    *,
    allowed_hosts: Sequence[str] = LOOPBACK,
    body_bytes: int = BODY_BYTES,
    meters: CollectorRegistry | None = None,
    check_within_s: float = health.WITHIN_S,
    count_within_s: float = metrics.WITHIN_S,
    gate: Gate | None = None,
    sign_in: SignIn | None = None,
    watching: Limits | None = None,
) -> FastAPI:
    """`allowed_hosts`: the names that clients may use for this service, without port; "*" allows all. `meters`: what
    this process measures of itself. `gate`: who is let in; without one, whoever asks. Seconds that a check of a part,
    and counting for the metrics, may take."""
    app = FastAPI(
        title="firstbad",
        version=version("firstbad"),
        description="One commit out of a range, found by running a reproduction. Every error is a problem (RFC 9457).",
        openapi_url=f"{paths.API}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.flow = flow
    app.state.watchers = Watchers(flow, watching)
    problems.install(app)
    app.add_exception_handler(StoreBusy, _busy)
    app.include_router(router)
    app.include_router(pages.router)
    _add_root(app)
    app.include_router(health.router(flow.checks(), check_within_s))
    app.include_router(metrics.router(flow.figures, meters or CollectorRegistry(), count_within_s))
    if sign_in is not None:
        app.include_router(signing_in.router(sign_in))
    openapi.describe(app)
    app.add_middleware(BodyLimit, most=body_bytes)
    app.add_middleware(Gatekeeper, gate=gate or Gate(), recognize=flow.recognize, sign_in=sign_in)
    app.add_middleware(KnownHost, allowed=allowed_hosts)
    app.add_middleware(SecureHeaders)
    app.add_middleware(Bound)
    return app


def _busy(request: Request, error: Exception) -> Response:
    problem = problems.busy(error, request.url.path, RETRY_AFTER_S)
    return problems.response(problem, {"Retry-After": str(RETRY_AFTER_S)})


def _add_root(app: FastAPI) -> None:
    openapi_url = f"{paths.API}/openapi.json"

    @app.get("/", operation_id="root", summary="What this is, and where its parts are", responses=problems.responses())
    async def root() -> Root:
        api = f"{paths.API}/bisections"
        return Root(name=app.title, version=app.version, api=api, openapi=openapi_url, health="/readyz")

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_json() -> RedirectResponse:
        return RedirectResponse(openapi_url)


class Bound:
    """Log lines of a request have an id in common, and those of what its path names."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with bound_contextvars(request=token_hex(4), **_named(scope["path"])):
            await self.app(scope, receive, send)


def _named(path: str) -> dict[str, str]:
    """A probe's id tells its bisection."""
    found: dict[str, str] = dict(_ID.findall(path))
    if "probe" in found:
        found["bisection"] = found["probe"].rpartition(".")[0]
    return {kind: id for kind, id in found.items() if id}


class SecureHeaders:
    """Adds what a door has not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, sent)


class KnownHost:
    """As Starlette's TrustedHostMiddleware, with a problem as its answer."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self.app = app
        self.allowed = frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "") if scope["type"] in ("http", "websocket") else None
        if host is None or "*" in self.allowed or _name(host) in self.allowed:
            await self.app(scope, receive, send)
            return
        error = WrongHost(
            f"the request is for the host {host or '(none)'!r}",
            value=host,
            field="Host",
            advice=f"use one of {', '.join(sorted(self.allowed))}, or let the service allow this name",
        )
        await problems.response(problems.of_user_error(error, scope["path"]))(scope, receive, send)


def _name(host: str) -> str:
    """Without the port; an IPv6 address keeps its brackets."""
    return re.sub(r":[0-9]+$", "", host).lower()


class BodyLimit:
    """Counts while the body comes in, so that neither a wrong nor a missing Content-Length gets more into memory."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0

        async def received() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.most:
                raise TooLarge(
                    f"the body has more than {self.most} bytes",
                    field="body",
                    advice="keep data out of the script: let it fetch what it needs",
                )
            return message

        await self.app(scope, received, send)
