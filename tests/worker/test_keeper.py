"""What a worker tells Redis of the orders that it takes, with a Redis that comes and goes."""

from __future__ import annotations

from tests.redis_server import Broker
from tests.waiting import eventually
from worker.contract import lease_key, sent_key, taken_key
from worker.node import Keeper, connect
from worker.run.stop import Stop


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
