"""What takes several calls: whole lists, ids that are shortened, logs, and following a bisection to its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from time import monotonic

import httpx

from firstbad import calls
from firstbad.base import Base
from firstbad.call import Call, part
from firstbad.errors import NoService, ProblemError, passing
from firstbad.progress import QUIET_S, Progress
from firstbad.sse import Reader
from firstbad.steps import Flow, Give, Pause, Read
from service.domain.errors import BadRequest
from service.domain.lifecycle import BisectionState
from service.doors.api.views import BisectionView, BuildView, CurveView, EventView, NodeView, ProbeView, ReportView

#: Longest time that one call waits for a change, and the least between two.
LONGEST_WAIT_S, LEAST_S = 30.0, 0.2
#: Of the answer to who knows all events of a bisection that has ended.
NOTHING_MORE = 204


def log(base: Base, probe_id: str, *, follow: bool = False) -> Flow[None]:
    """In pieces, as they arrive. Errors come with the first piece.

    `follow`: while it is written, for as long as that takes.
    """
    return base.pieces(_log(f"/probes/{part(probe_id)}/log", follow))


def build_log(base: Base, key: str, *, follow: bool = False) -> Flow[None]:
    """As `log`, of the build that made a wheel."""
    return base.pieces(_log(f"/builds/{part(key)}/log", follow))


def _log(path: str, follow: bool) -> Call[bytes]:
    # Who follows a run hears nothing while it says nothing.
    params = {"follow": "true"} if follow else {}
    return Call("GET", path, bytes, params=params, headers={"Accept": "*/*"}, again=True, patient=follow)


def every_bisection(
    base: Base,
    states: Collection[BisectionState] = (),
    *,
    project: str | None = None,
    submitter: str | None = None,
    text: str | None = None,
    sort: calls.Sort | None = None,
) -> Flow[None]:
    """As `bisections`, page after page to the last one."""
    more = {"project": project, "submitter": submitter, "text": text, "sort": sort}
    return base.pages(calls.bisection_pages(states, limit=calls.PAGE, **more))


def probes(base: Base, id: str) -> Flow[tuple[ProbeView, ...]]:
    """All, by number."""
    return base.whole(calls.probes(id))


def builds(base: Base, id: str) -> Flow[tuple[BuildView, ...]]:
    """All, oldest first."""
    return base.whole(calls.builds(id))


def nodes(base: Base) -> Flow[tuple[NodeView, ...]]:
    return base.whole(calls.nodes())


def wait(base: Base, id: str, within_s: float = math.inf) -> Flow[ReportView]:
    """The report once it has ended; as it is then (`live`), when `within_s` are over before."""
    end = monotonic() + within_s
    report = yield from base.sent(calls.bisection(id))
    while report.live and (left := end - monotonic()) > 0:
        asked = monotonic()
        wait_s = max(1, math.ceil(min(LONGEST_WAIT_S, base.timeout_s / 2, left)))
        report = yield from base.sent(calls.changed(id, wait_s))
        if report.live and monotonic() - asked < LEAST_S:
            yield Pause(LEAST_S)
    return report


def listen(base: Base, id: str, after: int = 0) -> Flow[None]:
    """Each event of a bisection as it happens, until it has ended. `after`: the last one that is known.

    A connection that breaks off is made again, and goes on where it was.
    """
    last, tried = after, 0
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(last)} if last else {})}
        call = Call("GET", f"/bisections/{part(id)}/events", bytes, headers=headers, again=True)
        known = last
        try:
            reader = Reader()
            answer = yield from base.opened(call)
            if answer.status_code == NOTHING_MORE:
                return
            while (piece := (yield Read())) is not None:
                for message in reader.read(piece):
                    if message.kind == "end":
                        return
                    event = EventView.model_validate_json(message.data)
                    last, tried = event.id, 0
                    yield Give(event)
            if last == known:
                yield Pause(LEAST_S)
        except httpx.TransportError as error:
            tried += 1
            pause_s = base.retry.pause_s(tried, None)
            if pause_s is None:
                raise base.site.unreachable(error) from None
            yield Pause(pause_s)


def curve(base: Base, report: BisectionView) -> Flow[CurveView | None]:
    """What was measured; None where a failure is looked for and no number."""
    if report.links.metric is None:
        return None
    return (yield from base.sent(calls.curve(report.id)))


def find(base: Base, prefix: str) -> Flow[str]:
    """The full id that begins so; an unknown one comes back as it is, for the service to refuse.

    Errors: BadRequest for an empty one, and for one that several begin with.
    """
    if not prefix:
        raise BadRequest("the id is empty", advice="firstbad list shows all")
    known = [found.id for found in (yield from base.sent(calls.bisections(limit=200)))]
    matching = [id for id in known if id.startswith(prefix)]
    if prefix in known or not matching:
        return prefix
    if len(matching) > 1:
        some = ", ".join(matching[:5]) + (", …" if len(matching) > 5 else "")
        raise BadRequest(f"{len(matching)} bisections begin with {prefix!r}", value=prefix, advice=f"name one: {some}")
    return matching[0]


def changes(
    base: Base,
    id: str,
    *,
    every_s: float = 0.3,
    for_s: float = math.inf,
    patience_s: float = 60.0,
    away: Callable[[NoService | ProblemError], None] = lambda error: None,
) -> Flow[None]:
    """How it stands, again after every change, until it has ended or `for_s` are over.

    It is told once more after QUIET_S without a change: it may wait for a node, or for its turn.
    A service that goes away, as for a restart, or fails is awaited for `patience_s`; `away` is told once each time.
    """
    end, last, silent_since = monotonic() + for_s, -1, math.inf
    quiet_at = math.inf
    while True:
        try:
            events = yield from base.sent(calls.events(id, max(last, 0)))
            if events.last > last:
                progress = yield from _progress(base, id)
                last = events.last
                yield Give(progress)
                if not progress.report.live:
                    return
                quiet_at = monotonic() + QUIET_S
            elif monotonic() > quiet_at:
                quiet_at = math.inf
                yield Give(replace((yield from _progress(base, id)), quiet=True))
            silent_since = math.inf
        except (NoService, ProblemError) as error:
            if not passing(error) or monotonic() > min(silent_since + patience_s, end if last < 0 else math.inf):
                raise
            if silent_since == math.inf:
                silent_since = monotonic()
                away(error)
        if monotonic() > end:
            return
        yield Pause(every_s)


def _progress(base: Base, id: str) -> Flow[Progress]:
    """The report is never older than the probes, and at the end both are final."""
    tried = yield from probes(base, id)
    report = yield from base.sent(calls.bisection(id))
    if not report.live:
        tried = yield from probes(base, id)
    return Progress(report, tried, curve=(yield from curve(base, report)))
