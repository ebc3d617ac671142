"""Native builds of a whole bisection for every place of the first bad commit, by the planner itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from examples.generate import Example
from service.application.forecast import Forecast
from service.application.keys import Keys, Scope
from service.application.plan import step
from service.domain.bisection import Bisection, Probe, Reproduction, Request
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.recipe import Recipe, SandboxKind
from service.search import Range

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RECIPE = Recipe("tinyserve", build_command="build")


@dataclass
class Tally:
    """Of one bisection: its probes, and what they made of the stock."""

    probes: int = 0
    wheels: set[str] = field(default_factory=set)
    natives: set[str] = field(default_factory=set)


def run(example: Example) -> None:
    known = example.commits
    keys = {commit.sha: Keys(commit.sha, str(commit.native_tree)) for commit in known}
    range_ = Range.of([commit.sha for commit in known[1:]], {c.sha: c.parents for c in known[1:]})
    for name, build_s in (("costs heeded, a build 10 runs long", 600.0), ("costs not heeded", 0.0)):
        found = [tally(Scope(range_, keys), place, build_s) for place in range(1, len(known))]
        natives = [len(one.natives) for one in found]
        probes = [one.probes for one in found]
        print(
            f"native builds, {name}: {sum(natives) / len(natives):.2f} of {len({k.native for k in keys.values()})} "
            f"in the mean of {len(found)} places, {max(natives)} at most; "
            f"{sum(probes) / len(probes):.2f} probes with both ends, {max(probes)} at most"
        )


def tally(scope: Scope, place: int, build_s: float) -> Tally:
    """One probe at a time, each judged at once; the first bad commit is at this place of the range, 1 the first."""
    shas, told = scope.range.shas, Tally()
    order = {sha: number for number, sha in enumerate(shas, start=1)}
    good = next(sha for sha in scope.keys if sha not in order)
    request = Request("r", ("g",), "b", Reproduction("x"), RECIPE, SandboxKind.PROCESS)
    ends = Bisection("b1", BisectionState.CHECKING_ENDS, request, "me", NOW, NOW, (good,), shas[-1])
    bisection, probes = ends, list[Probe]()
    while bisection.state in (BisectionState.CHECKING_ENDS, BisectionState.SEARCHING):
        taken = step(bisection, probes, scope, _forecast(scope.keys, told, build_s))
        bisection = replace(bisection, state=taken.state or bisection.state)
        for wanted in taken.wanted:
            told.probes += 1
            told.wheels.add(scope.keys[wanted.sha].content)
            told.natives.add(scope.keys[wanted.sha].native or "")
            verdict = Verdict.BAD if order.get(wanted.sha, 0) >= place else Verdict.GOOD
            number, state = len(probes) + 1, ProbeState.JUDGED
            probe = Probe(f"b1.{number}", "b1", number, wanted.sha, 1, wanted.purpose, state, NOW, verdict=verdict)
            probes.append(probe)
    return told


def _forecast(keys: Mapping[str, Keys], told: Tally, build_s: float) -> Forecast:
    if not build_s:
        return Forecast(wheels=frozenset(key.content for key in keys.values()))
    return Forecast(frozenset(told.wheels), frozenset(told.natives), run_s=60.0, build_s=build_s, overlay_s=1.0)
