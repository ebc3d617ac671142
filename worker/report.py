"""What this node says of itself: when it comes, with each heartbeat, and when it leaves."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from typing import Literal

from worker.assembly import facts_of, store_fault
from worker.contract import VERSION, Held, NodeReport
from worker.pipeline import Site
from worker.reading import mismatch
from worker.run.hub import Hub
from worker.run.machine import hardware
from worker.settings import Settings

Event = Literal["booted", "alive", "left"]


class Reporter:
    """`refused`: the version of the last order that was of another one, until one comes that can be read."""

    def __init__(self, settings: Settings, site: Site) -> None:
        self._settings, self._site = settings, site
        self._hub = Hub(settings.model_cache)
        self._store_fault = store_fault(site.store)
        self.refused: object = None

    def report(self, event: Event, service: object, left: dict[str, str], adopted: Iterable[Held] = ()) -> NodeReport:
        """`service`: the version of the contract that it says it has, None when it does not say. `left`: facts about
        what a former life left."""
        if self._store_fault:
            # It may have been mended.
            self._store_fault = store_fault(self._site.store)
        return NodeReport(
            node=self._settings.node,
            event=event,
            slots=self._settings.slots,
            roles=self._settings.roles,
            facts={**self._facts(service), **left},
            gpus=self._site.gpus.inventory,
            labels=self._settings.labels,
            models=self._hub.models(),
            adopted=tuple(adopted),
        )

    def _facts(self, service: object) -> dict[str, str]:
        wrong = mismatch(service, self._settings.node) or mismatch(self.refused, self._settings.node)
        facts = {
            "hardware": hardware(),
            "firstbad": importlib.metadata.version("firstbad"),
            "contract": str(VERSION),
            "version.fault": wrong,
            "store.fault": self._store_fault,
        }
        for sandbox in self._site.sandboxes.values():
            facts.update({f"{sandbox.kind}.{name}": value for name, value in facts_of(sandbox).items()})
        return {name: value for name, value in facts.items() if value}
