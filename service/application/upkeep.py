"""What is looked after now and then: what fell between, nodes, the store's budget, and whose turn it is."""

from __future__ import annotations

from service.application import nodes, sweep
from service.application.outbox import compose
from service.application.retention import Retention


class Upkeep(Retention):
    def sweep(self) -> None:
        """Mends what was lost on the way; safe at any time, from several processes at once.

        Errors: QueueUnavailable, and then nothing was touched.
        """
        with self.ports.watch.doing("sweep"):
            self._sweep()

    def _sweep(self) -> None:
        now = self.ports.clock.now()
        with self.ports.bisections.transaction() as tx:
            waiting = (*tx.undelivered(due=now), *tx.undelivered(due=now, removals=True))
            pending = tuple(compose(tx, message) for message in waiting)
            carried, limited = sweep.carried(tx), tx.limited(now)
            touched = set(sweep.to_go_on(tx, limited, now))
        self._deliver(pending)
        self._evict()
        self._retain_logs()
        self._forget_messages()
        missing = sweep.missing(carried, self.ports.queue)
        touched |= self._look_after_nodes()
        for ticket in sorted(ticket for ticket in carried if ticket.silent or ticket in missing):
            with self._work() as tx:
                touched |= sweep.put_back(tx, ticket, ticket in missing, self.ports.clock.now())
        for id in sorted(one.id for one in limited if one.past):
            with self._work() as tx:
                sweep.end_unprepared(tx, id, self.ports.clock.now())
        self._advance_all(touched)
        self._release_all()

    def _release_all(self) -> None:
        with self.ports.bisections.transaction() as tx:
            waiting = tx.waiting_queues()
        self._release(waiting)

    def _look_after_nodes(self) -> set[str]:
        """The broker may have forgotten who was taken out; and what waits for a node that is gone goes to any other."""
        with self._work() as tx:
            now = self.ports.clock.now()
            known = tx.nodes()
            stranded = nodes.stranded(tx, now)
            for probe in stranded:
                sweep.send_elsewhere(tx, probe, now)
        for node in known:
            self.ports.queue.take_out(node.name, out=bool(node.out))
        return {probe.bisection_id for probe in stranded}
