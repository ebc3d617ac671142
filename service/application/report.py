"""What is told of a bisection: where it stands, its answer, and the probes that the answer stands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.application import wording
from service.domain.bisection import Bisection, Commit, Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, ProbeState


@dataclass(frozen=True)
class Proof:
    probe: Probe
    commit: Commit


@dataclass(frozen=True)
class Report:
    """`good`, `bad` are empty until the commits are looked up; `answer` and `evidence` before the end."""

    bisection: Bisection
    good: tuple[Commit, ...]
    bad: Commit | None
    answer: tuple[Commit, ...]
    evidence: tuple[Proof, ...]
    probes_done: int
    probes_running: tuple[Probe, ...]
    headline: str
    explanation: tuple[str, ...]


def wanted_commits(bisection: Bisection, probes: Sequence[Probe]) -> frozenset[str]:
    """Every commit that a report of it shows."""
    ends = {*bisection.good_shas, *((bisection.bad_sha,) if bisection.bad_sha else ())}
    answer = bisection.answer.shas if bisection.answer else ()
    return frozenset({*ends, *answer, *(probe.sha for probe in probes)})


def report(bisection: Bisection, probes: Sequence[Probe], commits: Mapping[str, Commit]) -> Report:
    answer = tuple(commits[sha] for sha in bisection.answer.shas) if bisection.answer else ()
    proofs = _proofs(bisection, probes, commits, answer)
    return Report(
        bisection=bisection,
        good=tuple(commits[sha] for sha in bisection.good_shas),
        bad=commits[bisection.bad_sha] if bisection.bad_sha else None,
        answer=answer,
        evidence=proofs,
        probes_done=sum(probe.verdict is not None for probe in probes),
        probes_running=tuple(probe for probe in probes if probe.state is ProbeState.RUNNING),
        headline=wording.headline(bisection, answer),
        explanation=wording.explanation(bisection, commits),
    )


def _proofs(
    bisection: Bisection, probes: Sequence[Probe], commits: Mapping[str, Commit], answer: Sequence[Commit]
) -> tuple[Proof, ...]:
    """For one commit: its bad probes and the good ones of its parents. For suspects: their own and their parents'."""
    if bisection.state is BisectionState.FOUND:
        parents = set(answer[0].parents) or set(bisection.good_shas)
        good = [probe for probe in probes if probe.verdict is Verdict.GOOD]
        below = [p for p in good if p.sha in parents] or [p for p in good if p.sha in bisection.good_shas]
        bad = [p for p in probes if p.verdict is Verdict.BAD and p.sha == answer[0].sha]
        return tuple(Proof(probe, commits[probe.sha]) for probe in (*bad, *below))
    suspects = {commit.sha for commit in answer}
    outside = {parent for commit in answer for parent in commit.parents} - suspects
    judged = [probe for probe in probes if probe.verdict is not None]
    bounding = [p for p in judged if p.sha in suspects or (p.sha in outside and p.verdict is Verdict.GOOD)]
    return tuple(Proof(probe, commits[probe.sha]) for probe in bounding)
