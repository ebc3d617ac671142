"""Watching a log over a real Redis, where the test stands for the worker. With real runs: tests/worker/test_live.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.live_logs import Place, RedisLiveLogs
from service.application.ports import QueueUnavailable
from tests.redis_server import Broker
from worker.contract import Piece, lease_key, live_channel, watched_key

RUN = ("probe", "b1.1", 2)


def publish(broker: Broker, piece: Piece) -> int:
    """How many heard it."""
    return broker.client().publish(live_channel(*RUN), piece.packed())


def begun(broker: Broker, **patience: float) -> Iterator[bytes]:
    """One that watches a run which holds its lease."""
    broker.client().set(lease_key(*RUN), "node-1")
    pieces = RedisLiveLogs(broker.url, **patience).follow(*RUN)
    assert next(pieces) == b""
    return pieces


def something(pieces: Iterator[bytes]) -> bytes:
    return next(piece for piece in pieces if piece)


def test_who_asks_is_heard_before_the_worker_is_asked(broker: Broker) -> None:
    pieces = RedisLiveLogs(broker.url).follow(*RUN)
    assert not broker.client().exists(watched_key(*RUN)), "nothing is asked for before anybody reads"
    assert next(pieces) == b""
    assert broker.client().exists(watched_key(*RUN))
    assert publish(broker, Piece("s", 0, b"one\n\0\xff")) == 1
    assert something(pieces) == b"one\n\0\xff"
    pieces.close()
    assert publish(broker, Piece("s", 8, b"two")) == 0


def test_each_who_comes_gives_the_mark_another_name_and_others_keep_it(broker: Broker) -> None:
    client, first = broker.client(), begun(broker)
    name = client.get(watched_key(*RUN))
    second = begun(broker)
    other = client.get(watched_key(*RUN))
    assert other not in (name, None)
    for pieces in (first, second, first, second, first):
        next(pieces)
    assert client.get(watched_key(*RUN)) == other


def test_it_waits_for_an_attempt_that_has_not_begun(broker: Broker) -> None:
    pieces = RedisLiveLogs(broker.url, gone_s=0.1).follow(*RUN)
    assert [next(pieces) for _ in range(4)] == [b""] * 4
    broker.client().set(lease_key(*RUN), "node-1")
    publish(broker, Piece("s", 0, b"begins"))
    assert something(pieces) == b"begins"


def test_it_ends_some_time_after_the_lease_and_what_came_before_is_shown(broker: Broker) -> None:
    pieces = begun(broker, gone_s=1.5)
    broker.client().delete(lease_key(*RUN))
    publish(broker, Piece("s", 0, b"its last"))
    assert b"".join(pieces) == b"its last"


def test_a_broker_that_stays_away_is_told(broker: Broker) -> None:
    pieces = begun(broker, away_s=0.6)
    broker.stop()
    with pytest.raises(QueueUnavailable, match="the broker is away"):
        list(pieces)
    with pytest.raises(QueueUnavailable):
        list(RedisLiveLogs(broker.url, away_s=0.1).follow(*RUN))


def test_one_that_comes_back_is_heard_again(broker: Broker) -> None:
    pieces = begun(broker)
    publish(broker, Piece("s", 0, b"one\n"))
    assert something(pieces) == b"one\n"
    broker.stop()
    assert next(pieces) == b""
    broker.start()
    while not broker.client().exists(watched_key(*RUN)):
        assert next(pieces) == b""
    publish(broker, Piece("s", 0, b"one\ntwo\n"))
    publish(broker, Piece("s", 20, b"more\n"))
    assert something(pieces) == b"two\n"
    assert something(pieces) == b"\n[firstbad: 12 bytes left out here]\nmore\n"


def test_a_reader_that_the_broker_cut_off_comes_again(broker: Broker) -> None:
    pieces = begun(broker)
    client = broker.client()
    client.client_kill_filter(_type="pubsub")
    for _ in range(4):
        next(pieces)
    assert publish(broker, Piece("s", 0, b"heard")) == 1
    assert something(pieces) == b"heard"


@given(text=st.binary(min_size=1, max_size=200), turns=st.lists(st.tuples(st.integers(0, 199), st.integers(1, 200))))
def test_whatever_comes_twice_or_not_at_all_each_byte_is_shown_once_or_counted(
    text: bytes, turns: list[tuple[int, int]]
) -> None:
    place, known = Place(), 0
    place.of(Piece("s", 0, b"").packed())
    for start, length in turns:
        piece = text[start : start + length]
        left_out = b"\n[firstbad: %d bytes left out here]\n" % (start - known) if start > known else b""
        assert place.of(Piece("s", start, piece).packed()) == left_out + piece[max(0, known - start) :]
        known = max(known, start + len(piece))


def test_another_stream_is_shown_from_its_beginning() -> None:
    place = Place()
    assert place.of(Piece("one", 100, b"abc").packed()) == b"abc"
    assert place.of(Piece("two", 0, b"xyz").packed()) == b"xyz"
    assert place.of(None) == b""


def test_a_piece_comes_back_as_it_was() -> None:
    piece = Piece("name", 2**50, b"\n\0 5\n")
    assert Piece.unpacked(piece.packed()) == piece
    with pytest.raises(ValueError):
        Piece.unpacked(b"no piece")


def test_a_client_of_text_is_enough_to_publish(broker: Broker) -> None:
    """As the worker's is."""
    pieces = begun(broker)
    redis.Redis.from_url(broker.url, decode_responses=True).publish(live_channel(*RUN), Piece("s", 0, b"\xff").packed())
    assert something(pieces) == b"\xff"
