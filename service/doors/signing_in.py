"""Where browsers sign in, by GitHub, and out again."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hmac import compare_digest
from urllib.parse import parse_qs, quote, unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from service.application.sign_in import SignIn, csrf_of, is_csrf_of
from service.domain.access import Caller
from service.domain.errors import UserError
from service.domain.sign_in import CALLBACK, SignInRefused
from service.doors import paths
from service.doors.dashboard import pages

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
SESSION = f"{paths.API}/session"
CSRF_HEADER = "X-CSRF-Token"
#: Seconds that somebody may take to sign in at GitHub.
PATIENCE_S = 600
#: Methods that change nothing.
READING = ("GET", "HEAD", "OPTIONS")
_NEXT = re.compile(r"/(?:bisections/[0-9A-Za-z_-]{1,64})?")
_CODE = re.compile(r"[\x21-\x7e]{1,500}")


class WrongCsrf(UserError):
    slug = "wrong-csrf-token"
    title = "The request comes from no page of this service"
    status = 403


@dataclass(frozen=True)
class Begun:
    """What the cookie of a browser holds that is sent to GitHub: it alone can come back with the same state."""

    state: str
    verifier: str
    next: str

    @classmethod
    def read(cls, text: str) -> Begun | None:
        state, _, rest = text.partition("|")
        verifier, _, place = rest.partition("|")
        return cls(state, verifier, here(unquote(place))) if verifier else None

    def __str__(self) -> str:
        return "|".join((self.state, self.verifier, quote(self.next, safe="")))


def cookie_name(sign_in: SignIn) -> str:
    """By its prefix a browser takes it from this host alone, and by https alone."""
    return "__Host-firstbad" if sign_in.secure else "firstbad"


def _begun_name(sign_in: SignIn) -> str:
    return f"{cookie_name(sign_in)}-begun"


def cookie_of(sign_in: SignIn, header: str) -> str:
    """The session's text in a Cookie header; "" without one."""
    return _cookie(header, cookie_name(sign_in))


def require_csrf(text: str, method: str, path: str, sent: str) -> None:
    """Of what a session asks for, all that changes something, but signing out, which has it in a form.
    Errors: WrongCsrf."""
    if method not in READING and path != SIGN_OUT and not is_csrf_of(text, sent):
        raise WrongCsrf(
            f"{CSRF_HEADER} is missing or is not that of this session",
            field=CSRF_HEADER,
            advice=f"send the csrf that {SESSION} answers; programs use a token instead of a session",
        )


def here(place: str) -> str:
    """A place of this service, as it is, and its root instead of any other."""
    return place if _NEXT.fullmatch(place) else "/"


def to_sign_in(path: str) -> RedirectResponse:
    """For a page that shows nothing to whom nobody knows."""
    return RedirectResponse(f"{SIGN_IN}?next={quote(path, safe='/')}", 303)


def router(sign_in: SignIn) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(SIGN_IN)
    async def begin(next: str = "/") -> Response:
        """To another place of this service only: what else stands in a link is not followed."""
        begun = Begun(secrets.token_urlsafe(32), secrets.token_urlsafe(48), here(next))
        answer = RedirectResponse(sign_in.provider.address(begun.state, begun.verifier), 303)
        _set(answer, sign_in, _begun_name(sign_in), str(begun), PATIENCE_S)
        return answer

    @router.get(CALLBACK)
    async def callback(request: Request, code: str = "", state: str = "", error: str = "") -> Response:
        header = request.headers.get("cookie", "")
        try:
            begun = _same(Begun.read(_cookie(header, _begun_name(sign_in))), state)
            _check(code, error)
            session, text = await run_in_threadpool(sign_in.begin, code, begun.verifier)
            # A session that this browser had before is not left behind.
            if before := cookie_of(sign_in, header):
                await run_in_threadpool(sign_in.end, before)
            answer: Response = RedirectResponse(begun.next, 303)
            lasts_s = int((session.expires_at - session.created_at).total_seconds())
            _set(answer, sign_in, cookie_name(sign_in), text, lasts_s)
        except UserError as refused:
            answer = pages.refused(refused)
        _unset(answer, sign_in, _begun_name(sign_in))
        return answer

    @router.post(SIGN_OUT)
    async def end(request: Request) -> Response:
        text = cookie_of(sign_in, request.headers.get("cookie", ""))
        sent = request.headers.get(CSRF_HEADER) or _field(await request.body(), "csrf")
        require_csrf(text, request.method, "", sent)
        await run_in_threadpool(sign_in.end, text)
        answer = RedirectResponse("/", 303)
        _unset(answer, sign_in, cookie_name(sign_in))
        return answer

    @router.get(SESSION)
    async def session(request: Request) -> JSONResponse:
        """Who asks, and what a page of this session sends with what it changes."""
        caller: Caller = request.state.caller
        text = cookie_of(sign_in, request.headers.get("cookie", ""))
        csrf = csrf_of(text) if caller.token is None and text else None
        return JSONResponse({"name": caller.name, "scope": caller.scope, "csrf": csrf})

    return router


def _same(begun: Begun | None, state: str) -> Begun:
    """Errors: SignInRefused, where another browser began it, or a page of another site."""
    if begun is None or not compare_digest(begun.state.encode(), state.encode()):
        raise SignInRefused(
            "this browser began no sign-in that ends here, or did so more than ten minutes ago",
            field="state",
            advice=f"begin at {SIGN_IN}, and let the browser keep cookies",
        )
    return begun


def _check(code: str, error: str) -> None:
    """Errors: SignInRefused."""
    if error or not _CODE.fullmatch(code):
        raise SignInRefused(
            f"GitHub sent no code: {error[:100] or 'none at all'}",
            field="code",
            advice=f"begin again at {SIGN_IN}, and let GitHub tell firstbad who you are",
        )


def _cookie(header: str, name: str) -> str:
    """Read leniently: what stands beside it may be of others."""
    for part in header.split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            return value
    return ""


def _field(body: bytes, name: str) -> str:
    try:
        return parse_qs(body.decode("latin-1"), max_num_fields=20).get(name, [""])[0]
    except ValueError:
        return ""


def _set(answer: Response, sign_in: SignIn, name: str, value: str, lasts_s: int) -> None:
    answer.set_cookie(name, value, lasts_s, path="/", secure=sign_in.secure, httponly=True, samesite="lax")


def _unset(answer: Response, sign_in: SignIn, name: str) -> None:
    answer.delete_cookie(name, "/", secure=sign_in.secure, httponly=True, samesite="lax")
