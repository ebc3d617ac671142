"""From a plan to commits, parents before children, and the truth about each of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from examples.changes import Change, change, merge_subject
from examples.dice import Dice
from examples.layout import MAIN, Place
from examples.options import Options
from examples.plan import Plan
from examples.tree import Tree, changed_paths, first_tree, merged, slot_value, with_slot
from examples.words import FIRST_COMMIT_AT, MAINTAINERS, Clock, Stamp, message

#: Commits before good, which is the last of them, with the paths that are not there yet; numbers are 0 and below.
BEFORE = (
    ("Begin", ("docs/", ".ci/", "CHANGELOG.md")),
    ("[Doc] Say what this is", (".ci/", "CHANGELOG.md")),
    ("[CI] Build and test", ("CHANGELOG.md",)),
    ("[Release] v0.1.0", ()),
)
#: A release branch from good; its numbers are out of the way of all others.
MAINTENANCE = ((-101, "[Release] v0.1.1.dev0", "0.1.1.dev0"), (-102, "[Release] v0.1.1", "0.1.1"))


class Draft(NamedTuple):
    """A commit before it has a SHA."""

    number: int
    parents: tuple[int, ...]
    branch: str
    message: str
    author: Stamp
    committer: Stamp
    #: Changes against the first parent.
    paths: tuple[str, ...]
    tree: Tree
    native_tree: int


class Tag(NamedTuple):
    name: str
    number: int
    #: None makes it a lightweight tag.
    tagger: Stamp | None = None


class Truth(NamedTuple):
    """What `tinyserve serve` does at a commit when it is given two speculative tokens."""

    #: ok, fails, flaky, does_not_build, does_not_install, fails_otherwise or hangs.
    behaviour: str
    #: The share of starts that show the failure that the example is about.
    failure_rate: float
    #: What a token costs, as a multiple of its cost at good.
    slowdown: float
    less_accurate: bool


@dataclass
class Walk:
    """What later commits need of earlier ones."""

    trees: dict[int, Tree]
    native_trees: dict[int, int]
    #: For each side branch, the tree that it began from.
    bases: dict[int, Tree]
    lanes: dict[int, int]
    newest_native_tree: int = 1


def drafts(plan: Plan, options: Options) -> Iterator[Draft]:
    """Those before good, a release branch, then the plan's."""
    clock = Clock(Dice(options.seed, "clock"))
    good = good_tree(options)
    yield from drafts_before_good(good, options, clock)
    yield from maintenance_drafts(good, options, clock)
    walk = Walk({0: good}, {0: 1}, {}, {0: MAIN})
    last_use = {parent: place.number for place in plan.places for parent in place.parents}
    for place in plan.places:
        yield next_draft(place, walk, plan, options, clock)
        for parent in place.parents:
            if last_use[parent] == place.number:
                del walk.trees[parent]


def next_draft(place: Place, walk: Walk, plan: Plan, options: Options, clock: Clock) -> Draft:
    before = walk.trees[place.parents[0]]
    walk.lanes[place.number] = place.lane
    walk.bases.setdefault(place.lane, before)
    if place.is_merge:
        base = walk.bases[walk.lanes[place.parents[1]]]
        what = Change(merged(base, before, walk.trees[place.parents[1]]), merge_subject(place.number, options))
    else:
        what = change(place.number, before, plan, options)
    walk.trees[place.number] = what.tree
    native_tree = walk.native_trees[place.parents[0]]
    if place.number in plan.native:
        walk.newest_native_tree = native_tree = walk.newest_native_tree + 1
    walk.native_trees[place.number] = native_tree
    return draft(place.number, place.parents, what, before, native_tree, options, clock, is_merge=place.is_merge)


def draft(
    number: int,
    parents: tuple[int, ...],
    what: Change,
    before: Tree,
    native_tree: int,
    options: Options,
    clock: Clock,
    branch: str = "main",
    is_merge: bool = False,
) -> Draft:
    dice = Dice(options.seed, "message", number)
    author, committer = clock.next_stamps(dice)
    text = f"{what.subject}\n" if is_merge else message(what.subject, what.body, author.person, number, dice)
    paths = tuple(changed_paths(before, what.tree))
    return Draft(number, parents, branch, text, author, committer, paths, what.tree, native_tree)


def good_tree(options: Options) -> Tree:
    tree = first_tree()
    return with_slot(tree, "decode_sizes", str(options.false_bad)) if options.false_bad else tree


def drafts_before_good(good: Tree, options: Options, clock: Clock) -> Iterator[Draft]:
    """The files of good arrive in a few commits."""
    before: Tree = {}
    for number, (subject, later) in enumerate(BEFORE, 1 - len(BEFORE)):
        tree = {path: facts for path, facts in good.items() if not path.startswith(later)}
        parents = (number - 1,) if before else ()
        yield draft(number, parents, Change(tree, subject), before, 1, options, clock)
        before = tree


def maintenance_drafts(good: Tree, options: Options, clock: Clock) -> Iterator[Draft]:
    parent, before = 0, good
    for number, subject, version in MAINTENANCE:
        tree = with_slot(before, "version", version)
        yield draft(number, (parent,), Change(tree, subject), before, 1, options, clock, branch="release-0.1")
        parent, before = number, tree


def truth(tree: Tree, options: Options) -> Truth:
    """Told from the files themselves, and so true on any history."""
    stretch = stretch_behaviour(tree)
    rate = 0.0 if stretch else failure_rate(slot_value(tree, "decode_sizes"))
    behaviour = stretch or ("ok" if rate == 0 else "fails" if rate == 1 else "flaky")
    slowdown = (400 + int(slot_value(tree, "copy_us"))) / 500
    return Truth(behaviour, rate, slowdown, slot_value(tree, "rounding") == "int")


def stretch_behaviour(tree: Tree) -> str | None:
    folder = "tinyserve/model_executor"
    keys = (slot_value(tree, "rope_key", f"{folder}/{name}.py") for name in ("registry", "loader"))
    macros = (slot_value(tree, "macro", f"csrc/{name}") for name in ("tinyserve.h", "graphs.c"))
    if len(set(macros)) > 1:
        return "does_not_build"
    if slot_value(tree, "dependencies"):
        return "does_not_install"
    if slot_value(tree, "arrivals"):
        return "hangs"
    return "fails_otherwise" if len(set(keys)) > 1 else None


def failure_rate(decode_sizes: str) -> float:
    known = {"each": 0.0, "rounded": 0.0, "shared": 1.0}
    return known[decode_sizes] if decode_sizes in known else float(decode_sizes)


def tags(options: Options) -> list[Tag]:
    """Those of releases are objects of their own, as many projects have them; that of bad is a plain name."""
    tagger = Stamp(MAINTAINERS, FIRST_COMMIT_AT)
    return [Tag("v0.1.0", 0, tagger), Tag("v0.1.1", MAINTENANCE[-1][0], tagger), Tag("v0.2.0", options.commits)]
