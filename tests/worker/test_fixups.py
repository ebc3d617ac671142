"""Fix-ups: what is changed in a commit's tree before it is built or run."""

from __future__ import annotations

import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repositories import NewCommit, build_repository, git
from tests.worker.bench import Bench
from worker.build.source import Sources, check
from worker.contract import Fixup, Source
from worker.errors import FixupFails, NodeFault
from worker.run.stop import Stop
from worker.settings import Settings

LINES = "".join(f"line {number}\n" for number in range(1, 21))
FIXED = LINES.replace("line 10", "line ten")
SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Place:
    """A repository that has a mirror; `shas`: a base, a fix of line 10, an unrelated change of line 18."""

    origin: Path
    mirror: Path
    shas: tuple[str, ...]
    sources: Sources
    out: Path

    def files(self, fixups: list[Fixup], sha: str | None = None, *, mirror: bool = True) -> dict[str, bytes | str]:
        """By name; of links where they lead to."""
        self.out.mkdir(exist_ok=True)
        source = Source(
            repo=str(self.origin),
            sha=sha or self.shas[0],
            mirror=str(self.mirror) if mirror else None,
            fixups=tuple(fixups),
        )
        tar = self.out / "tree.tar"
        self.sources.archive(source, tar, Stop())
        assert [path.name for path in self.out.iterdir()] == ["tree.tar"]
        with tarfile.open(tar) as archive:
            members = [member for member in archive.getmembers() if not member.isdir()]
            return {m.name: m.linkname if m.issym() else archive.extractfile(m).read() for m in members}

    def objects(self) -> set[str]:
        return {str(path) for path in self.mirror.rglob("*")}

    def refused(self, fixup: Fixup, *, sha: str | None = None) -> FixupFails:
        with pytest.raises(FixupFails) as caught:
            self.files([fixup], sha)
        return caught.value


@pytest.fixture
def place(tmp_path: Path) -> Place:
    origin = tmp_path / "origin"
    commits = [
        NewCommit(files={"a.py": LINES, "kept": "kept\n"}),
        NewCommit(files={"a.py": FIXED}),
        NewCommit(files={"a.py": FIXED.replace("line 18", "line eighteen")}),
    ]
    shas = build_repository(origin, commits)
    return made(tmp_path, origin, shas)


def made(tmp_path: Path, origin: Path, shas: tuple[str, ...] = ()) -> Place:
    mirror = tmp_path / 'mirror "quoted":.git'
    subprocess.run(["git", "clone", "--quiet", "--mirror", origin, mirror], check=True)
    sources = Sources(tmp_path / "git", Settings().git_env(), allow_file_repos=True)
    return Place(origin, mirror, shas, sources, tmp_path / "out")


def pick(sha: str) -> Fixup:
    return Fixup(name=f"fix-up {sha[:12]}", cherry_pick=sha)


def patch(text: str) -> Fixup:
    return Fixup(name="patch 1", patch=text)


def change(place: Place, old: str, new: str) -> str:
    return git(place.origin, "diff", old, new) + "\n"


@pytest.mark.parametrize("mirror", [True, False])
@pytest.mark.parametrize("kind", ["commit", "patch"])
def test_the_tree_has_the_change_and_nothing_else_of_it(place: Place, mirror: bool, kind: str) -> None:
    before, (base, fix, _) = place.objects(), place.shas
    fixup = pick(fix) if kind == "commit" else patch(change(place, base, fix))
    found = place.files([fixup], mirror=mirror)
    assert found == {"a.py": FIXED.encode(), "kept": b"kept\n"}
    assert place.objects() == before


def test_fixups_are_made_one_after_the_other(place: Place) -> None:
    first = "--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-kept\n+once\n"
    second = "--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-once\n+twice"
    assert place.files([patch(first), pick(place.shas[1]), patch(second)]) == {
        "a.py": FIXED.encode(),
        "kept": b"twice\n",
    }


@pytest.mark.parametrize("kind", ["commit", "patch"])
def test_a_change_that_is_there_already_is_no_trouble(place: Place, kind: str) -> None:
    base, fix, last = place.shas
    fixup = pick(fix) if kind == "commit" else patch(change(place, base, fix))
    assert place.files([fixup], last) == place.files([], last)
    assert place.files([fixup, fixup]) == place.files([fixup])


def test_what_does_not_apply_says_what_and_where(place: Place) -> None:
    said = place.refused(patch("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n line 7\n-line 9\n+line nine\n"))
    assert str(said) == "patch 1 does not apply: patch failed: a.py:1"
    assert "a.py: patch does not apply" in said.said


def test_a_commit_that_conflicts_is_refused_by_name(place: Place, tmp_path: Path) -> None:
    commits = [NewCommit(files={"a": "1\n"}), NewCommit(files={"a": "2\n"}), NewCommit(files={"a": "3\n"})]
    shas = build_repository(tmp_path / "other", commits)
    other = made(tmp_path / "other", tmp_path / "other")
    assert str(other.refused(pick(shas[2]), sha=shas[0])).startswith(f"fix-up {shas[2][:12]} does not apply: ")


@pytest.mark.parametrize("text", ["no patch at all", "", "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n line 1\n"])
def test_what_is_no_patch_is_refused(place: Place, text: str) -> None:
    assert str(place.refused(patch(text))).startswith("patch 1 does not apply: ")


def new_file(path: str, mode: str = "100644") -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "x/../../evil", ".git/config", "x/.git/hooks/y", "."])
def test_a_patch_leads_nowhere_outside(place: Place, path: str) -> None:
    place.refused(patch(new_file(path)))
    assert not (place.out.parent / "evil").exists() and not Path("/tmp/evil").exists()


def test_a_patch_writes_nothing_through_a_link(place: Place) -> None:
    link, through = patch(new_file("link", "120000")), patch(new_file("link/evil"))
    assert place.files([link])["link"] == "/etc"
    with pytest.raises(FixupFails, match="link"):
        place.files([link, through])


@pytest.mark.parametrize("name", ["--output=x", "-R", "a b", "ü", "--directory=/tmp"])
def test_names_in_a_patch_are_names(place: Place, name: str) -> None:
    assert place.files([patch(new_file(name))])[name] == b"/etc"


def test_a_patch_of_a_repository_without_a_history_in_common_is_a_first_commits(place: Place, tmp_path: Path) -> None:
    git(place.origin, "checkout", "--quiet", "--orphan", "alone")
    git(place.origin, "rm", "-rf", "--quiet", ".")
    (place.origin / "new").write_text("new\n")
    git(place.origin, "add", "new")
    git(place.origin, "commit", "--quiet", "-m", "first of its own")
    root = git(place.origin, "rev-parse", "HEAD")
    # Neither the mirror nor the node has it yet.
    assert place.files([pick(root)]) == {"a.py": LINES.encode(), "kept": b"kept\n", "new": b"new\n"}


def test_of_a_merge_the_change_against_its_first_parent_is_taken(tmp_path: Path) -> None:
    commits = [
        NewCommit(files={"a": LINES}),
        NewCommit(files={"b": "main\n"}),
        NewCommit(files={"a": FIXED}, parents=[0]),
        NewCommit(files={"a": FIXED}, parents=[1, 2]),
    ]
    shas = build_repository(tmp_path / "origin", commits)
    place = made(tmp_path, tmp_path / "origin", shas)
    assert place.files([pick(shas[3])]) == {"a": FIXED.encode()}


def test_binary_files_renames_modes_and_links_are_picked(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    build_repository(origin, [NewCommit(files={"old.py": LINES, "run.sh": "true\n"})])
    git(origin, "checkout", "--quiet", "--force", "main")
    git(origin, "mv", "old.py", "new.py")
    (origin / "new.py").write_text(FIXED)
    (origin / "image").write_bytes(bytes(range(256)) * 50)
    (origin / "link").symlink_to("image")
    (origin / "run.sh").chmod(0o755)
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "all kinds")
    fix = git(origin, "rev-parse", "HEAD")
    git(origin, "checkout", "--quiet", "HEAD^")
    (origin / "old.py").write_text(LINES.replace("line 18", "other"))
    git(origin, "commit", "--quiet", "-am", "elsewhere")
    place = made(tmp_path, origin)
    found = place.files([pick(fix)], git(origin, "rev-parse", "HEAD"))
    assert found["new.py"] == FIXED.replace("line 18", "other").encode() and "old.py" not in found
    assert found["image"] == bytes(range(256)) * 50 and found["link"] == "image"
    with tarfile.open(place.out / "tree.tar") as archive:
        assert archive.getmember("run.sh").mode & 0o111


def test_an_empty_commit_changes_nothing(place: Place) -> None:
    empty = git(place.origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "empty")
    git(place.origin, "update-ref", "refs/heads/empty", empty)
    assert place.files([pick(empty)])["a.py"] == LINES.encode()


def test_the_same_fixups_make_the_same_archive(place: Place) -> None:
    place.files([pick(place.shas[1])])
    first = (place.out / "tree.tar").read_bytes()
    with tarfile.open(place.out / "tree.tar") as archive:
        assert archive.getmember("a.py").mtime == int(git(place.origin, "log", "-1", "--format=%ct", place.shas[0]))
    place.files([pick(place.shas[1])])
    assert (place.out / "tree.tar").read_bytes() == first


def test_many_at_once_do_not_touch_each_other(place: Place) -> None:
    def one(number: int) -> bytes | str:
        out = place.out.with_name(f"out-{number}")
        text = f"--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-kept\n+{number}\n"
        mine = Place(place.origin, place.mirror, place.shas, place.sources, out)
        return mine.files([patch(text)], mirror=bool(number % 2))["kept"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == [f"{number}\n".encode() for number in range(24)]


def test_a_commit_to_pick_that_is_nowhere_is_the_nodes_fault(place: Place) -> None:
    with pytest.raises(NodeFault, match=SHA) as fault:
        place.files([pick(SHA)])
    assert fault.value.kind == "source"


@pytest.mark.parametrize(
    "fixup",
    [Fixup(name="x"), Fixup(name="x", cherry_pick="--output=x"), Fixup(name="x", cherry_pick=SHA, patch="x")],
)
def test_what_is_no_fixup_is_refused(fixup: Fixup) -> None:
    with pytest.raises(NodeFault) as refused:
        check(Source(repo="https://example.org/a.git", sha=SHA, fixups=(fixup,)), allow_file_repos=False)
    assert refused.value.kind == "order"


BAD = patch("--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-other\n+new\n")
GOOD = patch("--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-hello\n+mended\n")


def test_builds_and_runs_have_the_fixups(process_bench: Bench) -> None:
    source = process_bench.source().model_copy(update={"fixups": (GOOD,)})
    assert process_bench.text(process_bench.outcome("cat hello.txt", source=source)) == ["mended"]
    built = process_bench.build("cat hello.txt; exit 1", source=source)
    assert built.failure is not None and built.failure.log.last_lines == ("mended",)


def test_a_fixup_that_does_not_apply_is_the_commits_failure(process_bench: Bench) -> None:
    source = process_bench.source().model_copy(update={"fixups": (GOOD, BAD)})
    built = process_bench.build(key="fixed", source=source)
    ran = process_bench.outcome("true", source=source)
    for outcome in (built.failure, ran):
        assert outcome is not None
        assert (outcome.ended_in, outcome.exit_status) == ("fix-up", 1)
        assert outcome.first_error == "patch 1 does not apply: patch failed: hello.txt:1"
        assert outcome.log.last_lines[-1] == "error: hello.txt: patch does not apply"
        assert process_bench.text(outcome)[-1] == "error: hello.txt: patch does not apply"
        assert [phase.name for phase in outcome.phases] == ["fetch"]
    assert built.log == built.failure.log and built.fault is None and built.wheel is None
    assert process_bench.left() == []
