"""Ids of the files that patterns choose, and one file's contents, over the commits of real repositories."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters.git_command import MirrorFailed
from service.adapters.git_history import GitHistory
from service.adapters.git_trees import FILE_BYTES
from service.domain.patterns import NO_FILES, BadPattern, Patterns
from tests.repositories import FIRST_AT, git

#: Mode and content by path; of a submodule the content is a commit's id.
Files = Mapping[bytes, tuple[bytes, bytes]]
PLAIN, PROGRAM, LINK, SUBMODULE = b"100644", b"100755", b"120000", b"160000"
NATIVE = ("csrc/**", "CMakeLists.txt")


def plain(**texts: str) -> Files:
    """`csrc__a_c="x"` is the file csrc/a.c that holds x."""
    return {name.replace("__", "/").replace("_", ".").encode(): (PLAIN, text.encode()) for name, text in texts.items()}


def write(path: Path, trees: Sequence[Files], parents: Sequence[Sequence[int]] = (), *init: str) -> list[str]:
    """One commit for each; in a line, unless `parents` tells for each the indexes of earlier ones."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main", *init)
    stream = b""
    for index, files in enumerate(trees):
        before = parents[index] if parents else range(index)[-1:]
        stream += b"reset refs/heads/building\n\n" if not before else b""
        stream += b"commit refs/heads/building\nmark :%d\n" % (index + 1)
        stream += b"committer Ada <ada@example.org> %d +0000\n" % (FIRST_AT + index) + data(b"c%d" % index)
        stream += b"".join(b"%b :%d\n" % (b"merge" if at else b"from", one + 1) for at, one in enumerate(before))
        stream += b"deleteall\n" + b"".join(file(name, *versioned) for name, versioned in files.items())
        stream += b"\nreset refs/heads/c%d\nfrom :%d\n\n" % (index, index + 1)
    git(path, "fast-import", "--quiet", "--force", stdin=stream)
    return [git(path, "rev-parse", f"refs/heads/c{index}") for index in range(len(trees))]


def file(name: bytes, mode: bytes, content: bytes) -> bytes:
    quoted = b'"%b"' % b"".join(b"\\%03o" % byte for byte in name)
    if mode == SUBMODULE:
        return b"M %b %b %b\n" % (mode, content, quoted)
    return b"M %b inline %b\n" % (mode, quoted) + data(content)


def data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


@pytest.fixture
def history(tmp_path: Path) -> GitHistory:
    return GitHistory(tmp_path / "mirrors", allow_file=True)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


NAMES = (
    b"CMakeLists.txt",
    b"csrc/a.c",
    b"csrc/deep/er/b.cu",
    b"lib/csrc/c.c",
    b"pkg/x.py",
    b"pkg/csrc",
    b"a b/\xff\n.c",
)
PATTERNS = ("csrc/**", "csrc", "/csrc/", "*.c", "CMakeLists.txt", "*", "**/er/**", "pkg/*.py", "!csrc/a.c", "!pkg/**")
FILES = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from([PLAIN, PROGRAM, LINK]), st.sampled_from([b"1", b"2", b"a"]))
)
CHOSEN = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4).filter(
    lambda lines: not all(line.startswith("!") for line in lines)
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees=st.lists(FILES, min_size=2, max_size=7), patterns=CHOSEN, shape=st.data())
def test_ids_are_equal_exactly_when_the_chosen_files_are(
    scratch: Path, trees: list[Files], patterns: list[str], shape: st.DataObject
) -> None:
    parents = [shape.draw(st.lists(st.integers(0, at - 1), unique=True, max_size=3)) if at else [] for at in range(7)]
    asked = shape.draw(st.sets(st.integers(0, len(trees) - 1), min_size=2))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        shas = write(Path(folder) / "source", trees, parents)
        history = GitHistory(Path(folder) / "mirrors", allow_file=True)
        ids = history.trees(f"{folder}/source", {shas[at] for at in asked}, tuple(patterns))
        again = history.trees(f"{folder}/source", shas, tuple(patterns))
    chosen = [chosen_of(tree, patterns) for tree in trees]
    assert ids == {shas[at]: again[shas[at]] for at in asked}
    for one, other in itertools.combinations(range(len(trees)), 2):
        assert (again[shas[one]] == again[shas[other]]) == (chosen[one] == chosen[other])
    assert all((again[sha] == NO_FILES) == (not files) for sha, files in zip(shas, chosen, strict=True))


def chosen_of(files: Files, patterns: Sequence[str]) -> Files:
    spec = Patterns(tuple(patterns))
    return {name: version for name, version in files.items() if spec.says(name.decode("utf-8", "surrogateescape"))}


def test_without_patterns_the_id_is_that_of_the_tree(history: GitHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shas = write(source, [plain(a="1"), plain(a="2"), plain(a="1")])
    ids = history.trees(str(source), shas)
    assert [ids[sha] for sha in shas] == [git(source, "rev-parse", f"{sha}^{{tree}}") for sha in shas]
    assert ids[shas[0]] == ids[shas[2]] != ids[shas[1]]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (plain(csrc__a_c="1", README="1"), plain(csrc__a_c="1", README="2"), True),
        (plain(csrc__a_c="1"), plain(csrc__a_c="2"), False),
        (plain(csrc__a_c="1"), plain(csrc__b_c="1"), False),
        (plain(csrc__a_c="1"), plain(csrc__deep__a_c="1"), False),
        (plain(csrc__a_c="1", csrc__b_c="2"), plain(csrc__a_c="2", csrc__b_c="1"), False),
        (plain(csrc__a_c="1"), plain(csrc__a_c="1", other__csrc__a_c="1"), True),
        (plain(csrc__a_c="1"), plain(csrc__a_c="1", other__CMakeLists_txt="1"), False),
        (plain(csrc__a_c="1"), plain(csrc="1"), False),
        ({b"csrc/a": (PLAIN, b"1")}, {b"csrc/a": (PROGRAM, b"1")}, False),
        ({b"csrc/a": (PLAIN, b"b")}, {b"csrc/a": (LINK, b"b")}, False),
        ({b"csrc/\xff": (PLAIN, b"b")}, {b"csrc/\xfe": (PLAIN, b"b")}, False),
        ({b"csrc/a\nb": (PLAIN, b"1")}, {b"csrc/a\nb": (PLAIN, b"2")}, False),
        ({b'csrc/"\t\\': (PLAIN, b"1")}, {b'csrc/"\t\\': (PLAIN, b"2")}, False),
        ({b"csrc/sub": (SUBMODULE, b"1" * 40)}, {b"csrc/sub": (SUBMODULE, b"2" * 40)}, False),
        ({b"csrc/sub": (SUBMODULE, b"1" * 40)}, {b"csrc/sub": (PLAIN, b"1" * 40)}, False),
    ],
)  # fmt: skip
def test_what_makes_two_commits_differ(
    history: GitHistory, tmp_path: Path, before: Files, after: Files, same: bool
) -> None:
    shas = write(tmp_path / "source", [before, after])
    ids = history.trees(str(tmp_path / "source"), shas, NATIVE)
    assert (ids[shas[0]] == ids[shas[1]]) is same


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (("third/**",), True),
        (("third/lib/include/**",), True),
        (("*.cu",), True),
        (("third/lib",), True),
        (("csrc/**",), False),
        (("*", "!third/**"), False),
        (("*", "!third/lib"), False),
    ],
)
def test_a_submodule_is_chosen_where_one_of_its_files_may_be(
    history: GitHistory, tmp_path: Path, patterns: tuple[str, ...], chosen: bool
) -> None:
    rest = plain(csrc__a_c="1")
    trees = [{**rest, b"third/lib": (SUBMODULE, digit * 40)} for digit in (b"1", b"2")]
    shas = write(tmp_path / "source", trees)
    ids = history.trees(str(tmp_path / "source"), shas, patterns)
    assert (ids[shas[0]] != ids[shas[1]]) is chosen


def test_patterns_that_choose_nothing_give_all_commits_one_id(history: GitHistory, tmp_path: Path) -> None:
    shas = write(tmp_path / "source", [plain(a="1"), plain(b="2")])
    assert set(history.trees(str(tmp_path / "source"), shas, ("csrc/**",)).values()) == {NO_FILES}


def test_a_merge_counts_as_it_is_and_not_by_its_first_parent(history: GitHistory, tmp_path: Path) -> None:
    base, ours, theirs = plain(csrc__a_c="1"), plain(csrc__a_c="1", x="1"), plain(csrc__a_c="2")
    shas = write(tmp_path / "source", [base, ours, theirs, theirs], [[], [0], [0], [1, 2]])
    ids = history.trees(str(tmp_path / "source"), shas, NATIVE)
    assert ids[shas[0]] == ids[shas[1]]
    assert ids[shas[2]] == ids[shas[3]] != ids[shas[0]]


def test_ids_do_not_depend_on_what_is_asked_for_beside(history: GitHistory, tmp_path: Path) -> None:
    trees = [plain(csrc__a_c=str(at // 3), x=str(at)) for at in range(12)]
    shas = write(tmp_path / "source", trees)
    together = history.trees(str(tmp_path / "source"), shas, NATIVE)
    other = GitHistory(tmp_path / "others", allow_file=True)
    assert {sha: other.trees(str(tmp_path / "source"), [sha], NATIVE)[sha] for sha in reversed(shas)} == together


def test_ids_are_remembered_so_that_only_new_commits_are_read(history: GitHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shas = write(source, [plain(csrc__a_c="1"), plain(csrc__a_c="2")])
    known = history.trees(str(source), shas[:1], NATIVE)
    Path(history.mirror(str(source)), "objects").rename(tmp_path / "gone")
    assert history.trees(str(source), shas[:1], NATIVE) == known
    with pytest.raises(MirrorFailed):
        history.trees(str(source), shas, NATIVE)


def test_a_repository_with_sha_256_ids(history: GitHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    trees = [plain(csrc__a_c="1", x="1"), plain(csrc__a_c="1", x="2"), plain(csrc__a_c="2")]
    shas = write(source, trees, (), "--object-format=sha256")
    assert len(shas[0]) == 64
    ids = history.trees(str(source), shas, NATIVE)
    assert ids[shas[0]] == ids[shas[1]] != ids[shas[2]]
    assert history.files(str(source), shas, "x") == {shas[0]: b"1", shas[1]: b"2", shas[2]: None}


def test_a_commit_that_is_not_in_the_mirror_is_our_failure(history: GitHistory, tmp_path: Path) -> None:
    write(tmp_path / "source", [plain(a="1")])
    for patterns in ((), NATIVE):
        with pytest.raises(MirrorFailed, match="00000"):
            history.trees(str(tmp_path / "source"), ["0" * 40], patterns)


def test_a_tree_that_is_missing_from_the_mirror_is_our_failure(history: GitHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shas = write(source, [plain(csrc__a_c="1"), plain(csrc__a_c="2")])
    history.refresh(str(source))
    lost = git(source, "rev-parse", f"{shas[1]}:csrc")
    mirror = Path(history.mirror(str(source)))
    loosen(mirror)
    (mirror / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(MirrorFailed, match=lost):
        history.trees(str(source), shas, NATIVE)
    with pytest.raises(MirrorFailed, match=lost):
        history.files(str(source), shas, "csrc/a.c")


def loosen(mirror: Path) -> None:
    """Takes every object out of its pack."""
    for pack in list((mirror / "objects" / "pack").glob("*.pack")):
        apart = pack.rename(mirror / pack.name)
        pack.with_suffix(".idx").unlink()
        git(mirror, "unpack-objects", "-q", stdin=apart.read_bytes())


def test_a_pattern_that_cannot_be_read_is_refused(history: GitHistory, tmp_path: Path) -> None:
    shas = write(tmp_path / "source", [plain(a="1")])
    with pytest.raises(BadPattern):
        history.trees(str(tmp_path / "source"), shas, ("csrc/[",))


def test_nothing_asked_is_nothing_answered(history: GitHistory, tmp_path: Path) -> None:
    write(tmp_path / "source", [plain(a="1")])
    assert history.trees(str(tmp_path / "source"), [], NATIVE) == {}
    assert history.files(str(tmp_path / "source"), [], "a") == {}


@pytest.mark.parametrize("name", ["a", "deep/er/a b", "ü/\n\"'", ":(glob)*", "-x", "*", "[a]", "HEAD:a", "\udcff.txt"])
def test_a_file_at_each_commit(history: GitHistory, tmp_path: Path, name: str) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    trees: list[Files] = [
        {raw: (PLAIN, b"one\0\r\n"), b"other": (PLAIN, b"x")},
        {raw: (PROGRAM, b"")},
        {b"other": (PLAIN, b"y")},
        {raw: (LINK, b"other")},
        {raw: (SUBMODULE, b"1" * 40)},
        {raw + b"/below": (PLAIN, b"z")},
        {raw: (PLAIN, b"one\0\r\n")},
    ]
    shas = write(tmp_path / "source", trees)
    found = history.files(str(tmp_path / "source"), shas, name)
    assert [found[sha] for sha in shas] == [b"one\0\r\n", b"", None, None, None, None, b"one\0\r\n"]
    assert history.files(str(tmp_path / "source"), shas, name) == found


@pytest.mark.parametrize("name", ["", "/", "/a", "a/", "./a", "x/../a", "..", "../a", "a//b", "\0", "A", "a/b"])
def test_what_is_no_file_s_path_is_nowhere(history: GitHistory, tmp_path: Path, name: str) -> None:
    shas = write(tmp_path / "source", [plain(a="1")])
    assert history.files(str(tmp_path / "source"), shas, name) == {shas[0]: None}


def test_a_file_of_more_than_a_mebibyte_is_not_read(history: GitHistory, tmp_path: Path) -> None:
    texts = [b"x" * FILE_BYTES, b"x" * (FILE_BYTES + 1), b"small"]
    shas = write(tmp_path / "source", [{b"a": (PLAIN, text)} for text in texts])
    found = history.files(str(tmp_path / "source"), shas, "a")
    assert [found[sha] for sha in shas] == [texts[0], None, texts[2]]


def test_the_mirror_is_not_written(history: GitHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shas = write(source, [plain(csrc__a_c="1"), plain(csrc__a_c="2")])
    history.refresh(str(source))
    mirror = Path(history.mirror(str(source)))
    before = {path: path.lstat().st_mtime_ns for path in mirror.rglob("*")}
    history.trees(str(source), shas, NATIVE)
    history.files(str(source), shas, "csrc/a.c")
    assert {path: path.lstat().st_mtime_ns for path in mirror.rglob("*")} == before
    shutil.rmtree(mirror)
    assert history.trees(str(source), shas, NATIVE)
