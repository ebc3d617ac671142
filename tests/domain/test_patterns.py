"""Patterns that choose files, as git's own in .gitignore do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.patterns import BadPattern, Patterns, parse
from tests.repositories import QUIET, git

PARTS = st.sampled_from(["a", "b.c", "csrc", "*", "**", "*.c", "c?rc", "[ab]", "x y"])
LINES = st.builds(
    lambda begin, parts, end: begin + "/".join(parts) + end,
    st.sampled_from(["", "/"]),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
).filter(lambda line: not line.endswith("**/"))
PATHS = st.lists(st.sampled_from(["a", "b.c", "csrc", "crrc", "x y", "d"]), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repository")
    git(path, "init", "--quiet")
    return path


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(LINES, min_size=1, max_size=3), paths=st.lists(PATHS, min_size=1, max_size=8, unique=True))
def test_what_git_would_ignore_is_chosen(repository: Path, lines: list[str], paths: list[str]) -> None:
    (repository / "ignored").write_text("".join(f"{line}\n" for line in lines))
    excludes = "core.excludesFile=ignored"
    command = ["git", "-C", repository, "-c", excludes, "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, input="\0".join(paths).encode(), capture_output=True, env=QUIET)
    assert {path for path in paths if parse(lines).says(path)} == set(done.stdout.decode().split("\0")) - {""}


@given(lines=st.lists(LINES, min_size=1, max_size=3), folder=PATHS, below=PATHS)
def test_a_folder_out_of_reach_holds_nothing_that_is_chosen(lines: list[str], folder: str, below: str) -> None:
    patterns = Patterns(tuple(lines))
    if not patterns.reach(folder):
        assert not patterns.says(f"{folder}/{below}")


@pytest.mark.parametrize(
    ("lines", "folder", "reached"),
    [
        (["csrc/**"], "csrc", True),
        (["csrc/**"], "csrc/deep", True),
        (["csrc/deep/**"], "csrc", True),
        (["csrc/**"], "tests", False),
        (["/csrc"], "tests/csrc", False),
        (["csrc"], "tests", True),
        (["*.cu"], "tests", True),
        (["*.cu", "!tests/**"], "tests", True),
        (["csrc/**", "!tests/**"], "tests", False),
    ],
)
def test_what_a_pattern_can_reach(lines: list[str], folder: str, reached: bool) -> None:
    assert parse(lines).reach(folder) is reached


def test_a_folder_is_taken_out_by_all_that_it_holds() -> None:
    patterns = parse(["*", "!tests/**", "!*.md"])
    assert [bool(patterns.says(path)) for path in ("tests/a/b", "x/tests/a", "a.md", "x.py")] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("/", "empty"),
        ("!", "empty"),
        ("# csrc", "comment"),
        ("../csrc", "leads out"),
        ("a/../../b", "leads out"),
        ("/usr/include/**", "leads out"),
        ("~/csrc", "leads out"),
        ("./csrc/**", "can match nothing"),
        ("csrc//a", "can match nothing"),
        ("!tests/", "takes no file out"),
        ("!csrc/**", "takes files out where"),
        ("csrc/**/", "folders alone"),
        ("csrc/[a", "no pattern"),
        ("csrc/[z-a]", "no pattern"),
        ("csrc\\", "no pattern"),
        ("a\nb", "single line"),
        ("a\0b", "single line"),
        ("x" * 501, "single line"),
        ("*a*a*a*a*a*b", "wildcards"),
    ],
)
def test_a_pattern_that_is_not_what_it_seems_is_refused(line: str, said: str) -> None:
    with pytest.raises(BadPattern, match=said) as caught:
        parse([line])
    assert caught.value.advice
    assert (caught.value.index, caught.value.pattern) == (0, line)


def test_the_pattern_that_is_refused_is_told() -> None:
    with pytest.raises(BadPattern) as caught:
        parse(["csrc/**", "usr/include/**", "./a"])
    assert caught.value.index == 2
