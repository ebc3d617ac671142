"""`make bench-metric-example`: bisections of the example repository's slow commit by a number, one after another.

Real wheels, real servers, real requests, and the noise of this machine as it is. Each bisection has a history of its
own and a slow commit at another place, slower by another factor. Printed of each: whether the commit that was named is
the right one, runs at the ends and between them, commits that were tried, and how much the runs of one commit vary.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from examples.demo import Service
from examples.generate import Example, Options, Slower, generate
from firstbad import Client
from service.domain.bisection import Origin
from service.domain.lifecycle import BuildState
from service.doors.api.views import ProbeView, ReportView

REQUEST = Path(__file__).parents[1] / "examples" / "requests" / "tinyserve-throughput.yaml"
#: How many times as much a token costs from the slow commit on.
FACTORS = (1.1, 1.2, 1.3, 1.5)
QUICK_COMMITS = 12


@dataclass(frozen=True)
class Case:
    seed: int
    commits: int
    position: int
    factor: float


@dataclass(frozen=True)
class Run:
    """`noise`: one run's standard deviation, as a share of the mean of its end. `tried`: distinct commits."""

    right: bool
    at_ends: int
    between: int
    tried: int
    built: int
    noise: float
    effect: float
    seconds: float


def main() -> int:
    arguments = _arguments()
    cases = [_case(arguments.seed + number, arguments) for number in range(arguments.runs)]
    with tempfile.TemporaryDirectory(prefix="firstbad-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = _bisections(cases, folder.absolute(), arguments.port)
    _say_sum(runs)
    return 0 if all(run.right for run in runs) else 1


def _bisections(cases: Sequence[Case], folder: Path, port: int) -> list[Run]:
    with Service(folder / "home", port) as url, Client(url) as client:
        return [_bisected(client, case, folder) for case in cases]


def _case(seed: int, arguments: argparse.Namespace) -> Case:
    dice = random.Random(seed)
    factor = arguments.factors[seed % len(arguments.factors)]
    return Case(seed, arguments.commits, dice.randint(1, arguments.commits), factor)


def _bisected(client: Client, case: Case, folder: Path) -> Run:
    example = generate(folder / f"tinyserve{case.seed}", _options(case))
    slow = example.commits[case.position].sha
    began = time.perf_counter()
    id = client.submit(_document(example)).id
    while (report := client.bisection(id)).live:
        time.sleep(0.2)
    run = _run(client, report, slow, time.perf_counter() - began)
    _say(case, run)
    if not run.right:
        print(_wrong(example, report), flush=True)
    return run


def _options(case: Case) -> Options:
    """The failure of the example's first bad commit shows with two speculative tokens alone, and none are asked for."""
    other = case.position % case.commits + 1
    return Options(seed=case.seed, commits=case.commits, first_bad=other, slower=Slower(case.position, case.factor))


def _document(example: Example) -> dict[str, Any]:
    asked = yaml.safe_load(REQUEST.read_text())
    return {**asked, "repo": str(example.path), "good": example.good, "bad": example.bad}


def _run(client: Client, report: ReportView, slow: str, seconds: float) -> Run:
    probes = client.probes(report.id)
    ends = {commit.sha for commit in (*report.ends.good, report.ends.bad) if commit is not None}
    builds = [build for build in client.builds(report.id) if build.state is BuildState.BUILT and not build.ahead]
    good, bad = (_numbers(probes, [commit.sha]) for commit in (report.ends.good[0], report.ends.bad) if commit)
    return Run(
        right=[commit.sha for commit in report.answer.commits] == [slow] if report.answer else False,
        at_ends=sum(probe.sha in ends for probe in probes),
        between=sum(probe.sha not in ends for probe in probes),
        tried=len({probe.sha for probe in probes}),
        built=sum(build.origin is Origin.BUILT for build in builds),
        noise=statistics.fmean(_spread(numbers) for numbers in (good, bad)),
        effect=1 - statistics.fmean(bad) / statistics.fmean(good) if good and bad else float("nan"),
        seconds=seconds,
    )


def _numbers(probes: Sequence[ProbeView], shas: Sequence[str]) -> list[float]:
    """Of the metric that decides."""
    found = [probe.outcome.measurements[0] for probe in probes if probe.sha in shas and _measured(probe)]  # type: ignore[union-attr]
    return [each.value for each in found if each.value is not None]


def _measured(probe: ProbeView) -> bool:
    return probe.outcome is not None and bool(probe.outcome.measurements)


def _spread(numbers: Sequence[float]) -> float:
    return statistics.stdev(numbers) / statistics.fmean(numbers) if len(numbers) > 1 else float("nan")


def _say(case: Case, run: Run) -> None:
    print(
        f"seed {case.seed:>3}  slow at {case.position:>3} of {case.commits}  factor {case.factor:g}"
        f"  {'right' if run.right else 'WRONG'}  {run.at_ends:>3} runs at the ends  {run.between:>3} between"
        f"  {run.tried:>2} commits tried, {run.built:>2} compiled"
        f"  effect {run.effect:6.1%}  noise {run.noise:5.1%}  {run.seconds:5.1f} s",
        flush=True,
    )


def _wrong(example: Example, report: ReportView) -> str:
    """What was said instead, by position."""
    positions = {commit.sha: number for number, commit in enumerate(example.commits)}
    named = [positions.get(sha, -1) for sha in report.first_bad]
    why = report.problem.detail if report.problem else report.headline
    return f"      {report.state.value}: {named} {why}"


def _say_sum(runs: Sequence[Run]) -> None:
    right = Counter(run.right for run in runs)[True]
    means: dict[str, float] = defaultdict(float)
    for name in ("at_ends", "between", "tried", "built", "noise", "seconds"):
        means[name] = statistics.fmean(getattr(run, name) for run in runs)
    print(
        f"{right} of {len(runs)} right; in the mean {means['at_ends']:.1f} runs at the ends and {means['between']:.1f} "
        f"between, {means['tried']:.1f} commits tried, {means['built']:.1f} compiled, noise {means['noise']:.1%}, "
        f"{means['seconds']:.0f} s"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-metric-example", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="bisections, one after another")
    parser.add_argument("--commits", type=int, default=249, help="from good to bad")
    parser.add_argument("--factors", type=_factors, default=FACTORS, help="taken in turn, such as 1.1,1.5")
    parser.add_argument("--seed", type=int, default=1, help="of the first bisection; the others count up from it")
    parser.add_argument("--port", type=int, default=8398)
    parser.add_argument("--folder", type=Path, help="where the service's data stay; else nothing of them does")
    parser.add_argument("--quick", action="store_true", help="one bisection of a short range")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.runs, chosen.commits = 1, QUICK_COMMITS
    return chosen


def _factors(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
