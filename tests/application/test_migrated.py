"""What was under way when the schema went back and forth is carried on."""

from __future__ import annotations

from service.adapters.database import migrate
from service.domain.lifecycle import BisectionState, ProbeState
from tests.application.conftest import World


def test_what_waited_for_its_turn_is_sent_after_a_downgrade_and_an_upgrade(world: World, database_url: str) -> None:
    """0004 knows no turns: there all that is queued counts as sent, and the sweep finds what the queue has not."""
    id = world.submit().id
    world.workers.prepare(world.flow)
    world.flow.pause(id, "me")
    (probe,) = world.flow.probes(id)
    assert (probe.state, probe.sent_at) == (ProbeState.QUEUED, None)
    world.workers.probes.clear()
    migrate.downgrade(database_url, "0004")
    migrate.upgrade(database_url)
    world.workers.carries = False
    world.flow.sweep()
    world.clock.pass_(31)
    world.flow.sweep()
    world.workers.carries = True
    assert [order.probe for order in world.workers.probes] == [probe.id]
    world.workers.work(world.flow, world.truth(13))
    found = world.flow.bisection(id)
    assert found.state is BisectionState.FOUND and found.answer is not None
    assert found.answer.shas == (world.shas[13],)
