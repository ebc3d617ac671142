"""Sign-in by GitHub: the web application flow of an OAuth app, with PKCE. The token that comes of it is not kept.

Source: GitHub's documentation, "Authorizing OAuth apps", and its REST API for users, organization members and teams.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from service.domain.sign_in import EVERYBODY, Person, SignInRefused, SignInUnavailable

WITHIN_S = 10.0
#: Of an answer; what is longer is none of GitHub's to these questions.
MOST_BYTES = 256 * 1024
_API_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
#: Not a member, or an organization that does not let this app look.
_NO_MEMBER = (403, 404)


@dataclass(frozen=True)
class GitHubSignIn:
    """`callback`: the URL that GitHub sends browsers back to, as it stands in the app's registration. `groups`: which
    memberships are looked up, as in "acme/*" and "acme/gpu-team". `web`, `api`: of GitHub, or of an Enterprise Server.
    """

    client_id: str
    client_secret: str
    callback: str
    groups: tuple[str, ...] = ()
    web: str = "https://github.com"
    api: str = "https://api.github.com"

    def __repr__(self) -> str:
        """Without the secret, which must stand in no log."""
        return f"GitHubSignIn({self.client_id!r}, callback={self.callback!r})"

    def address(self, state: str, verifier: str) -> str:
        """Where a browser is sent to."""
        asked = {
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "scope": "read:org" if self.groups else "",
            "state": state,
            "code_challenge": challenge(verifier),
            "code_challenge_method": "S256",
            "allow_signup": "false",
        }
        return f"{self.web}/login/oauth/authorize?{urlencode(asked)}"

    def person(self, code: str, verifier: str) -> Person:
        """Who signed in. Errors: SignInRefused, SignInUnavailable."""
        with httpx.Client(timeout=WITHIN_S, follow_redirects=False) as http:
            token = self._token(http, code, verifier)
            http.headers.update({**_API_HEADERS, "Authorization": f"Bearer {token}"})
            login = _text(_answer(http, "GET", f"{self.api}/user")[1], "login")
            groups = frozenset(group for group in self.groups if self._is_in(http, login, group))
        return Person(login, groups)

    def _token(self, http: httpx.Client, code: str, verifier: str) -> str:
        sent = {
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": verifier,
        }
        url = f"{self.web}/login/oauth/access_token"
        _, found = _answer(http, "POST", url, data=sent, headers={"Accept": "application/json"})
        if "error" in found:
            raise SignInRefused(
                f"GitHub gave no token: {str(found['error'])[:100]}",
                advice="begin again; where that says incorrect_client_credentials or redirect_uri_mismatch, the "
                "operator's settings do not match the app that is registered at GitHub",
            )
        return _text(found, "access_token")

    def _is_in(self, http: httpx.Client, login: str, group: str) -> bool:
        """A membership that was not accepted yet is none."""
        org, _, team = (quote(part, safe="") for part in group.partition("/"))
        of_team = f"{self.api}/orgs/{org}/teams/{team}/memberships/{quote(login, safe='')}"
        url = f"{self.api}/user/memberships/orgs/{org}" if group.endswith(f"/{EVERYBODY}") else of_team
        status, found = _answer(http, "GET", url, may_be=_NO_MEMBER)
        return status == 200 and found.get("state") == "active"


def challenge(verifier: str) -> str:
    """RFC 7636, section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _answer(
    http: httpx.Client, method: str, url: str, *, may_be: tuple[int, ...] = (), **sent: Any
) -> tuple[int, dict[str, Any]]:
    """Status and body, which is a JSON object; of another one that `may_be`, nothing. Errors: SignInUnavailable."""
    host = httpx.URL(url).host
    try:
        with http.stream(method, url, **sent) as answer:
            if answer.status_code in may_be:
                return answer.status_code, {}
            if answer.status_code != 200:
                raise _unavailable(f"{host} answered {answer.status_code}")
            found = httpx.Response(200, content=_all_of(answer)).json()
    except httpx.HTTPError as error:
        raise _unavailable(f"{host} cannot be reached: {type(error).__name__}") from None
    except ValueError:
        raise _unavailable(f"{host} answered no JSON") from None
    if not isinstance(found, dict):
        raise _unavailable(f"{host} answered something else than was asked for")
    return 200, found


def _all_of(answer: httpx.Response) -> bytes:
    read = bytearray()
    for piece in answer.iter_bytes():
        read += piece
        if len(read) > MOST_BYTES:
            raise _unavailable(f"{answer.url.host} answered more than {MOST_BYTES} bytes")
    return bytes(read)


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise _unavailable(f"GitHub's answer has no {name}")
    return value


def _unavailable(why: str) -> SignInUnavailable:
    return SignInUnavailable(
        why, advice="try again in a minute; the service's operator can see whether GitHub is reached"
    )
