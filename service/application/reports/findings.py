"""What every form of a report is made of, and the sentences that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from service.application.by_hand import standing
from service.application.report import Report
from service.application.wording import SUREST, short, what_was_spent
from service.domain.bisection import Bisection, Commit, Probe, Request
from service.domain.evidence import Verdict
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, ProbeState

_OVER = (ProbeState.JUDGED, ProbeState.FAULTED)


@dataclass(frozen=True)
class Findings:
    """`probes`: all, by number. `commits`: at least the ends, those that were probed or spoken of, the answer."""

    report: Report
    probes: tuple[Probe, ...]
    commits: Mapping[str, Commit]

    @property
    def bisection(self) -> Bisection:
        return self.report.bisection

    @property
    def request(self) -> Request:
        return self.bisection.request

    @property
    def first_bad(self) -> Commit | None:
        """The answer, where it is one."""
        found = self.bisection.state is BisectionState.FOUND
        return self.report.answer[0] if found and self.report.answer else None

    @property
    def over(self) -> tuple[Probe, ...]:
        """Probes that have ended in one way or another, but for those that were stopped."""
        return tuple(probe for probe in self.probes if probe.state in _OVER)

    def subject(self, sha: str) -> str:
        return self.commits[sha].subject if sha in self.commits else ""

    def told(self, sha: str) -> frozenset[Verdict]:
        """What is said of a commit: by a person, or else by its runs; several where those differ."""
        said = standing(self.bisection).get(sha)
        if said is not None and said.verdict is not None:
            return frozenset({said.verdict})
        return frozenset(probe.verdict for probe in self.over if probe.sha == sha and probe.verdict is not None)


def confidence(found: Findings) -> str:
    """How sure the answer is; empty without one."""
    answer = found.bisection.answer
    if answer is None or found.first_bad is None:
        return ""
    if answer.confidence is None:
        return "certain, unless the failure is flaky"
    return f"{min(answer.confidence, SUREST) * 100:.1f} %"


def facts(found: Findings, repo: str) -> Iterator[tuple[str, str]]:
    """What was looked for, where, and what it cost. `repo`: as it may be shown."""
    report, bisection = found.report, found.bisection
    yield "repository", repo
    goods = ", ".join(_end(written, report.good, place) for place, written in enumerate(found.request.good))
    yield "good", goods
    yield "bad", f"{found.request.bad} ({short(report.bad.sha)})" if report.bad is not None else found.request.bad
    if bisection.candidates is not None:
        left = f", {bisection.candidates_left:,} left" if bisection.candidates_left is not None else ""
        yield "commits", f"{bisection.candidates:,}{left}"
    if sure := confidence(found):
        yield "confidence", sure
    yield "spent", what_was_spent(report.spent)
    yield "bisection", f"{bisection.id}, submitted by {bisection.submitter} on {bisection.created_at:%Y-%m-%d}"


def _end(written: str, looked_up: tuple[Commit, ...], place: int) -> str:
    return f"{written} ({short(looked_up[place].sha)})" if place < len(looked_up) else written


def seconds(probe: Probe) -> float | None:
    """How long its last run took; None where none is over."""
    if probe.started_at is None or probe.finished_at is None:
        return None
    return max((probe.finished_at - probe.started_at).total_seconds(), 0.0)


def lives(found: Findings) -> bool:
    return found.bisection.state in LIVE_BISECTIONS


def steps(found: Findings) -> Iterator[tuple[str, str]]:
    """How to see it by hand: what each piece is, and its text as a shell takes it."""
    recipe, made = found.request.recipe, found.request.reproduction
    commit = found.first_bad.sha if found.first_bad is not None else found.bisection.bad_sha
    if commit is not None:
        yield "Check the commit out", f"git checkout {commit}"
    if recipe.build_command is not None:
        yield "Build and install it", recipe.build_command
    if recipe.env:
        yield "Set", "\n".join(f"{name}={value}" for name, value in recipe.env.items())
    if made.serve is not None:
        yield "Start the server", made.serve.command
    if made.check is not None:
        yield "Check it, once it is ready", made.check
    if made.script is not None:
        yield "Run: exit status 0 is good, 125 says nothing, any other one is bad", made.script
    if made.failure is not None:
        yield "The failure prints", made.failure
