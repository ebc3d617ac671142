"""What is told of a bisection: where it stands, its answer, and the probes that the answer stands on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from service.application import wording
from service.application.by_hand import standing
from service.domain.bisection import Bisection, Build, Commit, Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.spending import Spent


@dataclass(frozen=True)
class Proof:
    probe: Probe
    commit: Commit


@dataclass(frozen=True)
class Wheels:
    """How many came about in each way for this bisection; `reused`: were there already; `ahead`: were made while
    builders were idle, and no probe has wanted them."""

    built: int = 0
    overlay: int = 0
    prebuilt: int = 0
    failed: int = 0
    reused: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class Drift:
    """A dependency that the first bad commit was run with in another version than its parent; "" is none at all."""

    name: str
    parent: str
    first_bad: str


@dataclass(frozen=True)
class Report:
    """`good`, `bad` are empty until the commits are looked up; `answer` and `evidence` before the end.

    `wheels`: how they came about. `drift`: what else differs between the first bad commit and its parent.
    `waiting`: probes that wait for their turn. `sent`: those that no node has begun.
    """

    bisection: Bisection
    good: tuple[Commit, ...]
    bad: Commit | None
    answer: tuple[Commit, ...]
    evidence: tuple[Proof, ...]
    probes_done: int
    probes_running: tuple[Probe, ...]
    headline: str
    explanation: tuple[str, ...]
    wheels: Wheels = field(default_factory=lambda: Wheels())
    drift: tuple[Drift, ...] = ()
    spent: Spent = field(default_factory=Spent)
    waiting: int = 0
    sent: int = 0


def wanted_commits(bisection: Bisection, probes: Sequence[Probe]) -> frozenset[str]:
    """Every commit that a report of it shows."""
    ends = {*bisection.good_shas, *((bisection.bad_sha,) if bisection.bad_sha else ())}
    answer = bisection.answer.shas if bisection.answer else ()
    said = (one.sha for one in bisection.overrides)
    return frozenset({*ends, *answer, *(probe.sha for probe in probes), *said})


def report(
    bisection: Bisection,
    probes: Sequence[Probe],
    commits: Mapping[str, Commit],
    builds: Sequence[Build] = (),
    waits: Sequence[str] = (),
    spent: Spent = Spent(),
) -> Report:
    """`waits`: what it waits for that is not its own work, a sentence each."""
    answer = tuple(commits[sha] for sha in bisection.answer.shas) if bisection.answer else ()
    proofs = _proofs(bisection, probes, commits, answer)
    found = bisection.state is BisectionState.FOUND
    drift = drift_of([proof.probe for proof in proofs], builds) if found else ()
    return Report(
        bisection=bisection,
        good=tuple(commits[sha] for sha in bisection.good_shas),
        bad=commits[bisection.bad_sha] if bisection.bad_sha else None,
        answer=answer,
        evidence=proofs,
        probes_done=sum(probe.verdict is not None for probe in probes),
        probes_running=tuple(probe for probe in probes if probe.state is ProbeState.RUNNING),
        headline=wording.headline(bisection, answer),
        explanation=(
            *wording.explanation(bisection, commits, wording.go_on(bisection, spent)),
            *waits,
            *wording.drifted([_told(one) for one in drift]),
            *_by_persons(bisection),
        ),
        wheels=wheels_of(bisection, builds),
        drift=drift,
        spent=spent,
        sent=sum(probe.state is ProbeState.QUEUED and probe.sent_at is not None for probe in probes),
        waiting=sum(probe.state is ProbeState.QUEUED and probe.sent_at is None for probe in probes),
    )


def _by_persons(bisection: Bisection) -> Iterator[str]:
    """What came of no run."""
    for sha, said in standing(bisection).items():
        yield f"By hand: {wording.short(sha)} is {said.verdict}, says {said.by} on {said.at:%Y-%m-%d}: {said.why}"
    if bisection.clone_of is not None:
        yield f"It was begun as a clone of {bisection.clone_of}."


def wheels_of(bisection: Bisection, builds: Sequence[Build]) -> Wheels:
    own = [b for b in builds if b.bisection_id == bisection.id and b.queued_at >= bisection.created_at]
    count = Counter(str(build.origin) for build in own if build.origin is not None and not build.ahead)
    failed = sum(build.state is BuildState.FAILED for build in own)
    unused = sum(build.ahead and build.origin is not None for build in own)
    return Wheels(count["built"], count["overlay"], count["prebuilt"], failed, len(builds) - len(own), unused)


def drift_of(proof: Sequence[Probe], builds: Sequence[Build] = ()) -> tuple[Drift, ...]:
    """Between the bad runs and the good ones that an answer stands on, but for the wheels under test themselves."""
    own = {_canonical((build.wheel_name or "").partition("-")[0]) for build in builds}
    bad, good = (_installed(proof, verdict) for verdict in (Verdict.BAD, Verdict.GOOD))
    if bad is None or good is None:
        return ()
    names = sorted(name for name in bad.keys() | good.keys() if bad.get(name) != good.get(name))
    return tuple(Drift(name, good.get(name, ""), bad.get(name, "")) for name in names if _canonical(name) not in own)


def _installed(proof: Sequence[Probe], verdict: Verdict) -> Mapping[str, str] | None:
    """None when no run says what it was installed with."""
    runs = [probe.outcome.dependencies for probe in proof if probe.verdict is verdict and probe.outcome is not None]
    return next((run for run in runs if run), None)


def _canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _told(drift: Drift) -> str:
    return f"{drift.name} {drift.parent or 'none'} → {drift.first_bad or 'none'}"


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
