"""Refs, ranges and commits of real repositories."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.adapters.git_history import GitHistory
from service.domain.errors import AmbiguousRef, BadRange, BadRequest, UnknownRef, UserError
from tests.repositories import FIRST_AT, NewCommit, build_repository, git

#: 0-1-2-3-6-7 with a side branch 2-4-5 that is merged by 6.
SHAPE = [
    NewCommit("root", files={"README": "hello", "docs/a": "a"}),
    NewCommit("one"),
    NewCommit("two"),
    NewCommit("three"),
    NewCommit("side one", parents=[2]),
    NewCommit("side two"),
    NewCommit("merge", parents=[3, 5]),
    NewCommit("last"),
]
#: Enough commits that two of them begin with the same four digits.
MANY = 1500


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source")
    build_repository(path, SHAPE, branches={"side": 5, "release/1.0": 3, "ümlaut": 1}, tags={"v1.0.0": 1, "v1.1.0": 3})
    git(path, "tag", "-a", "-m", "annotated", "v2.0.0", "main~1")
    git(path, "tag", "-a", "-m", "a tag of a tag", "latest", "v2.0.0")
    git(path, "tag", "a-file", "main~5:README")
    git(path, "tag", "-a", "-m", "a tag of a folder", "a-folder", "main~5:docs")
    return path


@pytest.fixture(scope="module")
def shas(source: Path) -> list[str]:
    found = git(source, "rev-list", "--topo-order", "--reverse", "main").split()
    by_subject = {git(source, "show", "-s", "--format=%s", sha): sha for sha in found}
    return [by_subject[commit.subject] for commit in SHAPE]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> GitHistory:
    return GitHistory(tmp_path_factory.mktemp("mirrors"), allow_file=True)


@pytest.mark.parametrize(
    ("ref", "index"),
    [
        ("main", 7), ("HEAD", 7), ("@", 7), ("HEAD~1", 6), ("main^", 6), ("main~1^2", 5), ("main^^1~2", 1),
        ("v1.0.0", 1),
        ("refs/tags/v1.0.0", 1), ("tags/v1.0.0", 1), ("heads/side", 5), ("release/1.0", 3), ("v2.0.0", 6),
        ("latest", 6),
        ("latest^{}", 6), ("v2.0.0^{commit}", 6), ("v2.0.0^2", 5), ("ümlaut", 1), ("HEAD~0", 7), ("main~5", 0),
    ],
)  # fmt: skip
def test_a_ref_is_the_commit_that_git_says(
    history: GitHistory, source: Path, shas: list[str], ref: str, index: int
) -> None:
    found = history.resolve(str(source), ref, field="good")
    assert found.sha == shas[index]
    assert found.subject == SHAPE[index].subject


@pytest.mark.parametrize("digits", [40, 39, 12, 7])
def test_a_sha_may_be_shortened_and_written_in_capitals(
    history: GitHistory, source: Path, shas: list[str], digits: int
) -> None:
    for ref in (shas[3][:digits], shas[3][:digits].upper()):
        assert history.resolve(str(source), ref, field="good").sha == shas[3]


def test_what_git_describe_prints_is_a_ref(history: GitHistory, source: Path, shas: list[str]) -> None:
    described = git(source, "describe", "--tags", "--long", shas[4])
    assert "-g" in described
    assert history.resolve(str(source), described, field="good").sha == shas[4]


def test_a_commit_has_what_a_person_wants_to_see(history: GitHistory, source: Path, shas: list[str]) -> None:
    found = history.resolve(str(source), "main~1", field="good")
    assert found.author == "Ada"
    assert found.committed_at == datetime.fromtimestamp(FIRST_AT + 360, UTC)
    assert found.parents == (shas[3], shas[5])


@pytest.mark.parametrize(
    ("ref", "near"),
    [
        ("v1.0.1", "v1.0.0"), ("mian", "main"), ("release/one", "release/1.0"),
        ("sied~3", "side"),
        ("nothing-like-it", None), ("main~8", "main"), ("main^3", "main"), ("abcdef1", None), ("0" * 40, None),
        ("abc", None),
        ("side^2", "side"), ("refs/heads/none", None), ("main.lock", "main"), ("{}", None),
        ("ä", None),
    ],
)  # fmt: skip
def test_an_unknown_ref_is_named_with_the_repository_and_what_is_near(
    history: GitHistory, source: Path, ref: str, near: str | None
) -> None:
    with pytest.raises(UnknownRef) as caught:
        history.resolve(str(source), ref, field="bad")
    assert ref in caught.value.detail
    assert str(source) in caught.value.detail
    assert (caught.value.field, caught.value.value) == ("bad", ref)
    assert caught.value.advice
    assert near is None or near in caught.value.advice


@pytest.mark.parametrize(("ref", "kind"), [("a-file", "a file"), ("a-folder", "a folder"), ("main^{tree}", "")])
def test_a_file_or_folder_is_not_a_commit(history: GitHistory, source: Path, ref: str, kind: str) -> None:
    with pytest.raises((UnknownRef, BadRequest)) as caught:
        history.resolve(str(source), ref, field="good")
    assert kind in caught.value.detail
    blob = git(source, "rev-parse", "main:README")
    for sha in (blob, blob[:10]):
        with pytest.raises(UnknownRef, match="names a file"):
            history.resolve(str(source), sha, field="good")


@pytest.mark.parametrize(
    "ref",
    [
        "", " ", "-", "--all", "--output=/tmp/x", "-n1", "^main", "main..side", "main...side", "a b", "main\n",
        "main\0", ":/fix",
        ":README", "main:README", "main@{1}", "main@{yesterday}", "@{u}", "@{-1}", "main^{/fix}", "main^@",
        "main^!", "main^-",
        "*", "ma?n", "[m]ain", "m\\n", "x" * 501, "\ud800", "\x7f", "main^{tree}", "main^{object}",
    ],
)  # fmt: skip
def test_what_is_not_the_name_of_one_commit_is_a_bad_request(history: GitHistory, source: Path, ref: str) -> None:
    with pytest.raises(BadRequest) as caught:
        history.resolve(str(source), ref, field="good")
    assert caught.value.field == "good"
    assert caught.value.advice


def test_a_short_sha_of_several_commits_lists_them_with_their_subjects(history: GitHistory, tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "many", [NewCommit(f"change {number}") for number in range(MANY)])
    prefix, same = next(
        (prefix, found)
        for prefix, group in itertools.groupby(sorted(shas), key=lambda sha: sha[:4])
        if len(found := list(group)) > 1
    )
    with pytest.raises(AmbiguousRef, match=f"{prefix} is the beginning of {len(same)}") as caught:
        history.resolve(str(tmp_path / "many"), prefix, field="good")
    for sha in same:
        assert sha[:12] in caught.value.detail
        assert f"change {shas.index(sha)}" in caught.value.detail
    assert history.resolve(str(tmp_path / "many"), same[0], field="good").sha == same[0]


def test_a_branch_named_like_a_short_sha_wins_over_it_as_in_git(history: GitHistory, tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "named", SHAPE)
    git(tmp_path / "named", "branch", shas[2][:7], shas[5])
    assert history.resolve(str(tmp_path / "named"), shas[2][:7], field="good").sha == shas[5]


fragments = st.sampled_from(
    [
        "-",
        "--",
        "--output=x",
        "HEAD",
        "main",
        "~",
        "^",
        "@",
        "{",
        "}",
        ":",
        "..",
        "v1.0.0",
        "/",
        "*",
        "\\",
        " ",
        "\0",
        "\n",
        "9" * 9,
    ]
    + [
        "--upload-pack=touch x",
        "refs/heads/",
        "$(touch x)",
        "`touch x`",
        ";touch x",
        "ä",
        "\ud800",
        "^{commit}",
        "0" * 40,
    ]
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=20) | st.lists(fragments, max_size=5).map("".join))
@example("--output=x")
@example("HEAD^{commit}^{commit}")
@example("main^{}~1")
@example("~" * 400)
@example("HEAD~999999999999999999999")
def test_no_ref_does_anything_but_name_a_commit_or_be_refused(
    history: GitHistory, source: Path, shas: list[str], ref: str
) -> None:
    mirror = Path(history.mirror(str(source)))
    history.merge_base(str(source), shas[0], shas[1])
    before = _files(mirror.parent), _files(source), list(Path().iterdir())
    try:
        assert history.resolve(str(source), ref, field="good").sha in shas
    except UserError as error:
        assert error.field == "good"
    assert (_files(mirror.parent), _files(source), list(Path().iterdir())) == before


def test_a_range_is_what_git_lists_parents_first(history: GitHistory, source: Path, shas: list[str]) -> None:
    found = history.range(str(source), (shas[1],), shas[7])
    assert set(found.shas) == {shas[index] for index in (2, 3, 4, 5, 6, 7)}
    assert found.shas[-1] == shas[7]
    assert _parents(found) == {
        shas[2]: set(), shas[3]: {shas[2]}, shas[4]: {shas[2]}, shas[5]: {shas[4]}, shas[6]: {shas[3], shas[5]},
        shas[7]: {shas[6]},
    }  # fmt: skip


def test_several_good_commits_and_first_parents_narrow_a_range(
    history: GitHistory, source: Path, shas: list[str]
) -> None:
    several = history.range(str(source), (shas[3], shas[4]), shas[7])
    assert set(several.shas) == {shas[5], shas[6], shas[7]}
    line = history.range(str(source), (shas[1],), shas[7], first_parent=True)
    assert line.shas == (shas[2], shas[3], shas[6], shas[7])
    assert line.is_line


def test_a_range_without_a_good_commit_goes_back_to_the_root(
    history: GitHistory, source: Path, shas: list[str]
) -> None:
    assert len(history.range(str(source), (), shas[7])) == 8


def test_a_range_of_one_commit_is_the_bad_one(history: GitHistory, source: Path, shas: list[str]) -> None:
    assert history.range(str(source), (shas[6],), shas[7]).shas == (shas[7],)


def test_nothing_lies_between_a_commit_and_its_descendant_or_itself(
    history: GitHistory, source: Path, shas: list[str]
) -> None:
    for good in (shas[7], shas[3]):
        with pytest.raises(BadRange, match="ancestor") as caught:
            history.range(str(source), (good,), shas[3])
        assert caught.value.field == "bad"


def test_a_range_is_read_once_and_kept(history: GitHistory, source: Path, shas: list[str]) -> None:
    assert history.range(str(source), (shas[0],), shas[7]) is history.range(str(source), (shas[0],), shas[7])


def test_a_range_needs_full_shas(history: GitHistory, source: Path, shas: list[str]) -> None:
    for good, bad in ((shas[0][:7], shas[7]), (shas[0], "main"), ("--all", shas[7])):
        with pytest.raises(ValueError, match="full SHA"):
            history.range(str(source), (good,), bad)


@st.composite
def histories(draw: st.DrawFn) -> list[list[int]]:
    """Parents by commit, oldest first; several roots and merges of three are possible."""
    count = draw(st.integers(2, 14))
    return [
        draw(st.lists(st.integers(0, index - 1), unique=True, min_size=0 if index % 5 == 4 else 1, max_size=3))
        if index
        else []
        for index in range(count)
    ]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parents=histories(), data=st.data())
def test_a_range_of_any_history_is_the_ancestors_of_bad_without_those_of_good(
    history: GitHistory, tmp_path_factory: pytest.TempPathFactory, parents: list[list[int]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("any")
    dates = st.lists(st.integers(0, 9), min_size=len(parents), max_size=len(parents))
    commits = [
        NewCommit(str(index), mine, at=at)
        for index, (mine, at) in enumerate(zip(parents, data.draw(dates), strict=True))
    ]
    shas = build_repository(path, commits)
    git(path, "update-ref", "refs/heads/all", shas[-1])
    for index, sha in enumerate(shas):
        git(path, "update-ref", f"refs/heads/b{index}", sha)
    bad = data.draw(st.integers(0, len(shas) - 1))
    good = data.draw(st.lists(st.integers(0, len(shas) - 1), max_size=2))
    wanted = _ancestors(parents, [bad]) - _ancestors(parents, good)
    if not wanted:
        with pytest.raises(BadRange):
            history.range(str(path), tuple(shas[index] for index in good), shas[bad])
        return
    found = history.range(str(path), tuple(shas[index] for index in good), shas[bad])
    inside = {shas[index]: {shas[parent] for parent in parents[index] if parent in wanted} for index in wanted}
    assert _parents(found) == inside
    assert found.shas[-1] == shas[bad]


def test_commits_come_by_sha_whatever_stands_in_their_subjects(history: GitHistory, tmp_path: Path) -> None:
    subjects = [
        "a | b || c", "tab\there", "two lines\nof one subject\n\nand a body", "\n\nblank lines first", "",
        "🦊 ünïcode \u2028 x",
        "bytes \udcff\udcfe that are no UTF-8", "x" * 10_000, "%H %n %x00", "\x01\x02\x1b[31mred", "'; touch x; '",
        "a\r\nb",
    ]  # fmt: skip
    shas = build_repository(tmp_path / "odd", [NewCommit(subject, author="Ünal") for subject in subjects])
    found = history.commits(str(tmp_path / "odd"), [*shas, shas[0]])
    assert set(found) == set(shas)
    assert [found[sha].parents for sha in shas[1:]] == [(sha,) for sha in shas[:-1]]
    assert {commit.author for commit in found.values()} == {"Ünal"}
    seen = [found[sha].subject for sha in shas]
    assert seen[:5] == ["a | b || c", "tab\there", "two lines of one subject", "blank lines first", ""]
    assert seen[5] == subjects[5]
    assert seen[6] == "bytes \ufffd\ufffd that are no UTF-8"
    assert seen[7:11] == subjects[7:11]


def test_commits_that_are_not_there_are_left_out(history: GitHistory, source: Path, shas: list[str]) -> None:
    missing, blob = "1" * 40, git(source, "rev-parse", "main:README")
    assert set(history.commits(str(source), [shas[1], missing, shas[0], blob])) == {shas[0], shas[1]}
    assert history.commits(str(source), [missing]) == history.commits(str(source), [blob]) == {}
    assert history.commits(str(source), []) == {}
    with pytest.raises(ValueError, match="full SHA"):
        history.commits(str(source), ["--all"])


def test_commits_that_were_read_once_are_known_without_git(tmp_path: Path) -> None:
    history, repo = GitHistory(tmp_path / "mirrors", allow_file=True), str(tmp_path / "repo")
    shas = build_repository(tmp_path / "repo", [NewCommit("short"), NewCommit("long " * 200)])
    history.refresh(repo)
    found = history.commits(repo, shas)
    shutil.rmtree(history.mirror(repo))
    shutil.rmtree(repo)
    assert history.commits(repo, shas[:1]) == {shas[0]: found[shas[0]]}
    with pytest.raises(UserError):
        history.commits(repo, shas)


def test_a_date_beyond_the_calendar_does_not_hide_the_commit(history: GitHistory, tmp_path: Path) -> None:
    dates = [0, 2**31, 253_402_300_799, 253_402_300_800, 2**55]
    shas = build_repository(tmp_path / "dates", [NewCommit(at=at) for at in dates])
    found = history.commits(str(tmp_path / "dates"), shas)
    assert [found[sha].committed_at.year for sha in shas] == [1970, 2038, 9999, 1970, 1970]


def test_the_merge_base_is_gits_and_none_where_histories_never_met(
    history: GitHistory, source: Path, shas: list[str], tmp_path: Path
) -> None:
    assert history.merge_base(str(source), shas[3], shas[5]) == shas[2]
    assert history.merge_base(str(source), shas[7], shas[5]) == shas[5]
    apart = build_repository(tmp_path / "apart", [NewCommit(), NewCommit(parents=[])], branches={"other": 0})
    assert history.merge_base(str(tmp_path / "apart"), *apart) is None
    with pytest.raises(ValueError, match="full SHA"):
        history.merge_base(str(source), "--all", shas[0])


def test_a_repository_of_sha256_works_alike(history: GitHistory, tmp_path: Path) -> None:
    path = tmp_path / "sha256"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", "sha256")
    shas = build_repository(path, SHAPE)
    assert len(shas[0]) == 64
    assert history.resolve(str(path), shas[3][:50], field="good").sha == shas[3]
    assert len(history.range(str(path), (shas[1],), shas[7])) == 6


def _parents(found) -> dict[str, set[str]]:
    return {
        sha: {found.shas[parent] for parent in parents}
        for sha, parents in zip(found.shas, found.parent_lists, strict=True)
    }


def _ancestors(parents: Sequence[Sequence[int]], of: Sequence[int]) -> set[int]:
    seen, stack = set(of), list(of)
    while stack:
        new = set(parents[stack.pop()]) - seen
        seen |= new
        stack += new
    return seen


def _files(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))
