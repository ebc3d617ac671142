"""Every sentence that a person reads about a number that got worse, as pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from service.application.measure import Numbers
from service.application.wording import SUREST, last_lines, short, times
from service.domain import amounts
from service.domain.bisection import Probe, Problem
from service.domain.errors import BadEnds
from service.domain.metric import Better, Measurement, Metric
from service.search.graph import Range
from service.search.metric import Ends, Location, Step

_NOT_WORSE = {
    "alike": (
        "The ends do not differ",
        "look whether this is the number that got worse, measure more in one run, allow more with measuring: "
        "{runs: …}, or name other ends",
    ),
    "small": (
        "The ends differ by less than the threshold",
        "lower threshold: or leave it out, or name ends that lie further apart",
    ),
}


def units_differ(end: Probe, its: str, other: str) -> Problem:
    side = str(end.purpose).split()[0]
    detail = f"the {end.purpose} {short(end.sha)} is measured in {its}, the other end in {other}.\n{last_lines(end)}"
    advice = "name the number by a pattern that finds it in one unit at both ends, or have the script convert it"
    return Problem(BadEnds.slug, "The ends are measured in different units", detail, its, side, advice)


def no_share_of(end: Probe, value: float, unit: str) -> Problem:
    detail = (
        f"the good end {short(end.sha)} measures {amounts.amount(value, unit)}, and a share of a number that is not "
        "above zero means nothing"
    )
    advice = "write threshold: in the metric's own unit, like 0.5, or leave it out"
    return Problem(BadEnds.slug, "The threshold has no meaning here", detail, f"{value:g}", "metric.threshold", advice)


def ends_not_worse(ends: Ends, metric: Metric, bad_sha: str) -> Problem:
    if ends.verdict == "reversed":
        return _reversed(ends, metric)
    title, advice = _NOT_WORSE[ends.verdict]
    seen = f"; a difference of {_size(ends.detectable, ends.relative)} would have been seen" if ends.detectable else ""
    return Problem(BadEnds.slug, title, f"{ends.why}{seen}", bad_sha, "metric", advice)


def _reversed(ends: Ends, metric: Metric) -> Problem:
    other = Better.LOWER if metric.better is Better.HIGHER else Better.HIGHER
    detail = f"{metric.name} is better at the bad end: {ends.why}"
    advice = f"did you mean better: {other}? Else swap good and bad"
    return Problem(BadEnds.slug, "The bad end is better", detail, str(metric.better), "metric.better", advice)


def ends_drift(numbers: Numbers) -> Problem:
    lost = len(numbers.dropped)
    detail = (
        f"each end was measured {numbers.question.runs} times and more, and the machine changed meanwhile"
        f"{f', so that {lost} of the runs do not count' if lost else ''}: {numbers.ends.why}"
    )
    advice = "keep the machine to itself (one slot, fixed clocks, resources: {cpuset: …}), or measure longer in one run"
    return Problem(BadEnds.slug, "The machine drifts while the ends are measured", detail, numbers.bad_sha, "", advice)


def end_lost(end: Probe, numbers: Numbers) -> Problem:
    """An end that was measured, and fails now."""
    times = sum(run.sha == end.sha for run in numbers.runs)
    fault = end.faults[-1] if end.faults and end.outcome is None else None
    why = fault.message if fault is not None else end.reason
    detail = (
        f"the {numbers.end(end.sha)} end {short(end.sha)} was measured {times} times before, and now it cannot be: "
        f"{why}.\n{last_lines(end)}"
    )
    told = fault.advice if fault is not None and fault.advice else f"see what changed on {end.node or 'the node'}"
    advice = f"{told}; then submit again: wheels that were built are kept"
    return Problem("lost-end", "An end cannot be measured any more", detail, end.sha, "", advice)


def why_measured(sha: str, location: Location, numbers: Numbers) -> str:
    """What an answer stands on."""
    step = next((one for one in location.steps if one.shas == (sha,)), None)
    size = f"{_changed(step, location, numbers)} at {short(sha)}; " if step is not None else ""
    return f"{size}{_confidence(location)}{_runs(numbers)}"


def _confidence(location: Location) -> str:
    sure = getattr(location.conclusion, "confidence", None)
    return f"{min(sure, SUREST) * 100:.1f} % sure after " if sure is not None else ""


def _runs(numbers: Numbers) -> str:
    commits = len({run.sha for run in numbers.runs})
    return f"{len(numbers.runs)} runs of {commits} commits, ends included"


def _changed(step: Step, location: Location, numbers: Numbers) -> str:
    if numbers.ends.shape == "spread":
        return f"{numbers.metric.name} varies more"
    return f"{numbers.metric.name} is {amounts.size(step.size, numbers.ends.relative, numbers.unit)}"


def lines(numbers: Numbers, range_: Range | None) -> Iterator[str]:
    """Further lines of a report: the ends, what else changed, and which runs do not count."""
    if not numbers.runs:
        return
    if numbers.ends.verdict == "unsure":
        yield f"The ends are measured in turn: {numbers.ends.why}."
    if numbers.ends.verdict != "differ":
        yield from _dropped(numbers)
        return
    yield from _ends(numbers)
    if range_ is not None:
        yield from _others(numbers.location(range_), numbers)
    yield from _beside(numbers)
    yield from _dropped(numbers)


def _ends(numbers: Numbers) -> Iterator[str]:
    ends, unit = numbers.ends, numbers.unit
    if ends.effect is None or ends.noise is None:
        return
    size = amounts.size(ends.effect, ends.relative, unit)
    noise = _size(ends.noise, ends.relative, unit)
    yield f"At the ends {numbers.metric.name} is {size}; one run varies by {noise}. Intervals are those of 95 %."
    if ends.shape == "spread":
        yield "The ends differ in how much the number varies, and not in its level."
    if ends.expected is not None:
        yield f"From there on a search takes about {round(ends.expected)} runs."


def _others(location: Location, numbers: Numbers) -> Iterator[str]:
    """Steps besides the largest one."""
    for step in location.steps[1:]:
        where = short(step.shas[0]) if len(step.shas) == 1 else f"one of {len(step.shas)} commits up to "
        where += short(step.shas[-1]) if len(step.shas) > 1 else ""
        yield f"Besides, {_changed(step, location, numbers)} at {where}."


def _beside(numbers: Numbers) -> Iterator[str]:
    """What the metrics that do not decide came to at the ends."""
    sides: dict[str, dict[str, list[Measurement]]] = {}
    for run in numbers.runs:
        for found in run.outcome.measurements[1:] if run.outcome is not None else ():
            if numbers.end(run.sha) and found.value is not None:
                sides.setdefault(found.name, {}).setdefault(numbers.end(run.sha), []).append(found)
    for name, side in sides.items():
        if len(side) == 2:
            yield f"Beside it, {name} is {_middle(side['good'])} at the good end and {_middle(side['bad'])} at the bad."


def _middle(found: Sequence[Measurement]) -> str:
    values = [one.value for one in found if one.value is not None]
    return f"{amounts.amount(median(values), found[0].unit)} (median of {times(len(values))})"


def _dropped(numbers: Numbers) -> Iterator[str]:
    dropped = numbers.dropped
    for why in dict.fromkeys(dropped.values()):
        count = sum(told == why for told in dropped.values())
        yield f"{count} {'run does' if count == 1 else 'runs do'} not count, since {why}."


def _size(value: float, relative: bool, unit: str = "") -> str:
    return f"{amounts.percent(value)} %" if relative else amounts.amount(value, unit)
