"""What a door asks to see: the part of the flow that changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from service.application import follow as following
from service.application import looks, queries
from service.application.curve import Curve
from service.application.lists import Page, Place, Sought
from service.application.queries import LogStream
from service.application.report import Report
from service.application.reports.findings import Findings
from service.application.work import Work
from service.domain.bisection import Bisection, Build, Event, Node, Probe
from service.domain.errors import NotFound
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState, BuildState
from service.domain.recipe import Recipe


class Reads(Work):
    def bisection(self, id: str) -> Bisection:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            return tx.bisection(id)

    def bisections(self, states: Collection[BisectionState] = (), limit: int = 50) -> tuple[Bisection, ...]:
        """Newest first."""
        return self.page(Sought(frozenset(states)), limit=limit).items

    def page(self, sought: Sought, after: Place | None = None, limit: int = 50) -> Page[Bisection]:
        with self.ports.bisections.reading() as tx:
            return tx.page(sought, after=after, limit=limit)

    def probes(self, id: str) -> tuple[Probe, ...]:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            tx.bisection(id)
            return tx.probes(id)

    def probe_page(self, id: str, after: int = 0, limit: int = 50) -> Page[Probe]:
        """By number. Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            tx.bisection(id)
            return tx.probe_page(id, after=after, limit=limit)

    def builds(self, id: str) -> tuple[Build, ...]:
        """Those that its probes want or wanted. Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            tx.bisection(id)
            return tx.builds_of(id)

    def build_page(
        self,
        states: Collection[BuildState] = (),
        id: str | None = None,
        after: Place | None = None,
        limit: int = 50,
    ) -> Page[Build]:
        """All, newest first; with the `id` of a bisection its own, oldest first. Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            if id is not None:
                tx.bisection(id)
            return tx.build_page(states, id, after=after, limit=limit)

    def build_of(self, key: str) -> Build:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            return queries.known_build(tx.build(key), key)

    def probe(self, id: str) -> Probe:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            return tx.probe(id)

    def report(self, id: str) -> Report:
        """Errors: NotFound."""
        return looks.report(self.ports, id)

    def findings(self, id: str) -> Findings:
        """Errors: NotFound."""
        return looks.findings(self.ports, id)

    def git_log(self, id: str) -> str:
        """As of `git bisect log`. Errors: NotFound."""
        return looks.git_log(self.ports, id)

    def curve(self, id: str) -> Curve:
        """Errors: NotFound, also where no metric was asked for."""
        return looks.curve(self.ports, id)

    def log(self, probe_id: str) -> LogStream:
        """Errors: NotFound; NotNow while the probe still runs."""
        with self.ports.bisections.reading() as tx:
            found = queries.log_of(tx.probe(probe_id), self.ports.policy.keep_logs_s)
        return LogStream(found.path, self.ports.artifacts.read(found.path), found.bytes)

    def build_log(self, key: str) -> LogStream:
        """Errors: NotFound; NotNow while the build is under way."""
        with self.ports.bisections.reading() as tx:
            found = queries.log_of_build(tx.build(key), key, self.ports.policy.keep_logs_s)
        return LogStream(found.path, self.ports.artifacts.read(found.path), found.bytes)

    def follow(self, probe_id: str) -> Iterator[bytes]:
        """The log of a probe as it is written, or as it was stored; nothing while it waits. Errors: NotFound."""
        keep_s = self.ports.policy.keep_logs_s
        return following.follow(self.ports, "probe", probe_id, lambda: following.of_probe(self.probe(probe_id), keep_s))

    def follow_build(self, key: str) -> Iterator[bytes]:
        """As `follow`, of the build of a wheel. Errors: NotFound."""

        def look() -> following.Standing:
            with self.ports.bisections.reading() as tx:
                return following.of_build(tx.build(key), key, self.ports.policy.keep_logs_s)

        return following.follow(self.ports, "build", key, look)

    def events(self, id: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """Oldest first. Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            tx.bisection(id)
            return tx.events(id, after=after, limit=limit)

    def happened(self, after: int, limit: int = 1000) -> tuple[Event, ...]:
        """To all bisections, as `Lists.happened`."""
        with self.ports.bisections.reading() as tx:
            return tx.happened(after=after, limit=limit)

    def last_event(self) -> int:
        with self.ports.bisections.reading() as tx:
            return tx.last_event()

    def version(self, id: str) -> tuple[str, bool]:
        """Of a bisection: another one after each change of it; and whether it may still change. Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            found = tx.bisection(id)
            return queries.version(found, tx.last_event(id)), found.state in LIVE_BISECTIONS

    def nodes(self) -> tuple[Node, ...]:
        with self.ports.bisections.reading() as tx:
            return tx.nodes()

    def node_page(self, after: str = "", limit: int = 50) -> Page[Node]:
        with self.ports.bisections.reading() as tx:
            return tx.node_page(after=after, limit=limit)

    def node_of(self, name: str) -> Node:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            found = tx.node(name)
        if found is None:
            raise NotFound(f"there is no node {name!r}", value=name, advice="firstbad nodes lists them")
        return found

    def recipes(self) -> tuple[Recipe, ...]:
        """By name."""
        return tuple(self.ports.recipes[name] for name in sorted(self.ports.recipes))

    def recipe(self, name: str) -> Recipe:
        """Errors: NotFound."""
        if name not in self.ports.recipes:
            known = ", ".join(sorted(self.ports.recipes))
            raise NotFound(f"there is no recipe {name!r}", value=name, advice=f"those known here are: {known}")
        return self.ports.recipes[name]
