"""What takes several calls: whole lists, ids that are shortened, logs, and following a bisection to its end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from firstbad import calls
from firstbad.base import Base
from firstbad.call import Call, part
from firstbad.errors import NoService, ProblemError, passing
from firstbad.progress import QUIET_S, Progress
from firstbad.steps import Flow, Give, Pause
from service.domain.errors import BadRequest
from service.doors.api.views import BisectionView, CurveView


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
    probes = yield from base.sent(calls.probes(id))
    report = yield from base.sent(calls.bisection(id))
    if not report.live:
        probes = yield from base.sent(calls.probes(id))
    return Progress(report, probes, curve=(yield from curve(base, report)))
