"""What each commit is there for: the behaviours that the options ask for, and the shape of the history around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from examples.dice import Dice
from examples.layout import MAIN, Place, lay_out
from examples.options import TRACE_COMMITS, Options, OptionsError, in_proportion

#: From this many commits on, one of them sweeps through most files.
COMMITS_WITH_SWEEP = 100
SWEEP_AT = 0.41
COMMITS_WITH_VERSIONS = 5


class Job(NamedTuple):
    """A behaviour that a commit begins or ends."""

    kind: str
    #: For stretches: whether it ends here, and how many of its kind came before.
    ends: bool = False
    nth: int = 0


@dataclass(frozen=True)
class Plan:
    places: list[Place]
    jobs: Mapping[int, list[Job]]
    native: frozenset[int]
    trace: frozenset[int]
    sweep: int | None
    #: Version that a commit sets, by number.
    versions: Mapping[int, str]


def make_plan(options: Options) -> Plan:
    """Errors: OptionsError when there are too few commits for what is asked."""
    jobs = jobs_by_number(options)
    places = lay_out(options, kept_on_main(options, jobs), Dice(options.seed, "layout"))
    ordinary = [place for place in places if not place.is_merge and place.number not in jobs]
    native = choose_native(options, jobs, [place for place in ordinary if place.lane == MAIN])
    free = [place.number for place in ordinary if place.number <= options.commits and place.number not in native]
    versions = choose_versions(options, free)
    free = [number for number in free if number not in versions]
    sweep = (
        min(free, key=lambda number: abs(number - SWEEP_AT * options.commits)) if wants_sweep(options, free) else None
    )
    return Plan(places, jobs, native, choose_trace(options, free, sweep), sweep, versions)


def jobs_by_number(options: Options) -> dict[int, list[Job]]:
    jobs: dict[int, list[Job]] = {}
    for kind, index, stretch in options.stretches():
        jobs.setdefault(stretch.first, []).append(Job(kind, False, index))
        jobs.setdefault(stretch.last + 1, []).append(Job(kind, True, index))
    slower = options.slower.position if options.slower else None
    for kind, position in (
        ("first_bad", options.first_bad),
        ("slower", slower),
        ("less_accurate", options.less_accurate),
        ("fix", options.fix),
    ):
        if position is not None:
            jobs.setdefault(position, []).append(Job(kind))
    return jobs


def kept_on_main(options: Options, jobs: Mapping[int, list[Job]]) -> set[int]:
    """Commits with a job, and bad, have nothing beside them, so that a lower position means an ancestor."""
    kept = {options.commits, *jobs}
    if options.first_bad_on_branch and jobs[options.first_bad] == [Job("first_bad")]:
        kept.discard(options.first_bad)
    return kept


def choose_native(options: Options, jobs: Mapping[int, list[Job]], candidates: list[Place]) -> frozenset[int]:
    asked = {number for number, its_jobs in jobs.items() if any(job.kind == "does_not_build" for job in its_jobs)}
    free = [place.number for place in candidates if place.number <= options.commits]
    wanted = options.native_trees - 1 - len(asked)
    if wanted > len(free):
        raise OptionsError(
            f"native_trees: {options.native_trees} is too many, only {len(free) + len(asked)} commits on main "
            f"are free to change native code: ask for {len(free) + len(asked) + 1} or fewer"
        )
    return frozenset(asked | set(Dice(options.seed, "native").sample(free, wanted)))


def choose_versions(options: Options, free: list[int]) -> dict[int, str]:
    if options.commits < COMMITS_WITH_VERSIONS:
        return {}
    versions = {1: "0.2.0.dev0", options.commits: "0.2.0"}
    return {number: version for number, version in versions.items() if number in free}


def wants_sweep(options: Options, free: list[int]) -> bool:
    return options.commits >= COMMITS_WITH_SWEEP and bool(free)


def choose_trace(options: Options, free: list[int], sweep: int | None) -> frozenset[int]:
    """Those that touch the traceback's files beside the first bad commit and the sweep."""
    wanted = in_proportion(options, TRACE_COMMITS) - 1 - (sweep is not None)
    candidates = [number for number in free if number != sweep]
    return frozenset(Dice(options.seed, "trace").sample(candidates, wanted))
