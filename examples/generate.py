"""Generates the example repository: `python -m examples.generate TARGET_DIR [options]`, see docs/example.md."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from examples.history import MAINTENANCE, Draft, Truth, drafts, tags, truth
from examples.options import STRETCHES, Options, OptionsError, Slower, Stretch, completed
from examples.plan import make_plan
from examples.request import request
from examples.stream import GitError, write_repository

__all__ = [
    "Commit",
    "Example",
    "GitError",
    "Options",
    "OptionsError",
    "Slower",
    "Stretch",
    "TargetError",
    "generate",
    "request",
]


class TargetError(ValueError):
    """The target folder cannot be written to as it is."""


@dataclass(frozen=True)
class Commit:
    """What is true of one commit; `examples.history.Truth` says what the words mean."""

    number: int
    sha: str
    parents: tuple[str, ...]
    subject: str
    #: Changed against the first parent.
    paths: tuple[str, ...]
    #: 1 at good; the same number means the same files below csrc/ and build_backend/.
    native_tree: int
    behaviour: str
    failure_rate: float
    slowdown: float
    less_accurate: bool


@dataclass(frozen=True)
class Example:
    """A generated repository. `commits[n]` has number n: 0 is good; those after bad are there when there is a fix."""

    path: Path
    good: str
    bad: str
    first_bad: str
    fix: str | None
    #: The tip of main, and so bad when there is no fix.
    head: str
    #: The tip of release-0.1, which branches off at good: no descendant of it is in the range.
    maintenance: str
    commits: tuple[Commit, ...]


def generate(target: Path, options: Options = Options()) -> Example:
    """Writes the repository, or nothing at all.

    Errors: OptionsError when the options cannot be met; TargetError when target is no empty or new folder; GitError.
    """
    options = completed(options)
    plan = make_plan(options)
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    facts: list[Facts] = []
    try:
        shas = write_repository(partial, noted(drafts(plan, options), options, facts), tags(options))
        partial.chmod(0o755)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial)
        raise
    return example(target, options, shas, facts)


class Facts(NamedTuple):
    draft: Draft
    truth: Truth


def check_target(target: Path) -> None:
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        what = "is not empty" if target.is_dir() else "is no folder"
        raise TargetError(f"{target} {what}: name a new folder, or an empty one")


def noted(drafts: Iterable[Draft], options: Options, facts: list[Facts]) -> Iterator[Draft]:
    """Keeps what is to be told of each commit while they pass; their trees would be too much to keep."""
    for draft in drafts:
        if draft.number >= 0:
            facts.append(Facts(draft._replace(tree={}), truth(draft.tree, options)))
        yield draft


def example(target: Path, options: Options, shas: dict[int, str], facts: list[Facts]) -> Example:
    return Example(
        path=target.resolve(),
        good=shas[0],
        bad=shas[options.commits],
        first_bad=shas[options.first_bad],
        fix=None if options.fix is None else shas[options.fix],
        head=shas[options.total],
        maintenance=shas[MAINTENANCE[-1][0]],
        commits=tuple(commit(draft, truth, shas) for draft, truth in facts),
    )


def commit(draft: Draft, truth: Truth, shas: dict[int, str]) -> Commit:
    return Commit(
        number=draft.number,
        sha=shas[draft.number],
        parents=tuple(shas[parent] for parent in draft.parents),
        subject=draft.message.partition("\n")[0],
        paths=draft.paths,
        native_tree=draft.native_tree,
        **truth._asdict(),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argument_parser()
    chosen = vars(parser.parse_args(arguments))
    target, as_json = chosen.pop("target"), chosen.pop("json")
    try:
        made = generate(target, Options(**{name: value for name, value in chosen.items() if value is not None}))
    except (OptionsError, TargetError, GitError, OSError) as error:
        sys.stderr.write(f"examples.generate: {error}\n")
        return 1 if isinstance(error, GitError | OSError) else 2
    print(json.dumps(asdict(made), default=str, indent=2) if as_json else summary(made))
    return 0


def summary(made: Example) -> str:
    lines = [f"{made.path}: {len(made.commits) - 1} commits after good"]
    names = ("good", "bad", "first_bad", "fix", "head", "maintenance")
    return "\n".join(lines + [f"{name:<12} {getattr(made, name)}" for name in names if getattr(made, name)])


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m examples.generate", description="Generates the example repository.")
    parser.add_argument("target", type=Path, help="a new folder, or an empty one")
    parser.add_argument("--json", action="store_true", help="print the truth about every commit as JSON")
    for name in ("seed", "commits", "first_bad", "native_trees", "less_accurate", "fix"):
        parser.add_argument(flag(name), type=int, metavar="N", help=HELP[name])
    for name in ("flaky", "false_bad", "merges"):
        parser.add_argument(flag(name), type=float, metavar="RATE", help=HELP[name])
    for name in STRETCHES:
        parser.add_argument(
            flag(name), type=stretch, action="append", metavar="A-B", help=f"{HELP[name]}; may be given again"
        )
    parser.add_argument(flag("slower"), type=slower, metavar="N:FACTOR", help=HELP["slower"])
    parser.add_argument(
        flag("first_bad_on_branch"), action="store_true", default=None, help=HELP["first_bad_on_branch"]
    )
    return parser


HELP = {
    "seed": "another history of the same shape (default 0)",
    "commits": "commits from good to bad (default 249)",
    "first_bad": "position of the first bad commit (default 135, or in proportion)",
    "native_trees": "distinct native trees from good to bad (default 12, or in proportion)",
    "does_not_build": "a C file does not compile",
    "does_not_install": "the wheel depends on a package that does not exist",
    "fails_otherwise": "the server dies of another exception",
    "hangs": "the server never gets ready",
    "flaky": "share of starts that fail from the first bad commit on (default 1)",
    "false_bad": "share of starts that fail before it (default 0)",
    "merges": "share of commits on side branches that are merged (default 0)",
    "first_bad_on_branch": "put the first bad commit on a side branch",
    "slower": "from this position on a token costs FACTOR times as much",
    "less_accurate": "position from which on weights are rounded worse",
    "fix": "position, after bad, of the commit that mends the failure",
}


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def stretch(text: str) -> Stretch:
    first, _, last = text.partition("-")
    return Stretch(int(first), int(last or first))


def slower(text: str) -> Slower:
    position, _, factor = text.partition(":")
    return Slower(int(position), float(factor))


if __name__ == "__main__":
    sys.exit(main())
