"""A control worker as `firstbad up` starts it, that also keeps how long each report took.

`python -m benchmarks.load.control FOLDER`: settings come from the environment. SIGTERM ends it, and leaves what it
measured in FOLDER.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from service import inbox, wiring
from service.application.flow import Flow
from service.domain.results import ProbeReport


@dataclass
class Kept:
    """Seconds, by what they were spent on. `profiles`: of each thread, in processor time, where it is profiled."""

    profiled: bool
    seconds: dict[str, list[float]] = field(default_factory=dict)
    profiles: list[cProfile.Profile] = field(default_factory=list)
    local: threading.local = field(default_factory=threading.local)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        begun = monotonic()
        outermost = self.profiled and not getattr(self.local, "within", False)
        if outermost:
            self.local.within = True
            self._profile().enable()
        try:
            yield
        finally:
            if outermost:
                self._profile().disable()
                self.local.within = False
            self.note(name, monotonic() - begun)

    def note(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)

    def sent_s(self) -> float:
        """Seconds that this thread has spent on sending."""
        return getattr(self.local, "sent_s", 0.0)

    @contextmanager
    def sending(self) -> Iterator[None]:
        if getattr(self.local, "sends", False):
            yield
            return
        self.local.sends, begun = True, monotonic()
        try:
            yield
        finally:
            self.local.sends, self.local.sent_s = False, self.sent_s() + monotonic() - begun

    def _profile(self) -> cProfile.Profile:
        if not hasattr(self.local, "profile"):
            self.local.profile = cProfile.Profile(time.thread_time)
            self.profiles.append(self.local.profile)
        return self.local.profile

    def write(self, folder: Path) -> None:
        (folder / f"{os.getpid()}.json").write_text(json.dumps(self.seconds))
        if self.profiles:
            stats = pstats.Stats(self.profiles[0])
            for profile in self.profiles[1:]:
                stats.add(profile)
            stats.dump_stats(str(folder / f"{os.getpid()}.prof"))


KEPT = Kept(profiled="--profile" in sys.argv)


class TimedFlow(Flow):
    def started(self, kind: str, id: str, attempt: int, node: str, *, leased: bool = False) -> None:
        with KEPT.timed("started"):
            super().started(kind, id, attempt, node, leased=leased)

    def probed(self, report: ProbeReport) -> None:
        """`advance`: without what is sent, for whomever it is, once all is committed."""
        begun, sent_s = monotonic(), KEPT.sent_s()
        with KEPT.timed("probed"):
            super().probed(report)
        KEPT.note("advance", monotonic() - begun - (KEPT.sent_s() - sent_s))

    def prepare(self, id: str) -> None:
        with KEPT.timed("prepare"):
            super().prepare(id)

    def sweep(self) -> None:
        with KEPT.timed("sweep"):
            super().sweep()

    def _deliver(self, *given: Any) -> None:
        with KEPT.sending():
            super()._deliver(*given)

    def _release(self, *given: Any) -> None:
        with KEPT.sending():
            super()._release(*given)


def main() -> None:
    settings = wiring.settings()
    wiring.log_to_stderr(settings.log_level)
    wired = wiring.wire(settings)
    try:
        inbox.run(str(settings.redis_url), TimedFlow(wired.flow.ports), wired.queue, settings.sweep_s)
    finally:
        KEPT.write(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
