"""What a generated repository is to hold, and whether that can be."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

#: Stands for: as in the real case that the example is modelled on, whose shape is below.
IN_PROPORTION = 0
COMMITS, FIRST_BAD, NATIVE_TREES, TRACE_COMMITS = 249, 135, 12, 19
#: Commits on main after the fix, when there is one.
COMMITS_AFTER_FIX = 20
MAX_COMMITS = 200_000
MAX_MERGES = 0.6

STRETCHES = ("does_not_build", "does_not_install", "fails_otherwise", "hangs")


class OptionsError(ValueError):
    """Options that contradict each other or the range, with what to do instead."""


class Stretch(NamedTuple):
    """Commits from the first to the last position, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


class Slower(NamedTuple):
    """From this position on, a token costs that many times as much."""

    position: int
    factor: float


@dataclass(frozen=True)
class Options:
    """Positions count commits after good: 1 is the first, `commits` is bad. Stretches are pairs (first, last)."""

    seed: int = 0
    commits: int = COMMITS
    first_bad: int = IN_PROPORTION
    native_trees: int = IN_PROPORTION
    does_not_build: tuple[Stretch, ...] = ()
    does_not_install: tuple[Stretch, ...] = ()
    fails_otherwise: tuple[Stretch, ...] = ()
    hangs: tuple[Stretch, ...] = ()
    flaky: float = 1.0
    false_bad: float = 0.0
    merges: float = 0.0
    first_bad_on_branch: bool = False
    slower: Slower | None = None
    less_accurate: int | None = None
    fix: int | None = None

    @property
    def total(self) -> int:
        """Commits after good, those after bad included."""
        return self.commits if self.fix is None else self.fix + COMMITS_AFTER_FIX

    def stretches(self) -> list[tuple[str, int, Stretch]]:
        """Kind, index within its kind, and positions of every stretch, in order of position."""
        found = [(kind, index, stretch) for kind in STRETCHES for index, stretch in enumerate(getattr(self, kind))]
        return sorted(found, key=lambda item: item[2])


def completed(options: Options) -> Options:
    """Fills in the defaults. Raises OptionsError when the options cannot all be met."""
    check_number("commits", options.commits, 1, MAX_COMMITS)
    filled = replace(
        options,
        first_bad=options.first_bad or in_proportion(options, FIRST_BAD),
        native_trees=options.native_trees or default_native_trees(options),
        does_not_build=as_stretches(options.does_not_build),
        does_not_install=as_stretches(options.does_not_install),
        fails_otherwise=as_stretches(options.fails_otherwise),
        hangs=as_stretches(options.hangs),
        slower=None if options.slower is None else Slower(*options.slower),
    )
    check_rates(filled)
    check_positions(filled)
    check_stretches(filled)
    return filled


def as_stretches(pairs: Iterable[tuple[int, int]]) -> tuple[Stretch, ...]:
    return tuple(Stretch(*pair) for pair in pairs)


def in_proportion(options: Options, of_the_real_case: int) -> int:
    return max(1, round(of_the_real_case * options.commits / COMMITS))


def default_native_trees(options: Options) -> int:
    return max(in_proportion(options, NATIVE_TREES), least_native_trees(options))


def least_native_trees(options: Options) -> int:
    """A commit that does not build brings a native tree, and so does the one that mends it."""
    return 1 + len({end for first, last in options.does_not_build for end in (first, last + 1)})


def check_rates(options: Options) -> None:
    check_number("flaky", options.flaky, 0, 1)
    check_number("false_bad", options.false_bad, 0, 1)
    check_number("merges", options.merges, 0, MAX_MERGES)
    if options.flaky <= options.false_bad:
        raise OptionsError(
            f"flaky: the rate from the first bad commit on ({options.flaky}) must be above false_bad, "
            f"the rate before it ({options.false_bad})"
        )
    least = least_native_trees(options)
    if options.native_trees < least:
        raise OptionsError(
            f"native_trees: {options.native_trees} is too few for does_not_build, ask for {least} or more"
        )


def check_positions(options: Options) -> None:
    check_number("first_bad", options.first_bad, 1, options.commits)
    if options.slower is not None:
        check_number("slower", options.slower.position, 1, options.commits)
        check_number("slower: factor", options.slower.factor, 1, 100)
    if options.less_accurate is not None:
        check_number("less_accurate", options.less_accurate, 1, options.commits)
    if options.fix is not None and not options.commits < options.fix <= MAX_COMMITS:
        raise OptionsError(
            f"fix: {options.fix} is not after bad, which is at {options.commits}: "
            f"the fix comes later on main, at {options.commits + 1} or above"
        )
    check_different(options)


def check_different(options: Options) -> None:
    taken: dict[int, str] = {}
    slower = options.slower.position if options.slower else None
    for name, position in (
        ("first_bad", options.first_bad),
        ("slower", slower),
        ("less_accurate", options.less_accurate),
        *((kind, stretch.first) for kind, _, stretch in options.stretches()),
    ):
        if position is not None and taken.setdefault(position, name) != name:
            raise OptionsError(f"{name}: position {position} is already that of {taken[position]}, choose another")


def check_stretches(options: Options) -> None:
    before: tuple[str, Stretch] | None = None
    for kind, _, stretch in options.stretches():
        if not 1 <= stretch.first <= stretch.last < options.commits:
            raise OptionsError(
                f"{kind}: {stretch} does not lie between good and bad, "
                f"choose FIRST-LAST from 1 to {options.commits - 1}"
            )
        if before and stretch.first <= before[1].last:
            raise OptionsError(f"{kind}: {stretch} overlaps {before[0]}: {before[1]}")
        before = (kind, stretch)


def check_number(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise OptionsError(f"{name}: {value} is out of range, choose {least} to {most}")
