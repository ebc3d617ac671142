"""What persons say of commits, in the place of what runs have shown: a word that counts for certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.application.judge_builds import judge_build, judge_fault
from service.domain.bisection import Bisection, Probe, Purpose
from service.domain.evidence import Judgement, Override
from service.domain.lifecycle import ProbeState

_BY_HAND = "by hand by "
#: Probes that have a verdict, or would have one.
OVER = (ProbeState.JUDGED, ProbeState.FAULTED)


def standing(bisection: Bisection) -> Mapping[str, Override]:
    """By commit what counts, in the order in which it was said."""
    last: dict[str, Override] = {}
    for said in bisection.overrides:
        last.pop(said.sha, None)
        if said.verdict is not None:
            last[said.sha] = said
    return last


def reason(said: Override) -> str:
    return f"{_BY_HAND}{said.by}: {said.why}"


def is_by_hand(probe: Probe) -> bool:
    """Whether its verdict is a person's."""
    return probe.verdict is not None and probe.reason.startswith(_BY_HAND)


def as_said(probe: Probe, said: Override) -> Probe:
    return replace(probe, verdict=said.verdict, reason=reason(said))


def by_facts(bisection: Bisection, probe: Probe) -> Probe:
    """Without what was said of it: as its end left it where that is kept nowhere else, and else to be judged anew."""
    if probe.state not in OVER or not is_by_hand(probe) or all(said.sha != probe.sha for said in bisection.overrides):
        return probe
    told = _without_outcome(probe)
    return replace(probe, verdict=told.verdict, reason=told.reason)


def _without_outcome(probe: Probe) -> Judgement:
    if probe.state is ProbeState.FAULTED:
        return judge_fault(probe.faults)
    return judge_build() if probe.outcome is None else Judgement(None, "")


def is_end(bisection: Bisection, sha: str) -> bool:
    return sha == bisection.bad_sha or sha in bisection.good_shas


def purpose_of(bisection: Bisection, sha: str) -> Purpose:
    if sha == bisection.bad_sha:
        return Purpose.BAD_END
    return Purpose.GOOD_END if sha in bisection.good_shas else Purpose.SEARCH


def with_said(bisection: Bisection, probes: Sequence[Probe]) -> tuple[Probe, ...]:
    """Besides the probes one for each commit that somebody spoke of and that no probe tells of: `plan` reads both
    alike. Those that were added have no id."""
    told = {(probe.sha, probe.purpose) for probe in probes if probe.state in OVER}
    added = []
    for sha, said in standing(bisection).items():
        purpose = purpose_of(bisection, sha)
        if (sha, purpose) not in told:
            blank = Probe("", bisection.id, 0, sha, 0, purpose, ProbeState.JUDGED, said.at, finished_at=said.at)
            added.append(as_said(blank, said))
    return (*probes, *added)
