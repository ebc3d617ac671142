"""GitHub, as far as signing in by an OAuth app needs it: what its documentation says that it checks and answers.

Sources: "Authorizing OAuth apps", "Troubleshooting OAuth app access token request errors", and of the REST API "Get the
authenticated user", "Get an organization membership for the authenticated user", "Get team membership for a user".
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

_DOCS = "https://docs.github.com/rest"


@dataclass
class Granted:
    """A code or a token: whose, for what, and the challenge that a code was asked for with."""

    login: str
    scopes: frozenset[str]
    redirect: str = ""
    challenge: str = ""


@dataclass
class FakeGitHub:
    """`signed_in`: who sits at the browser. `members`: by "org/*" and "org/team", logins and the state of their
    membership, "active" or "pending"."""

    client_id: str = "Iv1.0123456789abcdef"
    client_secret: str = "0123456789abcdef0123456789abcdef01234567"
    callback: str = ""
    signed_in: str = "ann"
    denies: bool = False
    members: dict[str, dict[str, str]] = field(default_factory=dict)
    codes: dict[str, Granted] = field(default_factory=dict)
    tokens: dict[str, Granted] = field(default_factory=dict)
    #: Requests that it does not answer as usual: path to answer.
    broken: dict[str, Response] = field(default_factory=dict)

    def app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)
        app.get("/login/oauth/authorize")(self._authorize)
        app.post("/login/oauth/access_token")(self._access_token)
        app.get("/user")(self._user)
        app.get("/user/memberships/orgs/{org}")(self._org)
        app.get("/orgs/{org}/teams/{team}/memberships/{login}")(self._team)
        return app

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        if asked.get("client_id") != self.client_id:
            return PlainTextResponse("Not Found", 404)
        if asked.get("redirect_uri", self.callback) != self.callback:
            return self._back({"error": "redirect_uri_mismatch", "state": asked.get("state", "")})
        if self.denies:
            return self._back({"error": "access_denied", "state": asked.get("state", "")})
        if asked.get("code_challenge_method", "S256") != "S256":
            return PlainTextResponse("Bad Request", 400)
        code = secrets.token_hex(10)
        scopes = frozenset(asked.get("scope", "").split())
        challenge = asked.get("code_challenge", "")
        self.codes[code] = Granted(self.signed_in, scopes, asked.get("redirect_uri", ""), challenge)
        return self._back({"code": code, "state": asked.get("state", "")})

    def _back(self, said: dict[str, str]) -> Response:
        return RedirectResponse(f"{self.callback}?{urlencode(said)}", 302)

    async def _access_token(self, request: Request) -> Response:
        if found := self.broken.get(request.url.path):
            return found
        sent = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        said = self._exchanged(sent)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse(said)
        return PlainTextResponse(urlencode(said), media_type="application/x-www-form-urlencoded")

    def _exchanged(self, sent: dict[str, str]) -> dict[str, str]:
        if (sent.get("client_id"), sent.get("client_secret")) != (self.client_id, self.client_secret):
            return _error("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
        code = self.codes.pop(sent.get("code", ""), None)
        if code is None or (code.challenge and _challenge(sent.get("code_verifier", "")) != code.challenge):
            return _error("bad_verification_code", "The code passed is incorrect or expired.")
        if sent.get("redirect_uri", code.redirect) != code.redirect:
            return _error("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL.")
        token = f"gho_{secrets.token_hex(18)}"
        self.tokens[token] = code
        return {"access_token": token, "scope": ",".join(sorted(code.scopes)), "token_type": "bearer"}

    def _whose(self, request: Request) -> Granted | None:
        return self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))

    async def _user(self, request: Request) -> Response:
        if found := self.broken.get(request.url.path):
            return found
        whose = self._whose(request)
        return JSONResponse(_person(whose.login)) if whose else _said(401, "Bad credentials")

    async def _org(self, org: str, request: Request) -> Response:
        whose = self._whose(request)
        if whose is None:
            return _said(401, "Bad credentials")
        if "read:org" not in whose.scopes:
            return _said(403, "You must have the read:org scope.")
        state = self.members.get(f"{org}/*", {}).get(whose.login)
        if state is None:
            return _said(404, "Not Found")
        url = f"https://api.github.com/orgs/{org}"
        organization = {"login": org, "id": 1, "url": url}
        membership = {"url": f"{url}/memberships/{whose.login}", "state": state, "role": "member"}
        return JSONResponse(
            {**membership, "organization_url": url, "organization": organization, "user": _person(whose.login)}
        )

    async def _team(self, org: str, team: str, login: str, request: Request) -> Response:
        whose = self._whose(request)
        if whose is None:
            return _said(401, "Bad credentials")
        state = self.members.get(f"{org}/{team}", {}).get(login)
        if state is None or "read:org" not in whose.scopes:
            return _said(404, "Not Found")
        url = f"https://api.github.com/orgs/{org}/teams/{team}/memberships/{login}"
        return JSONResponse({"url": url, "role": "member", "state": state})


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _person(login: str) -> dict[str, Any]:
    return {"login": login, "id": 583231, "type": "User", "url": f"https://api.github.com/users/{login}"}


def _error(error: str, description: str) -> dict[str, str]:
    return {"error": error, "error_description": description, "error_uri": f"{_DOCS}/{error}"}


def _said(status: int, message: str) -> Response:
    return JSONResponse({"message": message, "documentation_url": _DOCS, "status": str(status)}, status)
