"""The same bisection with and without builds ahead: one worker that builds, one that runs, builds and starts slowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.builds.served import bisect
from examples.demo import Service
from examples.generate import Example
from service.client import Client
from service.doors.api.views import ReportView
from service.embedded_redis import EmbeddedRedis

FULL: dict[str, Any] = {"native_paths": [], "wheel_paths": []}


def run(example: Example, root: Path, port: int, build_s: float, run_s: float) -> None:
    env = {"TINYSERVE_BUILD_SECONDS": str(build_s), "TINYSERVE_START_SECONDS": str(run_s)}
    seconds = {}
    for name, ahead, change in (
        ("nothing shared, nothing ahead", 0, FULL),
        ("native code shared, nothing ahead", 0, {}),
        ("native code shared, builds ahead", 4, {}),
    ):
        with service(root / f"ahead-{len(seconds)}", port, ahead) as client:
            report = bisect(client, example, env=env, **change)
        seconds[name] = _seconds(report)
        print(f"{name}: {seconds[name]:.1f} s, {report.probes_done} probes, wheels {dict(report.wheels)}")
    full, shared, both = seconds.values()
    print(
        f"builds ahead take {both / shared:.2f} of the time without; both take {both / full:.2f} of the time of neither"
    )


@contextmanager
def service(home: Path, port: int, ahead: int) -> Iterator[Client]:
    """A service with a worker of its own that runs, and another that builds."""
    home.mkdir(parents=True)
    with EmbeddedRedis(home / "broker") as redis_url:
        ours = {"FIRSTBAD_REDIS_URL": redis_url, "FIRSTBAD_AHEAD": str(ahead), "FIRSTBAD_SLOTS": "1"}
        with Service(home / "home", port, {**ours, "FIRSTBAD_ROLES": "run"}) as url, _builder(home, ours):
            yield Client(url)


@contextmanager
def _builder(home: Path, ours: dict[str, str]) -> Iterator[None]:
    environment = {
        **os.environ,
        **ours,
        "FIRSTBAD_ROLES": "build",
        "FIRSTBAD_NODE": "builder",
        "FIRSTBAD_WORK_DIR": str(home / "builder"),
        "FIRSTBAD_STORE_URL": str(home / "home" / "store"),
        "FIRSTBAD_ALLOW_FILE_REPOS": "true",
    }
    with (home / "builder.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-m", "worker"], env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _seconds(report: ReportView) -> float:
    assert report.ended_at is not None
    return (report.ended_at - report.created_at).total_seconds()
