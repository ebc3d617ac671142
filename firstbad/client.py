"""A typed client of the REST API, as the command line uses it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import ValidationError

from service.domain.budget import Priority
from service.domain.errors import BadRequest
from service.domain.lifecycle import BisectionState
from service.doors import paths
from service.doors.api.views import (
    BisectionList,
    BisectionView,
    BuildList,
    BuildView,
    CurveView,
    EventList,
    NodeList,
    NodeView,
    ProbeList,
    ProbeView,
    Problem,
    ReportView,
    RequestView,
    View,
)
from service.doors.hiding import without_password

V = TypeVar("V", bound=View)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DEFAULT_PORT = 8377


class ProblemError(Exception):
    """The service answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class NoService(Exception):
    """Nothing that speaks this API answers at the URL. `advice` is the next step."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.advice = advice


def passing(error: NoService | ProblemError) -> bool:
    """It is about the service, which may be mended, and not about what it was asked."""
    return isinstance(error, NoService) or error.problem.status >= 500


#: Seconds without a change after which a bisection that has not begun counts as waiting.
QUIET_S = 4.0


@dataclass(frozen=True)
class Progress:
    """`quiet`: nothing has changed since the last one, for QUIET_S. `curve`: None where nothing is measured."""

    report: ReportView
    probes: tuple[ProbeView, ...]
    quiet: bool = False
    curve: CurveView | None = None


class Client:
    """Errors of every method: ProblemError, NoService. Ids may be shortened with `find` first."""

    def __init__(self, base_url: str, *, timeout_s: float = 60.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._shown = without_password(self.base_url)
        self._patient = httpx.Timeout(timeout_s, connect=5.0, read=None)
        try:
            self._http = httpx.Client(
                base_url=self.base_url + paths.API,
                timeout=httpx.Timeout(timeout_s, connect=5.0),
                # A proxy of the environment is for the way out, and cannot reach this machine's loopback.
                trust_env=urlsplit(self.base_url).hostname not in LOOPBACK,
                headers={"Accept": "application/json"},
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise NoService(f"{self._shown!r} is no URL: {error}", "write it like http://127.0.0.1:8377") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def url(self, path: str) -> str:
        """Of a link as the views hold it."""
        return self.base_url + path

    def submit(self, document: Mapping[str, Any], key: str | None = None) -> BisectionView:
        """`document`: the keys of a request file (docs/requests.md). `key`: sent again with it, it begins no second."""
        headers = {"Idempotency-Key": key} if key is not None else {}
        return self._view(BisectionView, "POST", "/bisections", json=document, headers=headers)

    def complete(self, document: Mapping[str, Any]) -> RequestView:
        """What `submit` would begin, with all defaults and notes."""
        return self._view(RequestView, "POST", "/requests", json=document)

    def judge_again(self, id: str) -> tuple[ProbeView, ...]:
        """The probes whose verdict changed."""
        return self._view(ProbeList, "POST", f"/bisections/{quote(id, safe='')}/judge").items

    def bisection(self, id: str) -> ReportView:
        return self._view(ReportView, "GET", f"/bisections/{quote(id, safe='')}")

    def bisections(self, states: Collection[BisectionState] = (), limit: int = 50) -> tuple[BisectionView, ...]:
        params = {"state": sorted(states), "limit": limit}
        return self._view(BisectionList, "GET", "/bisections", params=params).items

    def cancel(self, id: str) -> BisectionView:
        return self._view(BisectionView, "DELETE", f"/bisections/{quote(id, safe='')}")

    def pause(self, id: str) -> BisectionView:
        return self._view(BisectionView, "POST", f"/bisections/{quote(id, safe='')}/pause")

    def resume(self, id: str) -> BisectionView:
        return self._view(BisectionView, "POST", f"/bisections/{quote(id, safe='')}/resume")

    def prioritize(self, id: str, priority: Priority) -> BisectionView:
        change = {"priority": str(priority)}
        return self._view(BisectionView, "PATCH", f"/bisections/{quote(id, safe='')}", json=change)

    def probes(self, id: str) -> tuple[ProbeView, ...]:
        return self._view(ProbeList, "GET", f"/bisections/{quote(id, safe='')}/probes").items

    def builds(self, id: str) -> tuple[BuildView, ...]:
        return self._view(BuildList, "GET", f"/bisections/{quote(id, safe='')}/builds").items

    def curve(self, report: BisectionView) -> CurveView | None:
        """What was measured; None where a failure is looked for and no number."""
        if report.links.metric is None:
            return None
        return self._view(CurveView, "GET", f"/bisections/{quote(report.id, safe='')}/metric")

    def probe(self, id: str) -> ProbeView:
        return self._view(ProbeView, "GET", f"/probes/{quote(id, safe='')}")

    def events(self, id: str, after: int = 0) -> EventList:
        return self._view(EventList, "GET", f"/bisections/{quote(id, safe='')}/events", params={"after": after})

    def nodes(self) -> tuple[NodeView, ...]:
        return self._view(NodeList, "GET", "/nodes").items

    def return_node(self, name: str) -> NodeView:
        return self._view(NodeView, "POST", f"/nodes/{quote(name, safe='')}/return")

    def log(self, probe_id: str, *, follow: bool = False) -> Iterator[bytes]:
        """In pieces, as they arrive. Errors come with the first piece.

        `follow`: while it is written, for as long as that takes.
        """
        return self._pieces(f"/probes/{quote(probe_id, safe='')}/log", follow)

    def build_log(self, key: str, *, follow: bool = False) -> Iterator[bytes]:
        """As `log`, of the build that made a wheel."""
        return self._pieces(f"/builds/{quote(key, safe='')}/log", follow)

    def _pieces(self, path: str, follow: bool) -> Iterator[bytes]:
        # Who follows a run hears nothing while it says nothing.
        more: dict[str, Any] = {"params": {"follow": "true"}, "timeout": self._patient} if follow else {}
        try:
            with self._http.stream("GET", path, **more) as answer:
                if not answer.is_success:
                    answer.read()
                    raise self._problem(answer)
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def find(self, prefix: str) -> str:
        """The full id that begins so; an unknown one comes back as it is, for the service to refuse.

        Errors: BadRequest for an empty one, and for one that several begin with.
        """
        if not prefix:
            raise BadRequest("the id is empty", advice="firstbad list shows all")
        known = [found.id for found in self.bisections(limit=200)]
        matching = [id for id in known if id.startswith(prefix)]
        if prefix in known or not matching:
            return prefix
        if len(matching) > 1:
            some = ", ".join(matching[:5]) + (", …" if len(matching) > 5 else "")
            raise BadRequest(
                f"{len(matching)} bisections begin with {prefix!r}", value=prefix, advice=f"name one: {some}"
            )
        return matching[0]

    def changes(
        self,
        id: str,
        *,
        every_s: float = 0.3,
        for_s: float = math.inf,
        patience_s: float = 60.0,
        away: Callable[[NoService | ProblemError], None] = lambda error: None,
    ) -> Iterator[Progress]:
        """How it stands, again after every change, until it has ended or `for_s` are over.

        It is told once more after QUIET_S without a change: it may wait for a node, or for its turn.
        A service that goes away, as for a restart, or fails is awaited for `patience_s`; `away` is told once each time.
        """
        pause, end, last, silent_since = threading.Event(), monotonic() + for_s, -1, math.inf
        quiet_at = math.inf
        while True:
            try:
                events = self.events(id, max(last, 0))
                if events.last > last:
                    progress = self._progress(id)
                    last = events.last
                    yield progress
                    if not progress.report.live:
                        return
                    quiet_at = monotonic() + QUIET_S
                elif monotonic() > quiet_at:
                    quiet_at = math.inf
                    yield replace(self._progress(id), quiet=True)
                silent_since = math.inf
            except (NoService, ProblemError) as error:
                if not passing(error) or monotonic() > min(silent_since + patience_s, end if last < 0 else math.inf):
                    raise
                if silent_since == math.inf:
                    silent_since = monotonic()
                    away(error)
            if monotonic() > end:
                return
            pause.wait(every_s)

    def _progress(self, id: str) -> Progress:
        """The report is never older than the probes, and at the end both are final."""
        probes = self.probes(id)
        report = self.bisection(id)
        return Progress(report, probes if report.live else self.probes(id), curve=self.curve(report))

    def _view(self, view: type[V], method: str, path: str, **more: Any) -> V:
        try:
            answer = self._http.request(method, path, **more)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if not answer.is_success:
            raise self._problem(answer)
        try:
            return view.model_validate_json(answer.content)
        except ValidationError:
            raise self._stranger(answer) from None

    def _problem(self, answer: httpx.Response) -> ProblemError | NoService:
        try:
            return ProblemError(Problem.model_validate_json(answer.content))
        except ValidationError:
            return self._stranger(answer)

    def _stranger(self, answer: httpx.Response) -> NoService:
        detail = f"{self._shown} answers (status {answer.status_code}), but not as firstbad does"
        return NoService(detail, "check the URL: --url or FIRSTBAD_URL")

    def _unreachable(self, error: httpx.TransportError) -> NoService:
        if isinstance(error, httpx.UnsupportedProtocol):
            return NoService(f"{self._shown!r} is no URL of a service", "write it like http://127.0.0.1:8377")
        if isinstance(error, httpx.ConnectError):
            return NoService(f"no firstbad answers at {self._shown}", f"start it with: firstbad up{self._port()}")
        what = str(error) or type(error).__name__
        return NoService(f"the connection to {self._shown} broke: {what}", "try again; see the service's log")

    def _port(self) -> str:
        """What `firstbad up` must be told to answer at this URL."""
        url = urlsplit(self.base_url)
        return f" --port {url.port}" if url.hostname in LOOPBACK and url.port not in (None, DEFAULT_PORT) else ""
