"""What a person says of a commit, in the place of what its runs have shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.application import builds, by_hand, cancel, reopen
from service.application.ports import Transaction
from service.application.verdicts import derive
from service.application.wording import short
from service.domain.bisection import Bisection
from service.domain.errors import BadRequest, NotNow
from service.domain.evidence import Override, Verdict
from service.domain.lifecycle import LIVE_PROBES
from service.search.candidates import conflict
from service.search.evidence import Evidence, Observation
from service.search.graph import Range

#: So many are kept for one bisection.
MOST = 1000


def override(tx: Transaction, found: Bisection, said: Override, range_: Range, now: datetime) -> Bisection:
    """Kept, and what follows from it: verdicts are derived anew, what runs for the commit is stopped, an answer is
    taken back. Said again, it changes nothing. The caller holds the lock, and lets the bisection go on afterwards.

    Errors: BadRequest; NotNow when it cannot go on, or where others have said what cannot be true beside it.
    """
    reopen.check_may_go_on(found)
    was = by_hand.standing(found).get(said.sha)
    if _nothing_new(was, said):
        return found
    _check_metric(found, said)
    _check_room(found)
    kept = replace(found, overrides=(*found.overrides, said), updated_at=now)
    _check_others(kept, said, range_)
    tx.save_bisection(kept)
    data: dict[str, object] = {"sha": said.sha, "verdict": str(said.verdict or ""), "by": said.by, "why": said.why}
    tx.add_event(found.id, now, "override", {**data, "was": str(was.verdict) if was else ""})
    if said.verdict is not None:
        _stop(tx, kept, said, now)
    derive(tx, kept, now, range_ if found.request.metric is not None else None)
    if was is not None and was.verdict is said.verdict:
        # Another one says the same, or for another reason.
        return kept
    return reopen.reopened(tx, kept, now, ends=by_hand.is_end(kept, said.sha))


def _nothing_new(was: Override | None, said: Override) -> bool:
    if was is None:
        return said.verdict is None
    return (was.verdict, was.by, was.why) == (said.verdict, said.by, said.why)


def _check_metric(found: Bisection, said: Override) -> None:
    if found.request.metric is None or said.verdict is None:
        return
    if said.verdict is Verdict.SKIP and not by_hand.is_end(found, said.sha):
        return
    id, end = found.id, "" if said.verdict is Verdict.SKIP else f" --set {said.verdict}={short(said.sha)}"
    raise BadRequest(
        f"bisection {id} compares a number, and all runs together tell which commits are good and bad",
        value=str(said.verdict),
        field="verdict",
        advice="say skip to leave out what was measured of a commit between the ends"
        + (f"; to search up to this one, or from it on: firstbad clone {id}{end}" if end else ""),
    )


def _check_room(found: Bisection) -> None:
    if len(found.overrides) >= MOST:
        raise NotNow(
            f"{MOST} verdicts were given by hand in bisection {found.id}, and no more are kept",
            value=found.id,
            advice=f"clone it with other ends: firstbad clone {found.id}",
        )


def _check_others(kept: Bisection, said: Override, range_: Range) -> None:
    """Of an end anything may be said: the bisection is refused for it, or goes on."""
    words = {sha: one for sha, one in by_hand.standing(kept).items() if not by_hand.is_end(kept, sha)}
    seen = [Observation(sha, str(one.verdict)) for sha, one in words.items()]  # type: ignore[arg-type]
    clash = conflict(range_, Evidence(tuple(seen)))
    if clash is None or said.sha not in words:
        return
    others = [words[one.sha] for one in clash.observations if one.sha != said.sha] or [said]
    raise NotNow(
        f"{short(said.sha)} cannot be {said.verdict} beside what was said before: {_listed(others)}",
        value=said.sha,
        advice=f"take that back first: firstbad override {kept.id} {short(others[0].sha)} none --why …",
    )


def _listed(others: list[Override]) -> str:
    return "; ".join(f"{short(one.sha)} is {one.verdict}, by {one.by}: {one.why}" for one in others)


def _stop(tx: Transaction, kept: Bisection, said: Override, now: datetime) -> None:
    builds.lock_those_of(tx, kept.id)
    for probe in tx.probes(kept.id):
        if probe.sha == said.sha and probe.state in LIVE_PROBES:
            cancel.probe(tx, probe, now, by_hand.reason(said))
