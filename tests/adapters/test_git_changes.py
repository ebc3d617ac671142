"""What commits changed, read from real repositories: whatever stands in them, and however much."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters.git_changes import COMMIT_BYTES, FILE_BYTES, PATHS, TEXTS, Changes, Records
from service.adapters.git_command import GitCommand, MirrorFailed
from service.adapters.git_history import GitHistory
from service.search.priors import Change, words_of
from tests.adapters.test_git_trees import PLAIN, PROGRAM, SUBMODULE, Files, plain, write
from tests.repositories import NewCommit, build_repository

WORDS = ("capture", "num_tokens", "tokens", "change", "c1")


@pytest.fixture
def history(tmp_path: Path) -> GitHistory:
    return GitHistory(tmp_path / "mirrors", allow_file=True)


def of_trees(history: GitHistory, tmp_path: Path, trees: list[Files], parents: list[list[int]] | None = None):
    """What each commit changed, in their order."""
    shas = write(tmp_path / "source", trees, parents or ())
    found = history.changes(f"{tmp_path}/source", shas, WORDS)
    assert list(found) == shas
    assert [change.sha for change in found.values()] == shas
    return list(found.values())


def test_paths_come_with_changed_lines_and_words_with_how_often_they_occur(history, tmp_path: Path) -> None:
    one, two = of_trees(
        history,
        tmp_path,
        [plain(pkg__a_py="one\ntwo\n"), plain(pkg__a_py="one\ncapture(num_tokens, Capture)\n", b_txt="x\n")],
    )
    assert dict(one.paths) == {"pkg/a.py": 2}
    assert dict(two.paths) == {"pkg/a.py": 2, "b.txt": 1}
    # The line before, the one that went, the one that came, and nothing of the diff's own.
    assert dict(two.words) == {"capture": 2, "num_tokens": 1, "tokens": 1}
    assert two.length == sum(words_of("one two capture num_tokens Capture").values())


def test_the_function_around_a_change_counts(history, tmp_path: Path) -> None:
    body = "".join(f"    line {number}\n" for number in range(20))
    _, two = of_trees(
        history,
        tmp_path,
        [plain(a_py=f"def capture():\n{body}"), plain(a_py=f"def capture():\n{body}".replace("line 15", "other"))],
    )
    assert two.words["capture"] == 1


def test_a_merge_is_compared_with_its_first_parent(history, tmp_path: Path) -> None:
    base, ours, theirs = plain(a_py="1"), plain(a_py="1", ours_py="1"), plain(a_py="1", theirs_py="capture")
    found = of_trees(history, tmp_path, [base, ours, theirs, {**ours, **theirs}], [[], [0], [0], [1, 2]])
    assert set(found[3].paths) == {"theirs.py"}
    assert found[3].words == {"capture": 1}


def test_a_renamed_file_is_changed_in_both_places_by_what_changed_within(history, tmp_path: Path) -> None:
    text = "".join(f"  capture {number}\n" for number in range(50))
    _, two = of_trees(history, tmp_path, [plain(old_py=text), plain(new_py=text + "tokens\n")])
    assert dict(two.paths) == {"old.py": 1, "new.py": 1}
    assert two.words == {"tokens": 1}


def test_an_empty_commit_changes_nothing(history, tmp_path: Path) -> None:
    _, two = of_trees(history, tmp_path, [plain(a_py="capture"), plain(a_py="capture")])
    assert two == Change(two.sha, {}, {}, 0)


def test_binary_files_modes_submodules_and_files_of_others_have_a_path_and_no_words(history, tmp_path: Path) -> None:
    [first, second] = of_trees(
        history,
        tmp_path,
        [
            {
                b"bin": (PLAIN, b"\0capture\n" * 9),
                b"mode": (PLAIN, b"capture\n"),
                b"big.txt": (PLAIN, b"capture\n" * (FILE_BYTES // 8 + 1)),
                b"third_party/lib/x.py": (PLAIN, b"capture\n"),
                b"app/uv.lock": (PLAIN, b"capture\n"),
                b"sub": (SUBMODULE, b"1" * 40),
            },
            {b"mode": (PROGRAM, b"capture\n"), b"sub": (SUBMODULE, b"2" * 40)},
        ],
    )
    assert set(first.paths) == {"bin", "mode", "big.txt", "third_party/lib/x.py", "app/uv.lock", "sub"}
    assert first.words == {"capture": 1}
    assert {"mode", "sub"} <= set(second.paths)


def test_paths_and_texts_in_any_encoding_are_read(history, tmp_path: Path) -> None:
    name = b'p\xff\n\x01"\t/caf\xc3\xa9.py'
    one, two = of_trees(
        history, tmp_path, [{name: (PLAIN, b"\xe9 capture\x01\n")}, {name: (PLAIN, b"tokens\n\x01" + b"a" * 40)}]
    )
    assert one.words["capture"] == 1
    assert two.words["tokens"] == 1
    plainer = b"caf\xc3\xa9.py"
    [three] = of_trees(history, tmp_path / "other", [{plainer: (PLAIN, b"\xff\xfe capture\r\n")}])
    assert dict(three.paths) == {"café.py": 1}
    assert three.words == {"capture": 1}


def test_of_a_diff_of_ten_megabytes_a_part_is_kept_and_the_next_commit_is_whole(history, tmp_path: Path) -> None:
    line = b"capture of something that is generated\n"
    size = FILE_BYTES // 2
    huge = {b"gen/%02d.py" % number: (PLAIN, line * (size // len(line))) for number in range(20)}
    [first, second] = of_trees(history, tmp_path, [huge, {**huge, b"a.py": (PLAIN, b"tokens\n")}])
    assert len(first.paths) == 20
    assert set(first.paths.values()) == {size // len(line)}
    assert 0 < first.words["capture"] <= COMMIT_BYTES / len(line)
    assert dict(second.paths) == {"a.py": 1}
    assert second.words == {"tokens": 1}


def test_a_commit_that_touches_everything_keeps_so_many_paths(history, tmp_path: Path) -> None:
    [found] = of_trees(history, tmp_path, [{b"f%d" % number: (PLAIN, b"x") for number in range(PATHS + 200)}])
    assert len(found.paths) == PATHS


def test_of_thousands_of_commits_the_paths_and_subjects_are_read(history, tmp_path: Path) -> None:
    commits = [
        NewCommit("capture" if n % 7 else "other", files={f"f{n % 50}": f"tokens {n}"}) for n in range(TEXTS + 1)
    ]
    shas = build_repository(tmp_path / "source", commits)
    found = history.changes(f"{tmp_path}/source", shas, WORDS)
    assert list(found) == list(shas)
    assert set(found[shas[99]].paths) == {"f49"}
    assert found[shas[99]].words == {"capture": 1}


def test_where_all_diffs_are_too_much_the_paths_do(tmp_path: Path) -> None:
    shas = write(tmp_path / "source", [plain(a_py=f"tokens {number}\n" * 500) for number in range(4)])
    changes = Changes(GitCommand(tmp_path, ("file",)), tmp_path, all_bytes=10_000)
    found = changes.of(tmp_path / "source" / ".git", shas, WORDS).values()
    assert [set(change.paths) for change in found] == [{"a.py"}] * 4
    assert not any("tokens" in change.words for change in found)


def test_what_was_read_is_remembered_and_another_question_is_another_answer(history, tmp_path: Path) -> None:
    shas = write(tmp_path / "source", [plain(a_py="capture tokens")])
    repo = f"{tmp_path}/source"
    first = history.changes(repo, shas, ("capture",))
    assert history.changes(repo, shas, ("capture",))[shas[0]] is first[shas[0]]
    assert history.changes(repo, shas, ("tokens",))[shas[0]].words == {"tokens": 1}


def test_a_mirror_that_is_broken_is_our_failure(history, tmp_path: Path) -> None:
    shas = write(tmp_path / "source", [plain(a_py="capture")])
    repo = f"{tmp_path}/source"
    history.refresh(repo)
    for file in (Path(history.mirror(repo)) / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            file.write_bytes(b"")
    with pytest.raises(MirrorFailed):
        history.changes(repo, shas, WORDS)


PIECES = st.lists(st.sampled_from([b"\n", b"\0", b"\x01", b"\x02", b"a" * 40, b"+x", b"y" * 90]), max_size=30)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PIECES, min_size=1, max_size=4), st.lists(st.integers(1, 50), max_size=20))
def test_however_the_output_comes_in_pieces_the_records_are_the_same(parts: list[list[bytes]], cuts: list[int]) -> None:
    stream = b"\n".join(b"\x01" + b"%040d" % number + b"\x02" + b"".join(part) for number, part in enumerate(parts))
    whole: list[bytes] = []
    pieces: list[bytes] = []
    for found, sizes in ((whole, []), (pieces, cuts)):
        records, rest = Records(found.append), stream
        for size in (*sizes, len(stream)):
            records.write(rest[:size])
            rest = rest[size:]
        records.end()
    assert len(whole) >= len(parts)
    assert pieces == whole
