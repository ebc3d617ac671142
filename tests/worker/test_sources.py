"""How a commit's tree comes to the node, and what is refused."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.repositories import NewCommit, build_repository, git
from tests.worker.bench import Background, Bench
from worker.build.source import Sources, check, redacted
from worker.contract import Source
from worker.errors import NodeFault
from worker.run.stop import Stop
from worker.settings import Settings

SHA = "0123456789abcdef0123456789abcdef01234567"


def sources(folder: Path, **changed: object) -> Sources:
    return Sources(folder / "git", Settings().git_env(), **{"allow_file_repos": True, **changed})  # type: ignore[arg-type]


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {name for name in tar.getnames() if name != "pax_global_header"}


@pytest.mark.parametrize(
    "repo",
    [
        "-oProxyCommand=touch /tmp/x",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c touch%20/tmp/x",
        "fd::17",
        "::ext::x",
        "http://example.org/a.git",
        "ftp://example.org/a.git",
        "git+ssh://example.org/a.git",
        "",
        "https://example.org/a\nb",
        "https://example.org/a\0b",
    ],
)
def test_other_transports_and_options_are_refused(repo: str) -> None:
    with pytest.raises(NodeFault) as refused:
        check(Source(repo=repo, sha=SHA), allow_file_repos=True)
    assert refused.value.kind == "order"


@pytest.mark.parametrize("repo", ["/srv/a.git", "file:///srv/a.git", "../a", "a"])
def test_folders_are_refused_unless_the_operator_allows_them(repo: str) -> None:
    check(Source(repo=repo, sha=SHA), allow_file_repos=True)
    with pytest.raises(NodeFault, match="only https, ssh, git may be used"):
        check(Source(repo=repo, sha=SHA), allow_file_repos=False)


@pytest.mark.parametrize(
    "repo", ["https://example.org/a.git", "ssh://git@example.org/a.git", "git@example.org:a/b.git"]
)
def test_the_usual_addresses_are_allowed(repo: str) -> None:
    check(Source(repo=repo, sha=SHA), allow_file_repos=False)


@pytest.mark.parametrize("sha", ["", "main", "HEAD", "0123abc", "--output=x", SHA.upper(), SHA + "0", SHA + "\n"])
def test_only_a_full_sha_reaches_git(sha: str) -> None:
    with pytest.raises(NodeFault, match="no full SHA"):
        check(Source(repo="https://example.org/a.git", sha=sha), allow_file_repos=True)


def test_without_a_mirror_the_commit_is_fetched_once(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "origin", [NewCommit(files={"a": "1"}), NewCommit(files={"b": "2"})])
    found = sources(tmp_path)
    found.archive(Source(repo=str(tmp_path / "origin"), sha=shas[0]), tmp_path / "one.tar", Stop())
    assert names(tmp_path / "one.tar") == {"a"}
    (tmp_path / "origin").rename(tmp_path / "gone")
    found.archive(Source(repo=str(tmp_path / "origin"), sha=shas[0]), tmp_path / "again.tar", Stop())
    assert names(tmp_path / "again.tar") == {"a"}


def test_a_mirror_that_lacks_the_commit_is_no_obstacle(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "origin", [NewCommit(files={"a": "1"})])
    build_repository(tmp_path / "other", [NewCommit(files={"c": "3"}, subject="other")])
    source = Source(repo=str(tmp_path / "origin"), sha=shas[0], mirror=str(tmp_path / "other" / ".git"))
    sources(tmp_path).archive(source, tmp_path / "one.tar", Stop())
    assert names(tmp_path / "one.tar") == {"a"}


def test_a_commit_that_only_a_pull_request_holds_is_found(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    build_repository(origin, [NewCommit(files={"a": "1"}), NewCommit(files={"b": "2"})], branches={"side": 1})
    sha = git(origin, "rev-parse", "side")
    git(origin, "update-ref", "refs/pull/7/head", sha)
    git(origin, "update-ref", "-d", "refs/heads/side")
    sources(tmp_path).archive(Source(repo=str(origin), sha=sha), tmp_path / "one.tar", Stop())
    assert names(tmp_path / "one.tar") == {"a", "b"}


def test_a_commit_that_is_nowhere_is_the_nodes_fault(tmp_path: Path) -> None:
    build_repository(tmp_path / "origin", [NewCommit(files={"a": "1"})])
    with pytest.raises(NodeFault, match=SHA) as fault:
        sources(tmp_path).archive(Source(repo=str(tmp_path / "origin"), sha=SHA), tmp_path / "one.tar", Stop())
    assert fault.value.kind == "source"


def test_no_setting_of_the_repository_is_obeyed(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    files = {"a": "1", ".gitattributes": "a export-ignore\n", "hook": "x"}
    shas = build_repository(origin, [NewCommit(files=files)])
    marker = tmp_path / "ran"
    git(origin, "config", "core.fsmonitor", f"touch {marker}")
    git(origin, "config", "tar.tar.command", f"touch {marker}; cat")
    source = Source(repo="https://example.org/x.git", sha=shas[0], mirror=str(origin / ".git"))
    sources(tmp_path).archive(source, tmp_path / "one.tar", Stop())
    assert names(tmp_path / "one.tar") == {"a", ".gitattributes", "hook"}
    assert not marker.exists()


def test_a_repository_that_asks_for_a_password_does_not_hang(tmp_path: Path) -> None:
    import http.server
    import threading

    class Closed(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

    server = http.server.HTTPServer(("127.0.0.1", 0), Closed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # The transport is refused by us, so that git itself is asked what it does with such a server.
    said = sources(tmp_path)._git(["ls-remote", f"http://127.0.0.1:{server.server_port}/a.git"], Stop())
    server.shutdown()
    assert said is not None and "not allowed" in said


def test_links_of_a_tree_lead_nowhere_outside(process_bench: Bench, tmp_path: Path) -> None:
    origin = tmp_path / "links"
    origin.mkdir()
    (tmp_path / "target").mkdir()
    git(origin, "init", "--quiet")
    (origin / "out").symlink_to(tmp_path / "target")
    (origin / "up").symlink_to("../../../../etc")
    (origin / "dangling").symlink_to("nowhere")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "links")
    source = Source(repo=str(origin), sha=git(origin, "rev-parse", "HEAD"))
    outcome = process_bench.outcome("readlink out up dangling; echo x > out/file || echo refused", source=source)
    assert process_bench.text(outcome)[-1] == "refused"
    assert list((tmp_path / "target").iterdir()) == []


def test_names_of_all_kinds_are_unpacked(process_bench: Bench, tmp_path: Path) -> None:
    odd = {"-rf": "1", "with space": "2", "ünï/cödé": "3", "--checkpoint-action=exec=sh": "4", "a" * 200: "5"}
    shas = build_repository(tmp_path / "odd", [NewCommit(files=odd)])
    source = Source(repo=str(tmp_path / "odd"), sha=shas[0])
    outcome = process_bench.outcome("find . -type f | wc -l; cat ./-rf", source=source)
    assert process_bench.text(outcome) == ["5", "1"]


def test_two_fetches_of_a_repository_take_turns(process_bench: Bench, tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "origin", [NewCommit(files={"a": "1"}), NewCommit(files={"b": "2"})])
    orders = [process_bench.order("ls", source=Source(repo=str(tmp_path / "origin"), sha=sha)) for sha in shas * 3]
    found = [probe.finished() for probe in [Background(process_bench, order) for order in orders]]
    assert all(result is not None and result.outcome is not None for result in found), found


def test_passwords_are_not_told() -> None:
    said = "fatal: unable to access 'https://me:secret@example.org/a.git/'"
    assert redacted(said) == "fatal: unable to access 'https://example.org/a.git/'"


def test_git_is_not_asked_where_it_should_not_go(tmp_path: Path) -> None:
    found = sources(tmp_path, allow_file_repos=False)
    build_repository(tmp_path / "origin", [NewCommit(files={"a": "1"})])
    said = found._git(["ls-remote", f"file://{tmp_path}/origin"], Stop())
    assert said is not None and "not allowed" in said
    assert subprocess.run(["git", "ls-remote", f"file://{tmp_path}/origin"], capture_output=True).returncode == 0
