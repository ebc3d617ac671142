"""The network between workers and Redis: it stalls, it breaks, and it knows what it carried."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.proxy import Commands, Proxy
from tests.redis_server import Broker

RESULT = json.dumps({"headers": {"task": "firstbad.probed"}, "body": ""}).encode()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    made = Proxy(broker.port)
    yield made
    made.close()


def client(proxy: Proxy, timeout_s: float = 30.0) -> redis.Redis:
    return redis.Redis(port=proxy.port, socket_timeout=timeout_s, retry=None)


def packed(command: list[bytes]) -> bytes:
    parts = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in command)
    return b"*%d\r\n" % len(command) + parts


@given(st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=4), max_size=5), st.data())
def test_commands_are_read_however_they_are_cut_into_pieces(commands: list[list[bytes]], data: st.DataObject) -> None:
    stream, reader, found = b"".join(map(packed, commands)), Commands(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.read(stream[:size])
        stream = stream[size:]
    assert found == commands


def test_results_are_remembered_and_nothing_else(proxy: Proxy) -> None:
    other = RESULT.replace(b"firstbad.probed", b"firstbad.node")
    with client(proxy) as sender:
        sender.lpush("control", RESULT, other)
        sender.lpush("control", other)
        sender.lpush("elsewhere", RESULT)
        with sender.pipeline(transaction=True) as pipe:
            pipe.lpush("control", RESULT)
            pipe.execute()
    assert proxy.carried == [RESULT]


@pytest.mark.parametrize("broken", [False, True])
def test_nothing_goes_through_a_network_that_is_cut(proxy: Proxy, broker: Broker, broken: bool) -> None:
    with client(proxy) as sender, socket.create_connection(("127.0.0.1", proxy.port)) as raw:
        assert sender.ping()
        raw.sendall(packed([b"PING"]))
        assert raw.recv(100) == b"+PONG\r\n"
        proxy.cut()
        raw.sendall(packed([b"SET", b"a", b"1"]))
        assert not broker.client().exists("a")
        proxy.mend(broken=broken)
        raw.settimeout(30.0)
        if broken:
            with contextlib.suppress(ConnectionResetError):
                assert raw.recv(100) == b""
        else:
            assert raw.recv(100) == b"+OK\r\n"
            assert broker.client().get("a") == "1"
