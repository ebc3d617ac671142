"""What probes and builds will cost, from what is in stock and how long things took, and what to build ahead."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median

from service.application.keys import Keys
from service.application.nodes import alive
from service.application.ports import Stock
from service.application.waiting import AtWork, Coming
from service.domain.bisection import Node, Origin, Probe

#: Seconds that are assumed until one was measured.
RUN_S, BUILD_S, OVERLAY_S = 60.0, 600.0, 2.0
#: What takes less time than a run is made ahead only when it is so likely to be wanted: it takes room in the store.
LIKELY = 0.3


@dataclass(frozen=True)
class Forecast:
    """`wheels`, `natives`: content and native keys that are in stock. `coming`: both kinds, of what is being built for
    somebody; `begun`: content keys of what is being built ahead for this bisection.

    `room`: slots of builders that nobody needs; `most`: of them for builds ahead of the probes that want them.
    `shared`: builders run the probes too.
    """

    wheels: frozenset[str] = frozenset()
    natives: frozenset[str] = frozenset()
    coming: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()
    run_s: float = RUN_S
    build_s: float = BUILD_S
    overlay_s: float = OVERLAY_S
    room: int = 0
    most: int = 0
    shared: bool = False

    def beside(self, wanted: Iterable[Keys]) -> Forecast:
        """With the room that is left once these probes are under way."""
        taken = sum(1 for keys in wanted if self.shared or self.build_seconds(keys) > 0)
        return replace(self, room=max(self.room - taken, 0))

    def build_seconds(self, keys: Keys) -> float:
        """Until the wheel is there."""
        if keys.content in self.wheels:
            return 0.0
        return self.overlay_s if keys.native in self.natives else self.build_s


def forecast(stock: Sequence[Stock], builds: Sequence[Coming], probes: Sequence[Probe], own: str) -> Forecast:
    """`builds`: those that were sent, for any bisection; `own`: the one that asks. `probes`: of it, whose runs tell how
    long the next one will take."""
    begun = frozenset(build.key for build in builds if build.ahead and build.bisection_id == own)
    # Another bisection gives up what it builds ahead when it ends.
    others = [build for build in builds if not build.ahead]
    natives = {wheel.native_key for wheel in stock if wheel.native_key and wheel.origin is not Origin.OVERLAY}
    runs = [_seconds(probe) for probe in probes if probe.started_at and probe.finished_at and probe.outcome]
    return Forecast(
        wheels=frozenset(wheel.key for wheel in stock),
        natives=frozenset(natives),
        coming=frozenset(key for build in others for key in (build.key, build.native_key) if key),
        begun=begun,
        run_s=_median(runs, RUN_S),
        build_s=_median([w.seconds for w in stock if w.seconds and w.origin is Origin.BUILT], BUILD_S),
        overlay_s=_median([w.seconds for w in stock if w.seconds and w.origin is Origin.OVERLAY], OVERLAY_S),
    )


def cost(keys: Mapping[str, Keys], forecast: Forecast, shas: Collection[str]) -> dict[str, float] | None:
    """Seconds that a probe of each commit takes; None when it is the same for all, and cost has nothing to say."""
    if not keys:
        return None
    seconds = {sha: forecast.run_s + forecast.build_seconds(keys[sha]) for sha in shas}
    return seconds if len(set(seconds.values())) > 1 else None


def worth_building(
    likely: Sequence[tuple[str, float]], keys: Mapping[str, Keys], forecast: Forecast
) -> tuple[str, ...]:
    """Of commits with the chance that each will be wanted, those to build now, as many as there is room for.

    The likeliest first: a build ahead saves its own time as often as it is wanted, so that what a second of work saves
    is that chance, however long it takes. Among equals what is under way, then what takes least. Native code once.
    """
    known = [(sha, chance, keys[sha]) for sha, chance in likely]
    wanted = [one for one in known if _useful(one[1], forecast.build_seconds(one[2]), forecast)]
    wanted = [one for one in wanted if not _coming(one[2], forecast)]
    ranked = sorted(
        wanted,
        key=lambda one: (-round(one[1], 2), one[2].content not in forecast.begun, forecast.build_seconds(one[2])),
    )
    chosen: dict[str, str] = {}
    for sha, _, key in ranked:
        making = key.content if key.native is None or key.native in forecast.natives else key.native
        chosen.setdefault(making, sha)
    return tuple(chosen.values())[: min(forecast.room, forecast.most)]


def _useful(chance: float, seconds: float, forecast: Forecast) -> bool:
    return seconds > 0 and (chance >= LIKELY or seconds >= forecast.run_s)


def _coming(keys: Keys, forecast: Forecast) -> bool:
    """It, or what its compiled files are taken from, is being built anyway."""
    return keys.content in forecast.coming or (keys.native in forecast.coming and keys.native not in forecast.natives)


@dataclass(frozen=True)
class Fleet:
    """What is under way on all nodes, for all bisections."""

    nodes: Sequence[Node]
    builds: Sequence[Coming]
    work: AtWork


def with_room(found: Forecast, fleet: Fleet, own: str, most: int, now: datetime) -> Forecast:
    """`own`: the bisection that asks, whose builds ahead count as room, since it may give them up."""
    there = alive(fleet.nodes, now)
    builders = {node.name: node.slots for node in there if "build" in node.roles}
    others_run = any("run" in node.roles and node.name not in builders for node in there)
    shared = any("run" in node.roles for node in there if node.name in builders) and not others_run
    busy = fleet.work.builds + sum(1 for build in fleet.builds if not (build.ahead and build.bisection_id == own))
    busy += sum(many for name, many in fleet.work.running.items() if name in builders)
    # A probe that no node has yet will take a builder's slot only where no others run probes.
    busy += fleet.work.queued if shared else 0
    return replace(found, room=max(sum(builders.values()) - busy, 0), most=most, shared=shared)


def _seconds(probe: Probe) -> float:
    assert probe.started_at is not None and probe.finished_at is not None
    return (probe.finished_at - probe.started_at).total_seconds()


def _median(seconds: Sequence[float], otherwise: float) -> float:
    return median(seconds) if seconds else otherwise
