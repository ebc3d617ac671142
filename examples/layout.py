"""Which commit has which parents: a line, or a line with side branches that are merged again."""

from collections.abc import Set
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.dice import Dice
from examples.options import Options, OptionsError

MAIN = 0
#: Bounds on how many commits lie between the start of a group of branches and its last merge.
SHORTEST_GROUP, LONGEST_GROUP = 3, 14
MAX_OPEN_BRANCHES = 3
SIDE_SHARE = 0.75


class Place(NamedTuple):
    """A commit's place in the history; numbers count from good, which is 0."""

    number: int
    parents: tuple[int, ...]
    #: 0 is main; side branches count up.
    lane: int

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


@dataclass
class Growth:
    """The history so far."""

    places: list[Place] = field(default_factory=list)
    main: int = 0
    #: The newest commit of each open side branch.
    open: dict[int, int] = field(default_factory=dict)
    lanes: int = 0
    side_commits: int = 0

    def add(self, number: int, parents: tuple[int, ...], lane: int) -> None:
        self.places.append(Place(number, parents, lane))

    def on_main(self, number: int) -> None:
        self.add(number, (self.main,), MAIN)
        self.main = number

    def on_branch(self, number: int, lane: int | None) -> None:
        """On that branch, or on a new one."""
        if lane is None:
            self.lanes += 1
            lane = self.lanes
        self.add(number, (self.open.get(lane, self.main),), lane)
        self.open[lane] = number
        self.side_commits += 1

    def merge(self, number: int, lane: int) -> None:
        self.add(number, (self.main, self.open.pop(lane)), MAIN)
        self.main = number


def lay_out(options: Options, kept_on_main: Set[int], dice: Dice) -> list[Place]:
    """Places 1 to `options.total`, parents before children; all commits before one that is kept on main lead to it.

    Errors: OptionsError when first_bad_on_branch leaves no room for a branch.
    """
    forced = forced_group(options, kept_on_main) if options.first_bad_on_branch else None
    growth = Growth()
    number = 1
    while number <= options.total:
        last = forced[1] if forced and number == forced[0] else None
        if last is None and wants_branches(growth, options, number, dice):
            last = last_of_group(number, options, kept_on_main, forced, dice)
        if last is None:
            growth.on_main(number)
            number += 1
        else:
            grow_group(growth, number, last, options, dice)
            number = last + 1
    return growth.places


def forced_group(options: Options, kept_on_main: Set[int]) -> tuple[int, int]:
    """The positions of the branch that holds the first bad commit: some before, it, some after and the merge."""
    first = last = options.first_bad
    while first > max(1, options.first_bad - 3) and first - 1 not in kept_on_main:
        first -= 1
    while last < options.first_bad + 5 and last + 1 not in kept_on_main and last + 1 < options.commits:
        last += 1
    if options.first_bad in kept_on_main or last == options.first_bad:
        raise OptionsError(
            f"first_bad_on_branch: no room to merge a branch after first_bad ({options.first_bad}), "
            f"leave the position after it free and below bad ({options.commits})"
        )
    return first, last


def wants_branches(growth: Growth, options: Options, number: int, dice: Dice) -> bool:
    return growth.side_commits < options.merges * number and dice.chance(0.7)


def last_of_group(
    number: int, options: Options, kept_on_main: Set[int], forced: tuple[int, int] | None, dice: Dice
) -> int | None:
    """Where a group that begins here ends; None when there is no room for one."""
    wanted = number + dice.between(SHORTEST_GROUP, LONGEST_GROUP) - 1
    end = number
    while end <= min(wanted, options.total) and end not in kept_on_main and not (forced and end == forced[0]):
        end += 1
    return end - 1 if end - number >= 2 else None


def grow_group(growth: Growth, first: int, last: int, options: Options, dice: Dice) -> None:
    """Side branches begin, go on beside main, and are all merged at the end."""
    for number in range(first, last + 1):
        holds_first_bad = options.first_bad_on_branch and number == options.first_bad
        # Every open branch needs a position for its merge, and the first bad commit one of its own.
        reserved = len(growth.open) + (options.first_bad_on_branch and number < options.first_bad <= last)
        spare = last - number + 1 - reserved
        if holds_first_bad or (spare and dice.chance(SIDE_SHARE)):
            grow_branch(growth, number, spare, dice)
        elif growth.open and (not spare or dice.chance(0.3)):
            growth.merge(number, dice.pick(list(growth.open)))
        else:
            growth.on_main(number)


def grow_branch(growth: Growth, number: int, spare: int, dice: Dice) -> None:
    """On a new branch where one more can still be merged, else on an open one, else on main."""
    lanes = list(growth.open)
    if spare >= 2 and len(lanes) < MAX_OPEN_BRANCHES and (not lanes or dice.chance(0.3)):
        growth.on_branch(number, None)
    elif lanes:
        growth.on_branch(number, dice.pick(lanes))
    else:
        growth.on_main(number)
