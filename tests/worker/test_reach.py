"""A node reaches the repositories that the service would, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters import addresses
from tests.adapters import https_server
from tests.repositories import NewCommit, build_repository
from worker.build import reach
from worker.build.reach import Reach
from worker.build.source import Sources
from worker.contract import Source
from worker.errors import NodeFault
from worker.run.stop import Stop
from worker.settings import Settings

SSH = "ssh -F /dev/null"
LOOPBACK = ip_network("127.0.0.0/8")


def here(host: str, port: int) -> tuple[str, ...]:
    return ("127.0.0.1",)


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_nodes_and_the_service_agree_on_what_is_public(address: IPv4Address | IPv6Address) -> None:
    assert reach.is_public(address) == addresses.is_public(address)
    assert reach.within(address) == addresses.within(address)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::ffff:0:0", "64:ff9b::", "::", "2000::", "2002::", "fe80::"]))
def test_they_agree_where_one_stands_within_another(number: int, prefix: str) -> None:
    found = IPv6Address(int(IPv6Address(prefix)) | number)
    assert reach.is_public(found) == addresses.is_public(found)


@pytest.mark.parametrize(
    "repo",
    [
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://evil.example.org/a",
        "https://a@b@127.0.0.1/a",
        "git://evil.example.org/a",
        "ssh://git@evil.example.org/a",
        "git@localhost:a",
        "https://[::1]/a",
    ],
)
def test_a_node_is_no_repository_unless_it_is_allowed(repo: str) -> None:
    with pytest.raises(NodeFault):
        Reach(resolve=here).way(repo, SSH)


def test_only_hosts_that_the_operator_named_are_reached() -> None:
    some = Reach(("*.example.org",), (LOOPBACK,), here)
    assert some.way("git@git.example.org:a/b", SSH).environment["GIT_SSH_COMMAND"] == (
        f"{SSH} -o HostName=127.0.0.1 -o HostKeyAlias=git.example.org -o CheckHostIP=no -o ProxyCommand=none"
    )
    with pytest.raises(NodeFault, match="none of those allowed on this node"):
        some.way("https://github.com/a/b", SSH)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[https_server.GitServer, str]]:
    folder = tmp_path_factory.mktemp("served")
    shas = build_repository(folder / "source", [NewCommit("first", files={"n": "1"})])
    with https_server.serve(folder, folder, names=("git.example.org",)) as server:
        yield server, shas[0]


def test_a_commit_is_fetched_from_the_address_that_was_checked(
    served: tuple[https_server.GitServer, str], tmp_path: Path
) -> None:
    """Nobody else knows the name."""
    server, sha = served
    url = server.url("source/.git").replace("127.0.0.1", "git.example.org")
    env = {**Settings().git_env(), "GIT_SSL_CAINFO": str(server.certificate)}
    sources = Sources(tmp_path / "git", env, reach=Reach((), (LOOPBACK,), here))
    sources.archive(Source(repo=url, sha=sha), tmp_path / "tree.tar", Stop())
    assert (tmp_path / "tree.tar").stat().st_size > 0
    strict = Sources(tmp_path / "other", env, reach=Reach(resolve=here))
    with pytest.raises(NodeFault, match="in no public network"):
        strict.archive(Source(repo=url, sha=sha), tmp_path / "tree.tar", Stop())
