"""What leaves the store by age and by size, the oldest first, and nothing that a bisection still needs.

Rows are kept: they say when a log was removed. The file goes by way of the outbox, in the transaction that says so, and
so it is removed however often we die in between.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice

from service.application import builds, evict
from service.application.aging import Owner
from service.application.ports import Bisections, StoreBusy, Stored, Transaction
from service.application.work import Work

log = logging.getLogger(__name__)
#: Seconds between two looks at what is old; so many rows a transaction, and so many of these at one look.
EVERY_S = 3600.0
BATCH, BATCHES = 50, 10
LOGS, WHEELS, PASSING = "logs", "wheels", "tmp"
#: For so long a message that was delivered keeps its key, so that the same one is not posted again. So many go in a
#: transaction, and BATCHES of these at one look.
KEPT_MESSAGES, MESSAGES = timedelta(days=7), 500
#: A file that no row knows may be a worker's that is about to tell of it. This is the least that one is left alone.
YOUNG = timedelta(days=1)
_OWNER = re.compile(r"logs/(([^./]+)\.[0-9]+)\.")
_WHEEL = re.compile(r"wheels/([^/]+)/")


class Retention(Work):
    def _evict(self) -> None:
        """Keeps the wheels in the store within the policy's budget, and none for longer than it says."""
        policy, now = self.ports.policy, self.ports.clock.now()
        if policy.store_bytes is None and policy.keep_wheels_s is None:
            return
        with self.ports.bisections.transaction() as tx:
            kept = tx.kept()
        gone = evict.aged(kept, now, policy.keep_wheels_s)
        if policy.store_bytes is not None:
            old = frozenset(gone)
            gone += evict.surplus((wheel for wheel in kept if wheel not in old), policy.store_bytes)
        removed = 0
        for wheel in gone:
            with self._work() as tx:
                removed += evict.evict(tx, wheel, now)
        if removed:
            log.info("removed %d wheels: FIRSTBAD_KEEP_WHEELS or FIRSTBAD_STORE_BUDGET", removed)

    def _forget_messages(self) -> None:
        before = self.ports.clock.now() - KEPT_MESSAGES
        for _ in range(BATCHES):
            with self.ports.bisections.transaction() as tx:
                if tx.forget_delivered(before, MESSAGES) < MESSAGES:
                    return

    def _retain_logs(self) -> None:
        """Once in EVERY_S, by whoever comes first; what is more than one look takes is left to the next sweep."""
        policy, now = self.ports.policy, self.ports.clock.now()
        if policy.keep_logs_s is None and policy.log_bytes is None:
            return
        with self.ports.bisections.transaction() as tx:
            if not tx.claim(LOGS, EVERY_S, now):
                return
        try:
            done = self._by_age(policy.keep_logs_s, now) and self._by_size(policy.log_bytes, now)
        except StoreBusy as error:
            log.warning("the store's logs are looked at again later: %s", error)
            return
        if not done:
            with self.ports.bisections.transaction() as tx:
                tx.due_again(LOGS)

    def _by_age(self, most_s: float | None, now: datetime) -> bool:
        """Whether none is left."""
        if most_s is None:
            return True
        before = now - timedelta(seconds=most_s)
        ends = [self._of_age(kind, before, now) for kind in ("probe", "build")]
        if gone := sum(count for _, count in ends):
            log.info("removed the logs of %d runs that ended before %s: FIRSTBAD_KEEP_LOGS", gone, _minute(before))
        return all(done for done, _ in ends)

    def _of_age(self, kind: str, before: datetime, now: datetime) -> tuple[bool, int]:
        """Whether none is left, and how many owners lost their logs."""
        after, gone = None, 0
        for _ in range(BATCHES):
            with self._work() as tx:
                found = tx.old_logs(kind, before, after, BATCH)
                gone += forget(tx, found, now)
            if len(found) < BATCH:
                return True, gone
            assert found[-1].finished_at is not None
            after = (found[-1].finished_at, found[-1].id)
        return False, gone

    def _by_size(self, most: int | None, now: datetime) -> bool:
        if most is None:
            return True
        stored = sorted(self.ports.artifacts.stored(LOGS), key=lambda file: (file.at, file.path))
        over = sum(file.bytes for file in stored) - most
        if over > 0 and (lost := frozenset(orphans(self.ports.bisections, stored, now))):
            # Nothing that is known has to leave for them.
            several = sum(file.bytes for file in lost)
            log.warning("%d bytes of logs are no bisection's: firstbad store tidy removes them", several)
            over, stored = over - several, [file for file in stored if file not in lost]
        freed, done = self._oldest(stored, over, now)
        if freed:
            log.info("removed %d bytes of logs, the oldest first: FIRSTBAD_LOG_BUDGET", freed)
        if done and over > freed:
            text = "logs that live bisections need, or that no row knows, are %d bytes over the budget"
            log.warning(text, over - freed)
        return done

    def _oldest(self, stored: Collection[Stored], over: int, now: datetime) -> tuple[int, bool]:
        """Bytes that were freed; False when there is more to do at the next look."""
        sizes, freed = {file.path: file.bytes for file in stored}, 0
        for number, files in enumerate(_batches(stored)):
            if over <= freed or number == BATCHES:
                return freed, over <= freed
            with self._work() as tx:
                freed += drop(tx, files, sizes, over - freed, now)
        return freed, True


def forget(tx: Transaction, owners: Iterable[Owner], now: datetime) -> int:
    """Takes their logs out of the store, once this is committed; of how many that have any."""
    gone = tuple(owner for owner in owners if owner.paths)
    tx.logs_removed(gone, now)
    for owner in gone:
        for path in owner.paths:
            builds.remove(tx, path, now)
    return len(gone)


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def drop(tx: Transaction, files: Iterable[Stored], sizes: dict[str, int], over: int, now: datetime) -> int:
    """Of these files, the oldest first, as many owners' logs as make up so many bytes; how many these are."""
    several = tuple(files)
    owners = {path: owner for owner in tx.owners(_owner_ids(several)) for path in owner.paths}
    freed, gone = 0, set[str]()
    for file in several:
        owner = owners.get(file.path)
        if owner is None or owner.live or owner.id in gone or freed >= over:
            continue
        gone.add(owner.id)
        freed += sum(sizes.pop(path, 0) for path in owner.paths)
        if not owner.removed:
            forget(tx, [owner], now)
    return freed


def orphans(bisections: Bisections, files: Iterable[Stored], before: datetime) -> Iterator[Stored]:
    """Files that no row knows, of attempts that were lost. Those written since are left alone, and all of what is under
    way, since its next attempt may be."""
    old = (file for file in files if file.at < before)
    for batch in _batches(old):
        with bisections.transaction() as tx:
            owners = {owner.id: owner for owner in tx.owners(_owner_ids(batch))}
            wheels = tx.wheels({match[1] for file in batch if (match := _WHEEL.match(file.path))})
        yield from (file for file in batch if _is_orphan(file.path, owners, wheels))


def _is_orphan(path: str, owners: dict[str, Owner], wheels: dict[str, tuple[str | None, bool]]) -> bool:
    if match := _OWNER.match(path):
        owner = owners.get(match[1]) or owners.get(match[2])
        return owner is None or not owner.live and (owner.removed or path not in owner.paths)
    if match := _WHEEL.match(path):
        kept, live = wheels.get(match[1], (None, False))
        return not live and kept != path
    return path.startswith(f"{PASSING}/")


def _owner_ids(files: Iterable[Stored]) -> set[str]:
    """Of a probe b57.4 the log of attempt 1 is logs/b57.4.1.log.zst, of a build logs/KEY.1.log.zst."""
    return {id for file in files if (match := _OWNER.match(file.path)) for id in match.groups()}


def _batches(files: Iterable[Stored]) -> Iterator[tuple[Stored, ...]]:
    left = iter(files)
    while batch := tuple(islice(left, BATCH)):
        yield batch
