"""Where a service answers, and what is said of it when it does not."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from firstbad import DEFAULT_PORT
from firstbad.errors import NoService, ProblemError, of_status
from service.domain.errors import BadRequest
from service.doors import paths
from service.doors.api.views import Problem
from service.doors.hiding import without_password

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Site:
    """Errors: NoService for a URL that is none, BadRequest for a token that is none."""

    def __init__(self, base_url: str, token: str | None) -> None:
        self.url = base_url.rstrip("/")
        self.shown = without_password(self.url)
        try:
            self.host, self.port = _host_and_port(self.url)
            self.api = httpx.URL(self.url + paths.API)
        except (httpx.InvalidURL, ValueError) as error:
            raise NoService(f"{self.shown!r} is no URL: {error}", "write it like http://127.0.0.1:8377") from None
        # A proxy of the environment is for the way out, and cannot reach this machine's loopback.
        self.trust_env = self.host not in LOOPBACK
        self.headers = {"Accept": "application/json", **_authorization(token)}

    def problem(self, answer: httpx.Response) -> ProblemError | NoService:
        try:
            problem = Problem.model_validate_json(answer.content)
        except ValidationError:
            return self.stranger(answer)
        return of_status(answer.status_code)(problem, after_s(answer))

    def stranger(self, answer: httpx.Response) -> NoService:
        detail = f"{self.shown} answers (status {answer.status_code}), but not as firstbad does"
        return NoService(detail, "check the URL: --url or FIRSTBAD_URL")

    def unreachable(self, error: httpx.TransportError) -> NoService:
        if isinstance(error, httpx.UnsupportedProtocol):
            return NoService(f"{self.shown!r} is no URL of a service", "write it like http://127.0.0.1:8377")
        if isinstance(error, httpx.ConnectError):
            return NoService(f"no firstbad answers at {self.shown}", self._start())
        what = str(error) or type(error).__name__
        return NoService(f"the connection to {self.shown} broke: {what}", "try again; see the service's log")

    def _start(self) -> str:
        """What `firstbad up` must be told to answer at this URL, where it is one of this machine."""
        if self.host not in LOOPBACK:
            return "check the URL (--url or FIRSTBAD_URL), and that the service runs there"
        return "start it with: firstbad up" + (f" --port {self.port}" if self.port not in (None, DEFAULT_PORT) else "")


def _host_and_port(url: str) -> tuple[str | None, int | None]:
    """Errors: ValueError."""
    split = urlsplit(url)
    return split.hostname, split.port


def after_s(answer: httpx.Response) -> float | None:
    """Of `Retry-After`, where it is a number of seconds."""
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdigit() else None


def _authorization(token: str | None) -> dict[str, str]:
    if not token:
        return {}
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise BadRequest(
            "the token holds a character that no token has", advice="give it as `firstbad token` showed it"
        )
    return {"Authorization": f"Bearer {token}"}
