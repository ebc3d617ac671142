"""Whole bisections on a running service: native builds beside the native keys of the commits that were probed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.demo import Service
from examples.generate import Example, Options, generate, request
from firstbad import Client
from service.doors.api.views import BuildView, ReportView

#: What idle builders make on a guess is counted by benchmarks/builds/ahead.py.
NOTHING_AHEAD = {"FIRSTBAD_AHEAD": "0"}


def run(root: Path, port: int, places: Sequence[int]) -> None:
    compiled = []
    for place in places:
        example = generate(root / f"place-{place}", Options(first_bad=place))
        with Service(root / f"home-{place}", port, NOTHING_AHEAD) as url:
            client = Client(url)
            report = bisect(client, example)
            builds = client.builds(report.id)
        probed = {build.native_key for build in builds if not build.ahead}
        compiled.append(_compiled(builds))
        print(
            f"first bad at {place}: {report.probes_done} probes with both ends of {len(probed)} native keys, "
            f"{compiled[-1]} native builds, {report.wheels.ahead} wheels that no probe wanted, {took_s(report):.1f} s"
        )
    print(f"native builds of whole bisections: {sum(compiled) / len(compiled):.2f} in the mean of {len(compiled)}")
    _two_at_once(root, port, places[-1])


def _two_at_once(root: Path, port: int, place: int) -> None:
    example = generate(root / "twice", Options(first_bad=place))
    reports: list[ReportView] = []
    with Service(root / "home-twice", port, NOTHING_AHEAD) as url:

        def one() -> None:
            reports.append(bisect(Client(url), example))

        threads = [threading.Thread(target=one) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        builds = {build.key: build for report in reports for build in Client(url).builds(report.id)}
    natives = Counter(build.native_key for build in builds.values() if build.origin == "built")
    print(
        f"two at once on one range: {sum(report.probes_done for report in reports)} probes, {len(builds)} wheels, "
        f"{sum(natives.values())} built in full, at most {max(natives.values())} of one native key"
    )


def bisect(client: Client, example: Example, **change: Any) -> ReportView:
    id = client.submit({**request(example), **change}).id
    while (found := client.bisection(id)).live:
        time.sleep(0.05)
    assert found.first_bad == (example.first_bad,), found
    return found


def _compiled(builds: Sequence[BuildView]) -> int:
    return sum(build.origin == "built" for build in builds)


def took_s(report: ReportView) -> float:
    assert report.ended_at is not None
    return (report.ended_at - report.created_at).total_seconds()
