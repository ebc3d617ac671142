"""The shape of a generated history, told by git itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from examples.generate import Example, Options, generate
from examples.slots import TRACE_FILES
from tests.examples.running import git, run

#: Change them when the template or the generator changes on purpose, and then in docs/example.md too.
GOOD = "d0c5f97c6b4b8cb7ac8a53b51c07dcaeb071878f"
BAD = "1abfcaff0bacb0ffc60356e0bec7eddff0240174"
FIRST_BAD = "a674ed17896d7173a5a819d2c3a2cf3543b53872"


def in_range(example: Example) -> list[str]:
    return git(example.path, "rev-list", "--reverse", f"{example.good}..{example.bad}").split()


def native_tree(example: Example, commit: str) -> tuple[str, ...]:
    return tuple(git(example.path, "rev-parse", f"{commit}:csrc", f"{commit}:build_backend").split())


def generate_by_command(target: Path, *options: str, env: dict[str, str] | None = None) -> dict[str, object]:
    done = run(sys.executable, "-m", "examples.generate", target, "--json", *options, env=env or {})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_default_example_is_the_same_everywhere(example: Example) -> None:
    assert (example.good, example.bad, example.first_bad) == (GOOD, BAD, FIRST_BAD)


def test_the_documentation_shows_these_commits() -> None:
    text = (Path(__file__).parents[2] / "docs" / "example.md").read_text()
    assert all(f" {sha}\n" in text for sha in (GOOD, BAD, FIRST_BAD))


def test_configuration_and_environment_of_the_machine_change_no_sha(tmp_path: Path, target: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[core]\n autocrlf = true\n[commit]\n gpgsign = true\n[i18n]\n commitEncoding = latin1\n"
        "[init]\n defaultBranch = trunk\n templateDir = /nowhere\n[user]\n name = Someone Else\n"
    )
    hostile = {"GIT_AUTHOR_NAME": "Someone", "GIT_DIR": "/nowhere", "GIT_DEFAULT_HASH": "sha256", "TZ": "Asia/Tokyo"}
    locale = {"LC_ALL": "C", "PYTHONHASHSEED": "1", "HOME": str(tmp_path)}
    assert generate_by_command(target, env=hostile | locale)["bad"] == BAD


def test_another_seed_is_another_history_of_the_same_shape(target: Path) -> None:
    other = generate(target, Options(seed=1))
    assert other.bad != BAD
    assert len(other.commits) == 250
    assert {commit.native_tree for commit in other.commits} == set(range(1, 13))


def test_the_range_is_a_line_of_249_commits(example: Example) -> None:
    commits = in_range(example)
    assert commits == [commit.sha for commit in example.commits[1:]]
    assert len(commits) == 249
    assert git(example.path, "rev-list", "--merges", "--count", example.bad) == "0"


def test_the_135th_commit_is_the_first_bad_one(example: Example) -> None:
    assert in_range(example)[134] == example.first_bad
    assert [commit.behaviour for commit in example.commits] == ["ok"] * 135 + ["fails"] * 115


def test_the_range_holds_12_native_trees(example: Example) -> None:
    trees = [native_tree(example, commit.sha) for commit in example.commits]
    assert len(set(trees)) == 12
    numbers = {tree: commit.native_tree for tree, commit in zip(trees, example.commits, strict=True)}
    assert [numbers[tree] for tree in trees] == [commit.native_tree for commit in example.commits]


def test_19_commits_touch_the_innermost_files_of_the_traceback(example: Example) -> None:
    touching = git(example.path, "rev-list", f"{example.good}..{example.bad}", "--", *TRACE_FILES).split()
    assert len(touching) == 19
    assert example.first_bad in touching


def test_commits_say_truly_which_paths_they_change(example: Example) -> None:
    log = git(example.path, "log", "--reverse", "--format=%x00", "--name-only", f"{example.good}..{example.bad}")
    told = [sorted(part.split()) for part in log.split("\0")[1:]]
    assert told == [list(commit.paths) for commit in example.commits[1:]]
    sizes = [len(paths) for paths in told]
    assert min(sizes) == 1
    assert max(sizes) > 40
    assert 80 < sizes.count(1) < 110


def test_subjects_hold_what_breaks_careless_parsers(example: Example) -> None:
    subjects = git(example.path, "log", "--reverse", "--format=%s", f"{example.good}..{example.bad}").split("\n")
    assert subjects == [commit.subject for commit in example.commits[1:]]
    together = "\n".join(subjects)
    assert all(character in together for character in "|\"'`\\&;—模")
    assert not any(word in example.commits[135].subject.lower() for word in ("captur", "graph", "specul", "decode"))


def test_authors_and_dates_vary_and_commit_dates_only_grow(example: Example) -> None:
    log = git(example.path, "log", "--reverse", "--format=%an|%at|%ct", f"{example.good}..{example.bad}")
    names, written, committed = zip(*(line.split("|") for line in log.split("\n")), strict=True)
    assert len(set(names)) > 15
    assert list(map(int, committed)) == sorted(map(int, committed))
    assert list(map(int, written)) != sorted(map(int, written))


def test_tags_and_branches_lead_to_the_ends(example: Example) -> None:
    assert git(example.path, "rev-parse", "v0.1.0^{commit}", "v0.2.0^{commit}").split() == [example.good, example.bad]
    assert git(example.path, "cat-file", "-t", "v0.1.0") == "tag"
    assert git(example.path, "rev-parse", "main", "release-0.1").split() == [example.head, example.maintenance]
    assert git(example.path, "merge-base", example.maintenance, example.bad) == example.good


def test_the_repository_is_whole_and_main_is_checked_out(example: Example) -> None:
    assert git(example.path, "fsck", "--strict") == ""
    assert git(example.path, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(example.path, "status", "--porcelain", "--ignored") == ""
    for commit in (example.good, example.bad):
        assert 60 <= len(git(example.path, "ls-tree", "-r", "--name-only", commit).split("\n")) <= 90


def test_the_first_bad_commit_reverts_cleanly_on_bad(example: Example, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(example.path), "clone")
    clone = tmp_path / "clone"
    git(clone, "revert", "--no-commit", example.first_bad)
    assert git(clone, "diff", "--name-only", "HEAD").split() == list(example.commits[135].paths)


@pytest.mark.parametrize("what", ["file", "full folder", "link to nowhere"])
def test_a_target_that_is_in_use_is_refused_and_left_alone(what: str, target: Path) -> None:
    if what == "file":
        target.write_text("mine")
    elif what == "link to nowhere":
        target.symlink_to("nowhere")
    else:
        target.mkdir()
        (target / "mine").touch()
    done = run(sys.executable, "-m", "examples.generate", target)
    assert done.returncode == 2
    assert str(target) in done.stderr
    assert "name a new folder, or an empty one" in done.stderr
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_empty_folder_is_filled(target: Path) -> None:
    target.mkdir()
    assert git(generate(target, Options(commits=3)).path, "rev-list", "--count", "HEAD") == "7"


def test_a_crash_of_git_leaves_nothing_behind(tmp_path: Path, target: Path) -> None:
    """A git that loses the rest of the stream, as one does that is killed."""
    real = run("sh", "-c", "command -v git").stdout.strip()
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n[ "$1" = fast-import ] || exec {real} "$@"\nhead -c 99999 | {real} "$@"\n')
    wrapper.chmod(0o755)
    target = tmp_path / "beside" / "repository"
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    done = run(sys.executable, "-m", "examples.generate", target, env={"PATH": path})
    assert done.returncode == 1
    assert "git fast-import failed with status 128" in done.stderr
    assert list(target.parent.iterdir()) == []
