"""Mirrors of real repositories: cloned, kept up to date, refused, and never left half done."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.adapters.git_command import MirrorFailed, Output
from service.adapters.git_errors import error_of
from service.adapters.git_history import GitHistory
from service.application.ports import Asked
from service.domain.errors import RepositoryUnavailable, UnknownRef
from tests.adapters import https_server
from tests.reached import loopback
from tests.repositories import QUIET, NewCommit, build_repository, git

REFRESH = """
import sys
from pathlib import Path
from service.adapters.git_history import GitHistory
from tests.reached import loopback
GitHistory(Path(sys.argv[1]), True, addresses=loopback()).refresh(sys.argv[2])
"""
LITTLE_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
"""


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    return tmp_path / "mirrors"


@pytest.fixture
def history(mirrors: Path) -> GitHistory:
    return GitHistory(mirrors, allow_file=True, addresses=loopback())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    build_repository(path, [NewCommit(f"commit {n}") for n in range(5)], branches={"side": 2}, tags={"v1.0": 1})
    return path


@pytest.fixture
def server(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[https_server.GitServer]:
    with https_server.serve(source.parent, tmp_path) as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        yield served


def add(source: Path, subject: str = "newer") -> str:
    git(source, "commit", "--quiet", "--allow-empty", "-m", subject)
    return git(source, "rev-parse", "HEAD")


def left(mirrors: Path) -> list[str]:
    return sorted(path.name for path in mirrors.iterdir() if path.name not in ("gitattributes", "gitconfig"))


def resolved(history: GitHistory, source: Path | str, ref: str) -> str:
    return history.resolve(str(source), ref, field="good").sha


def test_a_refresh_clones_and_the_next_brings_what_is_new_and_drops_what_is_gone(
    history: GitHistory, source: Path
) -> None:
    history.refresh(str(source))
    assert resolved(history, source, "HEAD") == git(source, "rev-parse", "main")
    newer = add(source)
    git(source, "branch", "-D", "side")
    git(source, "tag", "-f", "v1.0", "main")
    git(source, "branch", "side/deeper", "main~1")
    history.refresh(str(source))
    assert {resolved(history, source, ref) for ref in ("HEAD", "main", "v1.0")} == {newer}
    assert resolved(history, source, "side/deeper") == git(source, "rev-parse", "main~1")
    with pytest.raises(UnknownRef, match="'side'"):
        resolved(history, source, "side")


def test_a_branch_that_was_rewritten_is_followed_and_its_old_commits_stay(history: GitHistory, source: Path) -> None:
    old = git(source, "rev-parse", "main")
    history.refresh(str(source))
    git(source, "reset", "--quiet", "--soft", "main~2")
    newer = add(source)
    history.refresh(str(source))
    mirror = Path(history.mirror(str(source)))
    git(mirror, "-c", "gc.pruneExpire=never", "gc", "--quiet")
    assert resolved(history, source, "main") == newer
    assert resolved(history, source, old) == old


def test_head_follows_the_source_to_another_branch_and_to_none(history: GitHistory, source: Path) -> None:
    history.refresh(str(source))
    git(source, "symbolic-ref", "HEAD", "refs/heads/side")
    history.refresh(str(source))
    assert resolved(history, source, "HEAD") == git(source, "rev-parse", "side")
    alone = git(source, "commit-tree", "-m", "on no branch", "-p", "main", "main^{tree}")
    git(source, "update-ref", "--no-deref", "HEAD", alone)
    history.refresh(str(source))
    assert resolved(history, source, "HEAD") == alone
    git(source, "symbolic-ref", "HEAD", "refs/heads/unborn")
    history.refresh(str(source))
    with pytest.raises(UnknownRef, match="'HEAD'"):
        resolved(history, source, "HEAD")
    git(source, "symbolic-ref", "HEAD", "refs/heads/main")
    history.refresh(str(source))
    assert resolved(history, source, "HEAD") == git(source, "rev-parse", "main")


def test_a_refresh_that_has_all_commits_wanted_does_not_ask_the_source(history: GitHistory, source: Path) -> None:
    old = git(source, "rev-parse", "main")
    history.refresh(str(source))
    newer = add(source)
    history.refresh(str(source), have=[old, old.upper()])
    assert resolved(history, source, "main") == old
    history.refresh(str(source), have=[old, "main"])
    assert resolved(history, source, "main") == newer


def test_a_refresh_that_lacks_one_commit_wanted_asks_the_source(history: GitHistory, source: Path) -> None:
    old = git(source, "rev-parse", "main")
    history.refresh(str(source))
    newer = add(source)
    history.refresh(str(source), have=[old, newer])
    assert resolved(history, source, "main") == newer


def test_refs_of_pull_requests_stay_away_but_their_commits_come_when_named(history: GitHistory, source: Path) -> None:
    pull = git(source, "commit-tree", "-m", "a pull request", "-p", "main", "main^{tree}")
    git(source, "update-ref", "refs/pull/1/head", pull)
    history.refresh(str(source))
    mirror = Path(history.mirror(str(source)))
    assert "pull" not in git(mirror, "for-each-ref")
    assert resolved(history, source, pull) == pull
    history.refresh(str(source))
    git(mirror, "gc", "--quiet", "--prune=now")
    assert resolved(history, source, pull[:12]) == pull


def test_a_mirror_that_was_removed_is_cloned_again_by_whatever_reads_it(history: GitHistory, source: Path) -> None:
    assert not Path(history.mirror(str(source))).exists()
    assert resolved(history, source, "v1.0") == git(source, "rev-parse", "v1.0")
    assert (Path(history.mirror(str(source))) / "HEAD").is_file()


def test_a_check_says_what_may_be_read_without_reading_it(mirrors: Path, tmp_path: Path) -> None:
    history = GitHistory(mirrors, allow_file=False, addresses=loopback())
    history.check("https://no-such-host.invalid/a")
    with pytest.raises(RepositoryUnavailable, match="own disk"):
        history.check(str(tmp_path))
    assert left(mirrors) == []


def test_what_does_not_exist_leaves_nothing(history: GitHistory, mirrors: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for path in (tmp_path / "nothing", tmp_path / "plain"):
        with pytest.raises(RepositoryUnavailable, match=f"{path} does not exist, or is no git repository") as caught:
            history.refresh(str(path))
        assert caught.value.field == "repo"
        assert caught.value.advice
    assert left(mirrors) == []


def test_a_source_that_goes_away_keeps_its_mirror(history: GitHistory, source: Path, mirrors: Path) -> None:
    history.refresh(str(source))
    before = left(mirrors)
    source.rename(source.with_name("moved"))
    with pytest.raises(RepositoryUnavailable, match="does not exist"):
        history.refresh(str(source))
    assert left(mirrors) == before
    assert history.commits(str(source), [resolved(history, source, "main")])


def test_an_empty_repository_has_no_ref_to_name_until_it_is_filled(history: GitHistory, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "empty")
    history.refresh(str(empty))
    history.refresh(str(empty))
    with pytest.raises(UnknownRef, match="'HEAD'") as caught:
        resolved(history, empty, "HEAD")
    assert "neither branches nor tags" in caught.value.advice
    first = add(empty)
    history.refresh(str(empty))
    assert resolved(history, empty, "HEAD") == first


def test_a_shallow_source_is_refused_with_what_to_do(
    history: GitHistory, source: Path, tmp_path: Path, mirrors: Path
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{source}", "shallow")
    with pytest.raises(RepositoryUnavailable, match="shallow") as caught:
        history.refresh(str(tmp_path / "shallow"))
    assert "--unshallow" in caught.value.advice
    assert left(mirrors) == []


def test_a_source_that_became_shallow_is_refused_too(history: GitHistory, source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "--quiet", f"file://{source}", "copy")
    history.refresh(str(copy))
    add(source)
    add(source)
    git(copy, "fetch", "--quiet", "--depth=1", "origin")
    git(copy, "reset", "--quiet", "--hard", "origin/main")
    with pytest.raises(RepositoryUnavailable, match="shallow"):
        history.refresh(str(copy))


def test_a_grafted_source_is_refused_and_a_replaced_commit_is_the_real_one(
    history: GitHistory, source: Path, tmp_path: Path
) -> None:
    head, root = git(source, "rev-parse", "main"), git(source, "rev-list", "--max-parents=0", "main")
    git(source, "replace", "--graft", head, root)
    assert git(source, "rev-list", "--count", "main") == "2"
    history.refresh(str(source))
    git(Path(history.mirror(str(source))), "replace", "--graft", head, root)
    assert len(history.range(str(source), (root,), head)) == 4
    git(source, "replace", "-d", head)
    (source / ".git" / "info").mkdir(exist_ok=True)
    (source / ".git" / "info" / "grafts").write_text(f"{head} {root}\n")
    with pytest.raises(RepositoryUnavailable, match="objects are missing"):
        GitHistory(tmp_path / "others", allow_file=True).refresh(str(source))


def test_a_source_of_another_user_is_no_obstacle(
    history: GitHistory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    history.refresh(str(source))
    newer = add(source)
    history.refresh(str(source))
    assert resolved(history, source, "main") == newer


def test_neither_the_users_settings_nor_hooks_nor_a_hooks_environment_matter(
    history: GitHistory, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks, marker = tmp_path / "template" / "hooks", tmp_path / "marker"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)
    elsewhere = f'[url "{tmp_path}/elsewhere"]\n\tinsteadOf = {source}\n'
    (tmp_path / ".gitconfig").write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n{elsewhere}"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "not-here"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "not-here"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/dev/null/x")
    history.refresh(str(source))
    shutil.copytree(hooks, Path(history.mirror(str(source))) / "hooks", dirs_exist_ok=True)
    newer = add(source)
    history.refresh(str(source))
    assert resolved(history, source, "main") == newer
    assert not marker.exists()


def test_a_repository_over_https_is_mirrored(server: https_server.GitServer, mirrors: Path, source: Path) -> None:
    history = GitHistory(mirrors, allow_file=False, addresses=loopback())
    url = server.url("source/.git")
    history.refresh(url)
    newer = add(source)
    history.refresh(url)
    assert resolved(history, url, "main") == newer
    with pytest.raises(RepositoryUnavailable, match="does not exist"):
        history.refresh(server.url("nothing"))


def test_a_host_whose_certificate_nobody_vouches_for_is_refused(
    server: https_server.GitServer, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_SSL_CAINFO")
    with pytest.raises(RepositoryUnavailable, match="certificate is not trusted"):
        history.refresh(server.url("source/.git"))


def test_a_repository_that_needs_a_password_is_refused_without_asking_for_one(
    source: Path, tmp_path: Path, mirrors: Path, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    askpass = tmp_path / "askpass"
    askpass.write_text(f"#!/bin/sh\ntouch {asked}\necho x\n")
    askpass.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(askpass))
    with https_server.serve(source.parent, tmp_path, password="open sesame") as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        for credentials in ("", "ada:wrong-secret"):
            with pytest.raises(RepositoryUnavailable, match="does not exist, or needs a password") as caught:
                history.refresh(served.url("source/.git", credentials))
            assert "wrong-secret" not in f"{caught.value} {caught.value.value} {caught.value.advice}"
    assert left(mirrors) == []
    assert not asked.exists()


def test_a_password_in_the_address_opens_the_repository_and_is_kept_nowhere(
    source: Path, tmp_path: Path, mirrors: Path, history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with https_server.serve(source.parent, tmp_path, password="open-sesame") as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        url = served.url("source/.git", "ada:open-sesame")
        history.refresh(url)
        newer = add(source)
        history.refresh(url)
        assert resolved(history, url, "main") == newer
        with pytest.raises(UnknownRef) as caught:
            resolved(history, url, "nothing")
        assert "open-sesame" not in str(caught.value)
        with pytest.raises(RepositoryUnavailable):
            history.refresh(served.url("source/.git"))
    kept = [path for path in mirrors.rglob("*") if path.is_file() and b"open-sesame" in path.read_bytes()]
    assert kept == []
    assert all("open-sesame" not in name for name in left(mirrors))


def test_a_repository_over_the_git_protocol_is_mirrored(source: Path, history: GitHistory) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--base-path={source.parent}", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"]
    daemon = subprocess.Popen(["git", "daemon", "--verbose", *options], env=QUIET, stderr=subprocess.PIPE)
    try:
        assert daemon.stderr is not None
        assert b"Ready to rumble" in daemon.stderr.readline()
        history.refresh(f"git://127.0.0.1:{port}/source/.git")
        with pytest.raises(RepositoryUnavailable, match="does not exist"):
            history.refresh(f"git://127.0.0.1:{port}/nothing")
    finally:
        daemon.terminate()
        daemon.communicate()
    with pytest.raises(RepositoryUnavailable, match="does not answer"):
        history.refresh(f"git://127.0.0.1:{port}/source/.git")


def test_a_repository_over_ssh_is_mirrored_and_nothing_is_asked(source: Path, mirrors: Path, tmp_path: Path) -> None:
    """The client is a stand-in that runs the command here; it gets what OpenSSH would get."""
    fake, seen = tmp_path / "ssh", tmp_path / "seen"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{seen}\nfor last; do :; done\nexec sh -c "$last"\n')
    fake.chmod(0o755)
    history = GitHistory(mirrors, allow_file=False, ssh=str(fake), addresses=loopback({"example.org": "127.0.0.1"}))
    for repo in (f"git@example.org:{source}", f"ssh://git@example.org:2222{source}"):
        history.refresh(repo)
        assert resolved(history, repo, "main") == git(source, "rev-parse", "main")
    connected = [line for line in seen.read_text().splitlines() if not line.startswith("-G ")]
    assert len(connected) == 2 and all("BatchMode=yes" in line for line in connected)
    assert all("-o HostName=127.0.0.1 " in line and "-o CheckHostIP=no " in line for line in connected)
    assert "HostKeyAlias=example.org " in connected[0] and "HostKeyAlias=[example.org]:2222 " in connected[1]


def test_a_host_that_does_not_exist_is_named_as_such(history: GitHistory, mirrors: Path) -> None:
    for repo in ("git@no-such-host.invalid:a/b.git", "https://no-such-host.invalid/a/b.git"):
        with pytest.raises(RepositoryUnavailable, match="is on a host that cannot be found"):
            history.refresh(repo)
    assert left(mirrors) == []


def test_threads_and_processes_that_want_one_repository_at_once_clone_it_once(
    server: https_server.GitServer, mirrors: Path, history: GitHistory
) -> None:
    url = server.url("source/.git")
    server.gate.clear()
    others = [
        subprocess.Popen([sys.executable, "-c", REFRESH, str(mirrors), url], stderr=subprocess.PIPE) for _ in range(2)
    ]
    with ThreadPoolExecutor(6) as pool:
        mine = [pool.submit(history.refresh, url) for _ in range(6)]
        assert server.asked.wait(60)
        server.gate.set()
        for one in mine:
            one.result()
    for process in others:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    assert server.commands.count("fetch") == 1
    # One for the clone, and one for each of the seven that follow, did they not share.
    assert server.commands.count("ls-refs") < 1 + 7
    assert [name.rpartition(".")[2] for name in left(mirrors)] == ["git", "lock"]


def test_what_was_asked_for_before_the_last_fetch_began_needs_no_other_one(
    server: https_server.GitServer, mirrors: Path, history: GitHistory, source: Path
) -> None:
    url, now = server.url("source/.git"), datetime(2026, 1, 1, 12, tzinfo=UTC)
    others = [GitHistory(mirrors, allow_file=False, addresses=loopback()) for _ in range(2)]
    history.refresh(url)
    newer = add(source)
    del server.commands[:]
    with ThreadPoolExecutor(10) as pool:
        asked = [Asked(now - timedelta(seconds=number), now) for number in range(50)]
        list(pool.map(lambda one: others[one.at.second % 2].refresh(url, asked=one), asked))
    assert server.commands.count("fetch") == 1
    assert resolved(history, url, "main") == newer


def test_what_is_asked_for_while_a_fetch_is_under_way_sees_what_came_since(history: GitHistory, source: Path) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    history.refresh(str(source), asked=Asked(now, now))
    newer = add(source)
    history.refresh(str(source), asked=Asked(now, now + timedelta(seconds=9)))
    with pytest.raises(UnknownRef):
        resolved(history, source, newer[:12])
    later = now + timedelta(microseconds=1)
    history.refresh(str(source), asked=Asked(later, later))
    assert resolved(history, source, "main") == newer


def test_a_mirror_of_an_older_service_is_brought_up_to_date(history: GitHistory, source: Path, mirrors: Path) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    history.refresh(str(source), asked=Asked(now, now))
    (lock,) = mirrors.glob("*.lock")
    lock.write_text(f"{1:020d} {1:020d}\n")
    newer = add(source)
    history.refresh(str(source), asked=Asked(now, now))
    assert resolved(history, source, "main") == newer


def test_a_service_killed_while_it_clones_leaves_a_lock_only_as_long_as_its_git_lives(
    server: https_server.GitServer, mirrors: Path, history: GitHistory, source: Path
) -> None:
    url = server.url("source/.git")
    server.gate.clear()
    killed = subprocess.Popen([sys.executable, "-c", REFRESH, str(mirrors), url])
    assert server.asked.wait(60)
    killed.kill()
    killed.wait()
    assert any(".new-" in name for name in left(mirrors))
    server.gate.set()
    history.refresh(url)
    assert resolved(history, url, "main") == git(source, "rev-parse", "main")
    assert [name.rpartition(".")[2] for name in left(mirrors)] == ["git", "lock"]


def test_lock_files_that_a_crash_left_in_a_mirror_do_not_stop_it(history: GitHistory, source: Path) -> None:
    history.refresh(str(source))
    mirror = Path(history.mirror(str(source)))
    newer = add(source)
    (mirror / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    for name in ("packed-refs.lock", "refs/heads/main.lock"):
        (mirror / name).touch()
    git(source, "branch", "-D", "side")
    history.refresh(str(source))
    assert resolved(history, source, "main") == newer


def test_a_broken_mirror_is_our_fault_and_not_the_users(history: GitHistory, source: Path) -> None:
    history.refresh(str(source))
    (Path(history.mirror(str(source))) / "HEAD").unlink()
    with pytest.raises(MirrorFailed, match="mirror"):
        history.refresh(str(source))


def test_a_file_too_large_for_the_disk_is_our_fault_and_leaves_nothing(mirrors: Path, tmp_path: Path) -> None:
    noise = os.urandom(200_000).hex()
    build_repository(tmp_path / "big", [NewCommit(files={"noise": noise})])
    program = LITTLE_ROOM + REFRESH
    command = [sys.executable, "-B", "-c", program, str(mirrors), str(tmp_path / "big")]
    done = subprocess.run(command, capture_output=True)
    assert b"MirrorFailed: the mirror of" in done.stderr
    assert left(mirrors) == []


#: Said by git 2.39 on a file system with no room left.
@pytest.mark.parametrize(
    "said",
    [
        "fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output",
        "error: failed to write new configuration file /var/mirrors/x.new-1/config.lock\nfatal: could not set 'a.b'",
        "fatal: cannot create thread: Cannot allocate memory",
    ],
)
def test_a_full_disk_is_our_fault(said: str) -> None:
    assert isinstance(error_of("https://h/r", Output(128, b"", said), Path("/var/mirrors")), MirrorFailed)


def test_a_full_disk_of_the_server_is_not_ours() -> None:
    said = "remote: fatal: write error: No space left on device\nfatal: the remote end hung up unexpectedly"
    found = error_of("https://ada:secret@h/r", Output(128, b"", said), Path("/var/mirrors"))
    assert isinstance(found, RepositoryUnavailable)
    assert "secret" not in str(found)


def test_mirrors_of_different_addresses_never_share_a_folder(history: GitHistory, source: Path, tmp_path: Path) -> None:
    (tmp_path / "b").symlink_to(source)
    addresses = [str(source), f"{source}/", f"file://{source}", str(tmp_path / "b")]
    assert len({history.mirror(address) for address in addresses}) == 4
    assert all("source" in Path(history.mirror(address)).name for address in addresses[:3])


def test_readers_do_not_wait_for_an_update_that_is_under_way(history: GitHistory, source: Path, mirrors: Path) -> None:
    history.refresh(str(source))
    with next(mirrors.glob("*.lock")).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert resolved(history, source, "main") == git(source, "rev-parse", "main")
