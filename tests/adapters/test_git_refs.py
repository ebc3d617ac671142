"""What people write for a commit, looked up in real repositories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.adapters.git_history import GitHistory
from service.domain.errors import AmbiguousRef, BadRequest, UnknownRef
from tests.repositories import NewCommit, build_repository, git

DAY = 86_400
#: Noon of 2026-07-20, and a commit each day from then on.
FIRST = int(datetime(2026, 7, 20, 12, tzinfo=UTC).timestamp())
ASKED = datetime(2026, 8, 1, 9, tzinfo=UTC)
SUBJECTS = [
    "Begin",
    "Fix the sampler (#25629)",
    'Revert "Fix the sampler (#25629)" (#25700)',
    "Merge pull request #12 from someone/feature",
    "Speak of (#40) and go on",
    "Add graphs (#77)",
    "Take them out",
    "Add graphs, again (#77)",
    "Release",
    "After the release",
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """engine: ten commits, one a day; a branch that left after the third and has one of its own on the next day."""
    path = tmp_path_factory.mktemp("source") / "engine"
    commits = [NewCommit(subject, at=FIRST + DAY * number) for number, subject in enumerate(SUBJECTS)]
    side = NewCommit("On the side", parents=[2], at=FIRST + DAY * 2 + 3600)
    build_repository(
        path,
        [*commits, side],
        branches={"main": 9, "side": 10, "1.7.0": 5},
        tags={
            "v1.0.0": 1, "v1.0.1rc1": 2, "engine-1.1.0": 3, "v1.2.0": 4, "tools-v1.2.0": 6, "tools/v1.3.0": 7,
            "other-v1.4.0": 3, "tools-v1.4.0": 5, "2.0": 8, "nightly-2026-07-22": 6, "v1.7.0": 4,
        },
    )  # fmt: skip
    git(path, "tag", "-a", "-m", "annotated", "release-3.0.0", "main")
    git(path, "update-ref", "refs/pull/901/head", "side")
    git(path, "update-ref", "refs/pull/902/head", "main~3")
    git(path, "update-ref", "refs/pull/12/head", "side")
    return path


@pytest.fixture(scope="module")
def shas(source: Path) -> list[str]:
    return git(source, "rev-list", "--reverse", "main").split() + [git(source, "rev-parse", "side")]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> GitHistory:
    return GitHistory(tmp_path_factory.mktemp("mirrors"), allow_file=True)


@pytest.mark.parametrize(
    ("ref", "index", "how"),
    [
        ("1.0.0", 1, "the tag v1.0.0"), ("V1.0.0", 1, "the tag v1.0.0"), ("engine==1.0.0", 1, "the tag v1.0.0"),
        ("engine 1.0", 1, "the tag v1.0.0"), ("engine v1.0.0", 1, "the tag v1.0.0"), ("engine-1.0.0", 1, "the tag"),
        ("engine[cuda]==1.0.0", 1, "the tag v1.0.0"), ("1.0.1-rc.1", 2, "the tag v1.0.1rc1"),
        ("1.1.0", 3, "the tag engine-1.1.0"), ("v1.1.0", 3, "the tag engine-1.1.0"),
        ("1.2.0", 4, "the tag v1.2.0"), ("tools==1.2.0", 6, "the tag tools-v1.2.0"),
        ("tools 1.3.0", 7, "the tag tools/v1.3.0"), ("1.3.0", 7, "the tag tools/v1.3.0"),
        ("v2.0.0", 8, "the tag 2.0"), ("3.0.0", 9, "the tag release-3.0.0"), ("1.2.0+cu128", 4, "the tag v1.2.0"),
        ("https://example.org/team/engine/releases/tag/v1.0.0", 1, ""),
        ("https://example.org/team/engine/tree/side", 10, ""), ("team/engine:v1.2.0-cu126", 4, "the tag v1.2.0"),
        ("engine-1.2.0-py3-none-any.whl", 4, "the tag v1.2.0"), ("release/1.0.0", 1, "the tag v1.0.0"),
    ],
)  # fmt: skip
def test_a_version_is_the_commit_of_its_tag(
    history: GitHistory, source: Path, shas: list[str], ref: str, index: int, how: str
) -> None:
    found = history.resolve(str(source), ref, field="good", at=ASKED)
    assert (found.sha, found.subject) == (shas[index], [*SUBJECTS, "On the side"][index])
    assert found.how.startswith(how)


def test_of_tags_of_several_packages_none_is_guessed(history: GitHistory, source: Path, shas: list[str]) -> None:
    with pytest.raises(AmbiguousRef, match="may be 2 tags") as caught:
        history.resolve(str(source), "1.4.0", field="good", at=ASKED)
    for name, index in (("other-v1.4.0", 3), ("tools-v1.4.0", 5)):
        assert f"{name} = {shas[index][:12]}" in caught.value.detail
        assert SUBJECTS[index] in caught.value.detail
    with pytest.raises(UnknownRef):
        history.resolve(str(source), "third==1.4.0", field="good", at=ASKED)


def test_what_git_itself_knows_by_that_name_comes_first(history: GitHistory, source: Path, shas: list[str]) -> None:
    for ref, index in (("1.7.0", 5), ("v1.7.0", 4), ("nightly-2026-07-22", 6)):
        found = history.resolve(str(source), ref, field="good", at=ASKED)
        assert (found.sha, found.how) == (shas[index], "")


@pytest.mark.parametrize(
    ("ref", "index"),
    [
        ("2026-07-29", 9), ("20260729", 9), ("2026-07-22", 2), ("nightly 2026-07-23", 3), ("nightly-2026-07-24", 4),
        ("torch 2.8.0.dev20260724", 4), ("engine==2.8.0.dev20260724+cu128", 4), ("2.8.0.dev20260724", 4),
        ("team/engine:nightly-20260725", 5), ("main@{2026-07-23}", 3), ("side@{2026-07-23}", 10),
        ("main@{2026-07-23 11:00}", 2), ("main@{2026-07-23T14:00:00+02:00}", 3), ("2026-07-31", 9),
        ("1 week ago", 4), ("main@{1 week ago}", 4), ("side@{1 week ago}", 10), ("9 days ago", 2), ("a week ago", 4),
        ("main@{yesterday}", 9), ("2 weeks ago on main", None), ("HEAD@{200 hours ago}", 3), ("4 months ago", None),
        ("2026-07-19", None), ("main@{1000 years ago}", None), ("9999 years ago", None), ("none@{1 week ago}", None),
    ],
)  # fmt: skip
def test_a_day_is_the_last_commit_of_the_main_line_by_its_end(
    history: GitHistory, source: Path, shas: list[str], ref: str, index: int | None
) -> None:
    if index is None:
        with pytest.raises((UnknownRef, BadRequest)) as caught:
            history.resolve(str(source), ref, field="bad", at=ASKED)
        assert (caught.value.field, caught.value.value) == ("bad", ref)
        return
    found = history.resolve(str(source), ref, field="bad", at=ASKED)
    assert found.sha == shas[index]
    assert "the last commit of" in found.how


def test_a_day_never_reaches_beyond_the_moment_it_was_asked_for(
    history: GitHistory, source: Path, shas: list[str]
) -> None:
    noon = datetime(2026, 7, 24, 11, tzinfo=UTC)
    assert history.resolve(str(source), "2026-07-24", field="good", at=noon).sha == shas[3]
    assert history.resolve(str(source), "2026-07-24", field="good", at=noon + timedelta(hours=2)).sha == shas[4]
    assert history.resolve(str(source), "2026-07-24", field="good").sha == shas[4]
    with pytest.raises(BadRequest, match="counted back"):
        history.resolve(str(source), "2 days ago", field="good")


@pytest.mark.parametrize(
    ("ref", "index", "how"),
    [
        ("PR #25629", 1, "the commit that merged"), ("#25629", 1, "the commit that merged"),
        ("pull request #25700", 2, "the commit that merged"), ("PR 12", 3, "the commit that merged"),
        ("https://example.org/team/engine/pull/25629", 1, "the commit that merged"),
        ("https://example.org/team/engine/pull/25629/files", 1, "the commit that merged"),
        ("team/engine#25629", 1, "the commit that merged"), ("#901", 10, "the head of pull request #901, as the"),
        ("#902", 6, "the head of pull request #902, which the default branch holds"),
    ],
)  # fmt: skip
def test_a_pull_request_is_the_commit_that_merged_it_or_else_its_head(
    history: GitHistory, source: Path, shas: list[str], ref: str, index: int, how: str
) -> None:
    found = history.resolve(str(source), ref, field="good", at=ASKED)
    assert found.sha == shas[index]
    assert found.how.startswith(how)


def test_a_pull_request_that_was_merged_twice_is_refused_with_both(
    history: GitHistory, source: Path, shas: list[str]
) -> None:
    with pytest.raises(AmbiguousRef, match="#77 was merged 2 times") as caught:
        history.resolve(str(source), "#77", field="good", at=ASKED)
    assert shas[5][:12] in caught.value.detail and shas[7][:12] in caught.value.detail


@pytest.mark.parametrize("ref", ["#40", "#2562", "#1", "PR #999999999"])
def test_a_number_that_nothing_was_merged_by_is_unknown(history: GitHistory, source: Path, ref: str) -> None:
    with pytest.raises(UnknownRef, match="no such ref") as caught:
        history.resolve(str(source), ref, field="good", at=ASKED)
    assert caught.value.advice


@pytest.mark.parametrize(
    "ref",
    [
        "https://example.org/team/fork-of-it/pull/25629", "someone/tools#25629",
        "https://example.org/team/other/releases/tag/v1.0.0",
    ],
)  # fmt: skip
def test_what_another_repository_calls_so_is_refused(history: GitHistory, source: Path, ref: str) -> None:
    with pytest.raises(BadRequest, match="is of the repository"):
        history.resolve(str(source), ref, field="good", at=ASKED)


def test_a_sha_is_read_from_what_holds_it(history: GitHistory, source: Path, shas: list[str]) -> None:
    sha = shas[4]
    for ref in (
        f"https://example.org/team/elsewhere/commit/{sha}",
        f"https://example.org/team/engine/commit/{sha[:9]}",
        f"https://example.org/group/sub/engine/-/commit/{sha}",
        f"https://example.org/team/engine/pull/77/commits/{sha}",
        f"https://example.org/team/engine/blob/{sha}/a/file.py#L10-L20",
        f"https://wheels.example.org/{sha}/engine",
        f"https://wheels.example.org/x/engine-1.0.dev3%2Bg{sha[:9]}-cp312-cp312-linux_x86_64.whl",
        f"engine==1.0.1.dev3+g{sha[:9]}",
        f"1.0.1.dev3+g{sha[:8]}.d20260724",
        f"1.0.1a0+git{sha[:7]}",
        f"1.0.1.dev3+{sha[:10]}" if not sha[:10].isdigit() else f"1.0.1.dev3+g{sha[:10]}",
        f"team/engine:nightly-{sha}",
        f"registry.example.org:5000/ci/engine:{sha}",
        f"v1.0.0-3-g{sha[:9]}",
        f"`{sha[:12]}`",
    ):
        assert history.resolve(str(source), ref, field="good", at=ASKED).sha == sha, ref


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("1.0.1.dev123", "after a release"), ("team/engine:latest", "names no commit"), ("2026-02-30", "no day"),
        ("team/engine@sha256:" + "a" * 64, "digest"), ("https://example.org/team/engine", "no commit can be read"),
        ("https://example.org/team/engine/compare/side", "default branch"), ("v1.0.0..main", "is a range"),
        ("https://example.org/team/engine/compare/v1.0.0...main", "is a range"),
    ],
)  # fmt: skip
def test_what_names_no_commit_says_so_and_what_to_give_instead(
    history: GitHistory, source: Path, ref: str, why: str
) -> None:
    with pytest.raises(BadRequest, match=why) as caught:
        history.resolve(str(source), ref, field="good", at=ASKED)
    assert (caught.value.field, caught.value.value) == ("good", ref)
    assert caught.value.advice


def test_a_repository_without_a_head_has_no_days_and_no_pull_requests(history: GitHistory, tmp_path: Path) -> None:
    path = tmp_path / "headless"
    build_repository(path, [NewCommit("Fix (#3)")], tags={"v1.0.0": 0})
    git(path, "symbolic-ref", "HEAD", "refs/heads/none")
    for ref in ("2026-07-29", "#3", "yesterday"):
        with pytest.raises(UnknownRef):
            history.resolve(str(path), ref, field="good", at=ASKED)
    assert history.resolve(str(path), "1.0.0", field="good", at=ASKED).subject == "Fix (#3)"
