"""Keeps what a node keeps within its budget, the longest unused goes first; and clears what nobody wants any more."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from worker.errors import NodeFault
from worker.kept import Item
from worker.outgoing import BROKEN
from worker.pipeline import Site
from worker.run import cgroups

log = logging.getLogger(__name__)

#: Seconds between two looks, and for which nothing goes after it was used: it may be about to be used.
EVERY_S, FRESH_S = 600.0, 600.0
#: For how long what could not be sent is kept for somebody to look at, and groups of workers that are gone.
BROKEN_S, GROUPS_S = 30 * 86_400.0, 86_400.0


class Tidy(threading.Thread):
    """`budget`: bytes for all caches together. Sizes are looked at again only where something was used since."""

    def __init__(self, site: Site, budget: int, every_s: float = EVERY_S, fresh_s: float = FRESH_S) -> None:
        super().__init__(name="tidy", daemon=True)
        self._site, self._budget, self._every_s, self._fresh_s = site, budget, every_s, fresh_s
        self._sizes: dict[str, tuple[float, int]] = {}
        self._over = threading.Event()

    def run(self) -> None:
        while True:
            self.tidy()
            if self._over.wait(self._every_s):
                return

    def close(self) -> None:
        self._over.set()

    def tidy(self) -> None:
        try:
            self._site.bin.empty()
            self._within_budget()
            self._broken()
            cgroups.remove_forgotten(GROUPS_S)
        except OSError as error:
            log.warning("what is kept could not be tidied up now: %s", error)

    def _within_budget(self) -> None:
        """Errors: OSError."""
        known = ((item, self._size(item)) for item in sorted(self._items(), key=lambda item: item.used_at))
        sized = [(item, size) for item, size in known if size is not None]
        self._sizes = {item.place: (item.used_at, size) for item, size in sized}
        total = sum(size for _, size in sized)
        for item, size in sized:
            if total <= self._budget or item.used_at > time.time() - self._fresh_s:
                return
            if _removed(item):
                total -= size
                log.info("%s was removed, unused for %.1f hours: %d bytes", item.place, _hours(item), size)

    def _size(self, item: Item) -> int | None:
        """None for what cannot be looked at now, as while the engine is away: the rest has its budget all the same."""
        known = self._sizes.get(item.place)
        if known is not None and known[0] == item.used_at:
            return known[1]
        try:
            return item.size()
        except NodeFault as fault:
            log.warning("%s cannot be looked at now: %s", item.place, fault)
            return None

    def _items(self) -> Iterator[Item]:
        site = self._site
        yield from chain(site.caches.items(), site.environments.items(), site.sources.items(site.bin.throw))
        for sandbox in site.sandboxes.values():
            # An engine that does not answer keeps its images.
            with contextlib.suppress(NodeFault):
                yield from sandbox.kept()

    def _broken(self) -> None:
        """Errors: OSError."""
        old = time.time() - BROKEN_S
        for path in Path(self._site.work_dir, "outgoing").glob(f"*{BROKEN}"):
            if path.stat().st_mtime < old:
                path.unlink()


def _removed(item: Item) -> bool:
    try:
        return item.remove()
    except NodeFault as fault:
        log.warning("%s cannot be removed now: %s", item.place, fault)
        return False


def _hours(item: Item) -> float:
    return (time.time() - item.used_at) / 3600
