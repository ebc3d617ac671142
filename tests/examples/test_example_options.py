"""Options: what they do to the history, and which are refused."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from examples.generate import Example, Options, OptionsError, generate
from examples.options import completed
from tests.examples.running import git, run


@st.composite
def valid_options(draw: st.DrawFn) -> Options:
    """Whatever a user may ask for together."""
    commits = draw(st.integers(1, 60))
    free = list(range(1, commits))
    stretches = draw(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5), st.integers(0, 3)), max_size=4))
    kinds: dict[str, list[tuple[int, int]]] = {}
    for first, more, kind in stretches:
        positions = list(range(first, first + more + 1))
        if set(positions) <= set(free):
            free = [position for position in free if position not in positions]
            name = ("does_not_build", "does_not_install", "fails_otherwise", "hangs")[kind]
            kinds.setdefault(name, []).append((first, first + more))
    first_bad = draw(st.sampled_from([*free, commits]))
    others = [position for position in free if position != first_bad]
    return Options(
        seed=draw(st.integers(0, 1000)),
        commits=commits,
        first_bad=first_bad,
        flaky=draw(st.sampled_from([1.0, 0.7])),
        false_bad=draw(st.sampled_from([0.0, 0.1])),
        merges=draw(st.sampled_from([0.0, 0.2, 0.6])),
        first_bad_on_branch=draw(st.booleans()),
        less_accurate=draw(st.none() | st.sampled_from(others)) if others else None,
        fix=draw(st.none() | st.integers(commits + 1, commits + 5)),
        **{kind: tuple(stretches) for kind, stretches in kinds.items()},
    )


def ancestors(example: Example) -> dict[str, set[str]]:
    """Of each commit, itself included."""
    known: dict[str, set[str]] = {}
    for commit in example.commits:
        known[commit.sha] = {commit.sha}.union(*(known.get(parent, set()) for parent in commit.parents))
    return known


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(valid_options())
def test_any_valid_options_give_a_sound_repository_that_holds_what_they_say(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            example = generate(Path(folder) / "repository", options)
        except OptionsError as error:
            assert options.first_bad_on_branch and "no room to merge a branch" in str(error)  # noqa: PT018
            assume(False)
        assert git(example.path, "fsck", "--strict") == ""
        check_graph(example, options)
        check_truth(example, completed(options))
        check_native_trees(example, completed(options))


def check_graph(example: Example, options: Options) -> None:
    listed = git(example.path, "rev-list", "--parents", "--topo-order", "--reverse", f"{example.good}..{example.head}")
    parents = {line.split()[0]: tuple(line.split()[1:]) for line in listed.split("\n")}
    assert parents == {commit.sha: commit.parents for commit in example.commits[1:]}
    assert int(git(example.path, "rev-list", "--count", f"{example.good}..{example.bad}")) == options.commits
    main = git(example.path, "rev-list", "--first-parent", f"{example.good}..{example.bad}").split()
    assert (example.first_bad in main) is not options.first_bad_on_branch


def check_truth(example: Example, options: Options) -> None:
    """Positions mean the same as ancestry, whatever the shape."""
    stretches = {
        number: kind for kind, _, stretch in options.stretches() for number in range(stretch.first, stretch.last + 1)
    }
    above = ancestors(example)
    for commit in example.commits:
        fixed = example.fix in above[commit.sha]
        broken = example.first_bad in above[commit.sha]
        rate = 0 if fixed else options.flaky if broken else options.false_bad
        usual = {0: "ok", 1: "fails"}.get(rate, "flaky")
        assert commit.behaviour == stretches.get(commit.number, usual)
        assert commit.failure_rate == (0 if commit.number in stretches else rate)
        assert commit.less_accurate == (options.less_accurate is not None and commit.number >= options.less_accurate)


def check_native_trees(example: Example, options: Options) -> None:
    names = [f"{commit.sha}:{folder}" for commit in example.commits for folder in ("csrc", "build_backend")]
    trees = git(example.path, "rev-parse", *names).split()
    pairs = list(zip(trees[::2], trees[1::2], strict=True))
    numbers = [commit.native_tree for commit in example.commits]
    assert len(set(pairs)) == len(set(numbers)) == len(set(zip(pairs, numbers, strict=True))) == options.native_trees


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_merges_bring_about_the_share_of_side_commits_that_is_asked_for(share: float, target: Path) -> None:
    example = generate(target, Options(merges=share))
    first_parents = int(git(target, "rev-list", "--count", "--first-parent", f"{example.good}..{example.bad}"))
    assert abs((249 - first_parents) / 249 - share) < 0.05
    assert int(git(target, "rev-list", "--count", "--merges", example.bad)) > 5


def test_a_first_bad_commit_on_a_branch_is_reached_through_a_merge(target: Path) -> None:
    example = generate(target, Options(merges=0.3, first_bad_on_branch=True))
    main = git(target, "rev-list", "--first-parent", "--reverse", f"{example.good}..{example.bad}").split()
    behaviour = {commit.sha: commit.behaviour for commit in example.commits}
    through = next(sha for sha in main if behaviour[sha] == "fails")
    assert example.first_bad not in main
    assert len(git(target, "rev-list", "--parents", "-1", through).split()) == 3


def test_stretches_of_one_kind_may_follow_each_other(target: Path) -> None:
    options = Options(commits=9, native_trees=5, first_bad=9, does_not_build=((2, 3), (4, 4), (6, 6)), hangs=((5, 5),))
    with pytest.raises(OptionsError, match="native_trees: 5 is too few for does_not_build, ask for 6 or more"):
        generate(target, options)
    kinds = [commit.behaviour for commit in generate(target, Options(**{**vars(options), "native_trees": 6})).commits]
    broken = "does_not_build"
    assert kinds == ["ok", "ok", broken, broken, broken, "hangs", broken, "ok", "ok", "fails"]


def test_main_goes_on_beyond_the_fix(zoo: Example) -> None:
    assert zoo.fix == zoo.commits[16].sha
    assert zoo.head == zoo.commits[36].sha == zoo.commits[-1].sha
    assert [commit.behaviour for commit in zoo.commits[14:18]] == ["fails", "fails", "ok", "ok"]
    assert git(zoo.path, "rev-parse", "main", "v0.2.0").split() == [zoo.head, zoo.bad]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--commits", "0"], "commits: 0 is out of range, choose 1 to 200000"),
        (["--first-bad", "250"], "first_bad: 250 is out of range, choose 1 to 249"),
        (["--first-bad", "-3"], "first_bad: -3 is out of range"),
        (["--native-trees", "300"], "native_trees: 300 is too many, only"),
        (["--native-trees", "2", "--does-not-build", "4-5"], "native_trees: 2 is too few for does_not_build"),
        (["--hangs", "249-249"], "hangs: 249-249 does not lie between good and bad, choose FIRST-LAST from 1 to 248"),
        (["--hangs", "9-8"], "hangs: 9-8 does not lie between good and bad"),
        (["--hangs", "9-20", "--does-not-build", "20-21"], "does_not_build: 20-21 overlaps hangs: 9-20"),
        (["--hangs", "135-136"], "hangs: position 135 is already that of first_bad, choose another"),
        (["--slower", "8:2", "--less-accurate", "8"], "less_accurate: position 8 is already that of slower"),
        (["--slower", "0:2"], "slower: 0 is out of range"),
        (["--slower", "5:0.5"], "slower: factor: 0.5 is out of range, choose 1 to 100"),
        (["--fix", "200"], "fix: 200 is not after bad, which is at 249"),
        (["--flaky", "1.5"], "flaky: 1.5 is out of range, choose 0 to 1"),
        (["--flaky", "0.2", "--false-bad", "0.2"], "must be above false_bad"),
        (["--merges", "0.9"], "merges: 0.9 is out of range, choose 0 to 0.6"),
        (["--first-bad", "249", "--first-bad-on-branch"], "first_bad_on_branch: no room to merge a branch"),
        (["--hangs", "five"], "argument --hangs"),
    ],
)
def test_options_that_cannot_be_met_are_refused_with_the_reason(
    arguments: list[str], message: str, target: Path
) -> None:
    done = run(sys.executable, "-m", "examples.generate", target, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(target.parent.iterdir()) == []
