"""What a worker tells Redis of the orders that it takes, with a Redis that comes and goes."""

from __future__ import annotations

import pytest

from tests.redis_server import Broker
from tests.waiting import eventually
from worker.contract import SERVICE_KEY, lease_key, out_key, sent_key, taken_key
from worker.node import Keeper, Key, connect
from worker.run.stop import Stop


class Asked:
    """Has no results; says how often it was asked for them."""

    def __init__(self) -> None:
        self.often = 0

    def __call__(self) -> set[Key]:
        self.often += 1
        return set()


def test_an_order_that_was_taken_while_redis_was_away_counts_as_taken_when_it_is_back(broker: Broker) -> None:
    """Else it would count as waiting in the queue for as long as it may, and nobody would miss a lease meanwhile."""
    key, keeper = ("probe", "b1.1", 1), Keeper(connect(broker.url), "node-1", lambda out: None)
    broker.stop()
    assert keeper.take(key, Stop())
    broker.start()
    broker.client().set(sent_key(*key), "1")
    keeper.start()
    eventually(lambda: not broker.client().exists(sent_key(*key)))
    eventually(lambda: broker.client().exists(lease_key(*key)))
    assert broker.client().get(taken_key(*key)) == "node-1"
    assert not Keeper(connect(broker.url), "node-2", lambda out: None).take(key, Stop())
    keeper.close()
    keeper.join()


@pytest.mark.parametrize("said", ["\N{SUPERSCRIPT TWO}", "9" * 5000, b"\xff\xfe"])
def test_what_nobody_can_have_meant_in_redis_keeps_no_lease_from_being_renewed(
    broker: Broker, said: str | bytes
) -> None:
    key, keeper = ("probe", "b1.1", 1), Keeper(connect(broker.url), "node-1", lambda out: None)
    assert keeper.take(key, Stop())
    client = broker.client()
    client.set(SERVICE_KEY, said)
    client.set(out_key("node-1"), said)
    client.delete(lease_key(*key))
    keeper.start()
    try:
        eventually(lambda: client.exists(lease_key(*key)))
        client.set(out_key("node-1"), "1")
        client.set(SERVICE_KEY, "7")
        eventually(lambda: keeper.service == 7)
        assert keeper.is_alive()
    finally:
        keeper.close()
        keeper.join(30)


def test_a_redis_that_is_away_is_said_once(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    asked = Asked()
    keeper = Keeper(connect(broker.url), "node-1", lambda out: None, asked)
    keeper.start()
    try:
        eventually(lambda: keeper.service is None and asked.often > 0)
        broker.stop()
        before = asked.often
        eventually(lambda: "cannot be asked" in caplog.text)
        eventually(lambda: asked.often > before + 3)
        broker.start()
        eventually(lambda: "can be asked again" in caplog.text)
        assert caplog.text.count("leases may pass") == 1
    finally:
        keeper.close()
        keeper.join(30)


def test_what_has_a_result_is_neither_taken_nor_taken_up_again_and_counts_as_held(broker: Broker) -> None:
    ended, other = ("probe", "b1.1", 1), ("probe", "b1.2", 1)
    keeper = Keeper(connect(broker.url), "node-1", lambda out: None, lambda: {ended})
    assert not keeper.take(ended, Stop()) and not keeper.again(ended, Stop())
    assert keeper.take(other, Stop())
    assert {(held.kind, held.id, held.attempt) for held in keeper.held()} == {ended, other}
