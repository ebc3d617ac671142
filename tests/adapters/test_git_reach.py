"""Git goes where was checked, over every transport, and follows nobody elsewhere."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.adapters.addresses import Addresses
from service.adapters.git_history import GitHistory
from service.adapters.git_reach import reach
from service.domain.errors import RepositoryUnavailable
from tests.adapters import https_server
from tests.reached import LOOPBACK, loopback
from tests.repositories import NewCommit, build_repository


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[https_server.GitServer]:
    folder = tmp_path_factory.mktemp("served")
    build_repository(folder / "source", [NewCommit("first"), NewCommit("second")])
    with https_server.serve(folder, folder, names=("git.example.org",)) as server:
        yield server


@pytest.fixture
def trusted(served: https_server.GitServer, monkeypatch: pytest.MonkeyPatch) -> https_server.GitServer:
    monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
    monkeypatch.setenv("SSL_CERT_FILE", str(served.certificate))
    del served.commands[:]
    return served


def history(folder: Path, addresses: Addresses) -> GitHistory:
    return GitHistory(folder / "mirrors", allow_file=False, addresses=addresses)


def test_git_connects_to_the_address_that_was_checked_whatever_the_name_means_meanwhile(
    trusted: https_server.GitServer, tmp_path: Path
) -> None:
    """No other resolver than this one knows the name."""
    url = trusted.url("source/.git").replace("127.0.0.1", "git.example.org")
    mirrors = history(tmp_path, loopback({"git.example.org": "127.0.0.1"}))
    mirrors.refresh(url)
    assert mirrors.resolve(url, "HEAD", field="good").subject == "second"
    assert trusted.commands.count("fetch") == 1


@pytest.mark.parametrize(
    "repo",
    [
        "https://{host}:{port}/source/.git",
        "https://2130706433:{port}/source/.git",
        "https://evil.example.org:{port}/source/.git",
        "git://evil.example.org:{port}/source",
        "ssh://git@evil.example.org:{port}/source",
        "git@evil.example.org:source",
        "git@localhost:source",
        "https://[::1]:{port}/source/.git",
        "https://[::ffff:127.0.0.1]:{port}/source/.git",
    ],
)
def test_this_machine_is_no_repository_unless_it_is_allowed(
    trusted: https_server.GitServer, tmp_path: Path, repo: str
) -> None:
    strict = Addresses(resolve=lambda host, port: ("127.0.0.1",), proxies=dict)
    with pytest.raises(RepositoryUnavailable, match="in no public network") as caught:
        history(tmp_path, strict).refresh(repo.format(host="127.0.0.1", port=trusted.port))
    assert "FIRSTBAD_PRIVATE_NETWORKS" in caught.value.advice and caught.value.field == "repo"
    assert not any(path.suffix == ".git" for path in (tmp_path / "mirrors").iterdir())


def test_a_literal_address_and_a_host_that_is_not_allowed_are_refused_as_soon_as_they_are_submitted(
    tmp_path: Path,
) -> None:
    def never(host: str, port: int) -> tuple[str, ...]:
        raise AssertionError("nothing is looked up for this")

    some = history(tmp_path, Addresses(("github.com",), resolve=never, proxies=dict))
    some.check("https://github.com/a/b")
    some.check("git@github.com:a/b")
    for repo in ("https://10.0.0.1/a", "https://gitlab.com/a/b", "git@github.com.evil.org:a/b", "ssh://u@127.1/a"):
        with pytest.raises(RepositoryUnavailable):
            some.check(repo)


@pytest.mark.parametrize("user", ["a@good.example.org", "a\\@good.example.org", 'a"b', "a[b]"])
def test_nobody_reads_another_host_out_of_an_address(tmp_path: Path, user: str) -> None:
    with pytest.raises(RepositoryUnavailable):
        history(tmp_path, loopback(proxies=dict)).check(f"https://{user}@127.0.0.1/a")


class Moved(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(301)
        self.send_header("Location", self.server.to + "/info/refs?service=git-upload-pack")  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def moved(trusted: https_server.GitServer) -> Iterator[SimpleNamespace]:
    with https_server.over_tls(ThreadingHTTPServer(("127.0.0.1", 0), Moved), trusted) as server:
        server.to = trusted.url("source/.git")  # type: ignore[attr-defined]
        yield SimpleNamespace(url=f"https://127.0.0.1:{server.server_port}/old.git", server=server)


def test_a_redirect_is_not_followed_and_where_it_leads_is_told(
    trusted: https_server.GitServer, moved: SimpleNamespace, tmp_path: Path
) -> None:
    with pytest.raises(RepositoryUnavailable, match="has moved to another address, which is not followed") as caught:
        history(tmp_path, loopback(proxies=dict)).refresh(moved.url)
    assert trusted.url("source/.git") in caught.value.advice
    assert trusted.commands == []


def test_what_a_redirect_says_is_shown_only_where_it_can_be(moved: SimpleNamespace, tmp_path: Path) -> None:
    moved.server.to = "https://ann:geheim@evil.example.org/\x07"
    with pytest.raises(RepositoryUnavailable) as caught:
        history(tmp_path, loopback(proxies=dict)).refresh(moved.url)
    assert caught.value.advice == "give the address that it has now"


class Proxy(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_error(502)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.0/8,git.example.org")
    yield server.asked  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


def test_a_proxy_gets_the_name_and_nothing_is_looked_up_here(proxy: list[str], tmp_path: Path) -> None:
    def never(host: str, port: int) -> tuple[str, ...]:
        raise AssertionError("the proxy looks it up")

    mirrors = history(tmp_path, Addresses(resolve=never))
    with pytest.raises(RepositoryUnavailable):
        mirrors.refresh("https://code.example.org/a.git")
    assert set(proxy) == {"code.example.org:443"}
    for repo in ("https://localhost/a.git", "https://10.0.0.1/a.git"):
        with pytest.raises(RepositoryUnavailable, match="in no public network"):
            mirrors.refresh(repo)
    assert set(proxy) == {"code.example.org:443"}


def test_what_goes_past_the_proxy_is_checked(proxy: list[str], trusted: https_server.GitServer, tmp_path: Path) -> None:
    url = trusted.url("source/.git").replace("127.0.0.1", "git.example.org")
    here = Addresses(resolve=lambda host, port: ("127.0.0.1",))
    with pytest.raises(RepositoryUnavailable, match="in no public network"):
        history(tmp_path / "strict", here).refresh(url)
    history(tmp_path / "allowed", Addresses(private=(LOOPBACK,), resolve=here.resolve)).refresh(url)
    assert proxy == [] and trusted.commands.count("fetch") == 1


def test_openssh_is_told_the_address_and_whose_key_it_must_find(tmp_path: Path) -> None:
    ssh = _settings(tmp_path, "Host work\n  HostName git.example.org\n  Port 2222\n  User ops\n")
    found = reach("git@work:a/b.git", loopback({"git.example.org": "127.0.0.1"}), ssh)
    assert found.url == "git@work:a/b.git" and found.protocol == "ssh"
    shown = subprocess.run(f"{ssh} {found.ssh} -G git@work", shell=True, capture_output=True, text=True, check=True)
    settings = dict(line.split(" ", 1) for line in shown.stdout.splitlines() if " " in line)
    assert (settings["hostname"], settings["port"]) == ("127.0.0.1", "2222")
    assert settings["hostkeyalias"] == "[git.example.org]:2222"
    with pytest.raises(RepositoryUnavailable, match=r"git\.example\.org, which is 127\.0\.0\.1,"):
        reach("git@work:a/b.git", Addresses(resolve=lambda host, port: ("127.0.0.1",)), ssh)


def test_where_the_operators_ssh_goes_through_another_host_that_one_finds_the_address(tmp_path: Path) -> None:
    def never(host: str, port: int) -> tuple[str, ...]:
        raise AssertionError("the other host looks it up")

    ssh = _settings(tmp_path, "Host *.inner\n  ProxyJump gate.example.org\n")
    assert reach("git@code.inner:a/b.git", Addresses(resolve=never), ssh).ssh == ""
    with pytest.raises(RepositoryUnavailable):
        reach("git@code.inner:a/b.git", Addresses(("github.com",), resolve=never), ssh)


def _settings(folder: Path, text: str) -> str:
    (folder / "config").write_text(text)
    return f"ssh -F {folder / 'config'}"


def test_nothing_of_a_command_stands_where_all_of_the_machine_may_read_it(
    trusted: https_server.GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git in front of the real one that notes its arguments."""
    noted, real = tmp_path / "noted", subprocess.check_output(["which", "git"], text=True).strip()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f'#!/bin/sh\necho "$@" >>{noted}\nexec {real} "$@"\n')
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("https_proxy", "http://ann:geheim@proxy.example.org:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    history(tmp_path, loopback()).refresh(trusted.url("source/.git"))
    with pytest.raises(RepositoryUnavailable):
        history(tmp_path, loopback()).refresh("https://code.example.org/a.git")
    assert "code.example.org" in noted.read_text() and "geheim" not in noted.read_text()
