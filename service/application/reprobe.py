"""One more run of a commit, since a person asks for it."""

from __future__ import annotations

from datetime import datetime

from service.application import builds, nodes, reopen
from service.application.advance import planned
from service.application.dispatch import dispatch
from service.application.keys import Keys
from service.application.moves import Wanted
from service.application.ports import Transaction
from service.domain.bisection import Bisection, Probe, Purpose
from service.domain.errors import NotNow
from service.domain.lifecycle import LIVE_PROBES
from service.domain.spending import spent

_KIND = "asked for"


def reprobe(
    tx: Transaction,
    found: Bisection,
    sha: str,
    why: str,
    by: str,
    keys: Keys | None,
    now: datetime,
    key: str | None = None,
) -> Probe:
    """The probe; one that was asked for and lives is that, and so is the one that the same `key` of the same caller
    began. The search goes on from what it shows, and until then there is no answer. The caller holds the lock.

    Errors: NotNow when the bisection cannot go on, or where no more may be tried.
    """
    probes = tx.probes(found.id)
    live = [p for p in probes if p.sha == sha and p.purpose is Purpose.ASKED and p.state in LIVE_PROBES]
    if live:
        return live[0]
    if key is not None and (known := _by_key(tx, found.id, f"{by}\0{key}")) is not None:
        return tx.probe(known)
    reopen.check_may_go_on(found)
    _check_budget(found, probes, now)
    going = reopen.reopened(tx, found, now)
    if keys is not None:
        builds.lock(tx, [keys], tx.builds_ahead(found.id))
    first = nodes.first_of(probes) if found.request.metric is not None else None
    bench = nodes.alike(tx, found, first, now)[:1] if first is not None else ()
    wanted = Wanted(sha, Purpose.ASKED, bench[0] if bench else first)
    probe = planned(tx, going, probes, wanted, len(probes) + 1, now)
    data: dict[str, object] = {"probe": probe.id, "sha": sha, "by": by, "why": why}
    tx.add_event(found.id, now, _KIND, {**data, "key": f"{by}\0{key}"} if key is not None else data)
    return dispatch(tx, going, probe, keys, now)


def _by_key(tx: Transaction, id: str, key: str) -> str | None:
    after = 0
    while events := tx.events(id, after=after):
        for event in events:
            if event.kind == _KIND and event.data.get("key") == key:
                return str(event.data["probe"])
        after = events[-1].id
    return None


def _check_budget(found: Bisection, probes: tuple[Probe, ...], now: datetime) -> None:
    most, live = found.budget.probes, sum(probe.state in LIVE_PROBES for probe in probes)
    if most is not None and spent(found, probes, now).probes + live >= most:
        raise NotNow(
            f"the budget of {most} probes of bisection {found.id} is spent",
            value=str(most),
            field="budget.probes",
            advice=f"allow more first: firstbad extend {found.id} --probes {most + 1}",
        )
