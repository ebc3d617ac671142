"""The same bisection with and without builds ahead: one worker that builds, one that runs, builds and starts slowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.builds.served import bisect, took_s
from examples.demo import Service
from examples.generate import Example
from firstbad import Client
from service.embedded_redis import EmbeddedRedis

FULL: dict[str, Any] = {"native_paths": [], "wheel_paths": []}


def run(example: Example, root: Path, port: int, build_s: float, run_s: float) -> None:
    env = {"TINYSERVE_BUILD_SECONDS": str(build_s), "TINYSERVE_START_SECONDS": str(run_s)}
    seconds = []
    for name, builders, ahead, change in (
        ("nothing shared, nothing ahead, 1 builder", 1, 0, FULL),
        ("native code shared, nothing ahead, 1 builder", 1, 0, {}),
        ("native code shared, builds ahead, 1 builder", 1, 4, {}),
        ("native code shared, builds ahead, 3 builders", 3, 4, {}),
    ):
        with service(root / f"ahead-{len(seconds)}", port, builders, ahead) as client:
            report = bisect(client, example, env=env, **change)
            builds = client.builds(report.id)
        seconds.append(took_s(report))
        made = [sum(build.origin == origin for build in builds) for origin in ("built", "overlay")]
        print(
            f"{name}: {seconds[-1]:.1f} s, {report.probes_done} probes, {made[0]} native builds, {made[1]} overlays, "
            f"{report.wheels.ahead} of all wanted by no probe"
        )
    full, shared, one, three = seconds
    print(
        f"builds ahead take {one / shared:.2f} of the time without (3 builders: {three / shared:.2f}), "
        f"and {one / full:.2f} of the time when nothing is shared (3 builders: {three / full:.2f})"
    )


@contextmanager
def service(home: Path, port: int, builders: int, ahead: int) -> Iterator[Client]:
    """A service with a worker of its own that runs one probe at a time, and another that only builds."""
    home.mkdir(parents=True)
    with EmbeddedRedis(home / "broker") as redis_url:
        ours = {"FIRSTBAD_REDIS_URL": redis_url, "FIRSTBAD_AHEAD": str(ahead), "FIRSTBAD_SLOTS": "1"}
        with Service(home / "home", port, {**ours, "FIRSTBAD_ROLES": "run"}) as url:
            client = Client(url)
            with _builder(home, {**ours, "FIRSTBAD_SLOTS": str(builders)}):
                while not any(node.name == "builder" and node.state == "alive" for node in client.nodes()):
                    time.sleep(0.1)
                yield client


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
