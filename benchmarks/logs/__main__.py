"""`make bench-logs`: a run that writes at full speed with somebody watching, on a real worker in real sandboxes.

Bytes a second that are taken, the most memory that the worker's process and what runs inside had, the log's size in the
store beside what it holds, and how long a line takes from its writing to the watcher: in a flood, and of a run that
writes a line now and then, in its head (on disk at once) and its tail (on disk every half second).

Ends with status 1 when an aim is missed: the memory always, rates and times not of the short form, which is too short
for them.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import zstandard

from benchmarks.logs.worker import SECRET, Worker
from benchmarks.search.repository import Repository
from service.adapters.live_logs import RedisLiveLogs
from service.embedded_redis import EmbeddedRedis
from worker.contract import Limits, ProbeOrder, Reproduction, Sandbox, Source

IMAGE = "firstbad-test:latest"
AIM_BYTES_S, AIM_MEMORY, AIM_AGE_S = 50_000_000, 200_000_000, 1.0
MB = 1_000_000
#: A time and lines of a serving engine's kind, written over and over.
FLOOD = """
exec python3 -c '
import os, random, time
random.seed(1)
lines = ["INFO %02d:%02d engine.py:%d] step %d: %d running, %d waiting, %.2f tokens/s, KV cache usage %.1f%%" % (
    n // 60 % 24, n % 60, random.randrange(900), n, random.randrange(256), random.randrange(999),
    random.random() * 9000, random.random() * 100) for n in range(40000)]
blocks = [("\\n".join(lines[n : n + 350]) + "\\n").encode() for n in range(0, 40000, 350)]
end, n = time.time() + SECONDS, 0
while time.time() < end:
    os.writev(1, [b"mark %.6f\\n" % time.time(), blocks[n % len(blocks)]])
    n += 1
print("mark %.6f" % time.time())
'
"""
#: Now and then a line; with FILL first so much that the head of the log is full.
SLOW = """
exec python3 -u -c '
import sys, time
sys.stdout.write("x" * 99 + "\\n")
for _ in range(FILL // 100):
    sys.stdout.write("x" * 99 + "\\n")
sys.stdout.flush()
time.sleep(1)
end = time.time() + SECONDS
while time.time() < end:
    print("mark %.6f" % time.time(), flush=True)
    time.sleep(0.0731)
'
"""
MARK = re.compile(rb"mark (\d+\.\d+)\n")


@dataclass
class Watcher(threading.Thread):
    """Follows a run as the service does; when each piece came, and how old the newest line in it was then."""

    pieces: Iterator[bytes]
    ages_s: list[float] = field(default_factory=list)
    bytes: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()

    def run(self) -> None:
        with closing(self.pieces):  # type: ignore[type-var]
            for piece in self.pieces:
                now = time.time()
                self.bytes += len(piece)
                # The oldest line of a piece has waited longest; of a flood its pieces hold the newest part only.
                marks = MARK.findall(piece)
                self.ages_s += [now - float(mark) for mark in marks[:1]]
                if self.over.is_set() and not piece:
                    return

    __hash__ = threading.Thread.__hash__


@dataclass(frozen=True)
class Bench:
    repository: Repository
    redis_url: str
    sandbox: Sandbox
    worker: Worker

    def run(self, name: str, script: str, seconds: float, **more: Any) -> tuple[dict[str, Any], Watcher]:
        order = ProbeOrder(
            bisection="bench",
            probe=f"bench.{name}",
            attempt=1,
            source=Source(repo=str(self.repository.path), sha=self.repository.shas[-1]),
            reproduction=Reproduction(script=script.replace("SECONDS", str(seconds)), failure=more.get("failure")),
            secrets=more.get("secrets", ()),
            sandbox=self.sandbox,
            limits=Limits(timeout_s=seconds + 120),
        )
        watcher = Watcher(RedisLiveLogs(self.redis_url).follow("probe", order.probe, 1))
        watcher.start()
        outcome = self.worker.run(order)
        watcher.over.set()
        watcher.join()
        return outcome, watcher


@dataclass(frozen=True)
class Measured:
    """`ages_s`: by what was watched, of the oldest line in each piece; empty when the watcher saw none."""

    bytes_s: float
    memory: int
    ages_s: dict[str, list[float]]
    table: dict[str, str] = field(default_factory=dict)


def main() -> int:
    arguments = _arguments()
    print(f"{'':34}" + "".join(f"{kind:>22}" for kind in arguments.kinds))
    columns = [measure(kind, arguments) for kind in arguments.kinds]
    for name in columns[0].table:
        print(f"{name:34}" + "".join(f"{column.table[name]:>22}" for column in columns), flush=True)
    wrong = [
        f"{kind}: {told}"
        for kind, column in zip(arguments.kinds, columns, strict=True)
        for told in missed(column, quick=arguments.quick)
    ]
    for told in wrong:
        print(f"missed: {told}", flush=True)
    return 1 if wrong else 0


def missed(found: Measured, *, quick: bool) -> list[str]:
    """Each aim that was not met, in words."""
    wrong = []
    if found.memory >= AIM_MEMORY:
        wrong.append(f"the worker had {found.memory / MB:.0f} MB, and may have {AIM_MEMORY / MB:.0f} MB")
    if not quick and found.bytes_s < AIM_BYTES_S:
        wrong.append(f"{found.bytes_s / MB:.0f} MB/s were taken, and {AIM_BYTES_S / MB:.0f} MB/s are wanted")
    for name, ages_s in found.ages_s.items():
        if not quick and max(ages_s, default=math.inf) > AIM_AGE_S:
            seen = f"a line came after {max(ages_s):.2f} s" if ages_s else "no line was seen"
            wrong.append(f"{name}: {seen}, and one may take {AIM_AGE_S:.0f} s")
    return wrong


def measure(kind: str, arguments: argparse.Namespace) -> Measured:
    with tempfile.TemporaryDirectory(prefix="firstbad-bench-") as name, EmbeddedRedis(Path(name) / "redis") as url:
        folder = Path(name)
        repository = Repository.build(folder / "repository", [[]])
        sandbox = Sandbox(kind=kind, image=arguments.image if kind == "docker" else None)
        worker = Worker(folder, url, kind)
        try:
            return _measured(Bench(repository, url, sandbox, worker), arguments.seconds)
        finally:
            worker.close()


def _measured(bench: Bench, seconds: float) -> Measured:
    bench.run("first", "true", 0.0)
    before = bench.worker.now
    with bench.worker.looking_inside() as inside:
        outcome, flood = bench.run("flood", FLOOD, seconds)
        looked, _ = bench.run("looked", FLOOD, seconds, secrets=(SECRET,), failure="nothing says this")
    peak = bench.worker.peak
    packed = (bench.worker.store / outcome["log"]["path"]).read_bytes()
    plain = zstandard.frame_content_size(packed)
    _, head = bench.run("head", SLOW.replace("FILL", "0"), seconds)
    _, tail = bench.run("tail", SLOW.replace("FILL", str(40 * 1024 * 1024)), seconds)
    table = {
        "written": f"{outcome['log']['bytes'] / MB:.0f} MB",
        f"taken (aim {AIM_BYTES_S / MB:.0f} MB/s)": f"{_rate(outcome) / MB:.0f} MB/s",
        "  with a secret and a text to find": f"{_rate(looked) / MB:.0f} MB/s",
        f"worker, peak (aim {AIM_MEMORY / MB:.0f} MB)": f"{peak / MB:.0f} MB",
        "  before the flood": f"{before / MB:.0f} MB",
        "inside, peak": f"{inside[0] / MB:.0f} MB",
        "shown to the watcher": f"{flood.bytes / MB:.2f} MB",
        "kept, plain": f"{plain / MB:.1f} MB",
        "kept, in the store": f"{len(packed) / MB:.1f} MB (1/{plain / len(packed):.1f})",
        "write to watcher, flood": _ages(flood),
        "write to watcher, head": _ages(head),
        "write to watcher, tail": _ages(tail),
    }
    ages_s = {"flood": flood.ages_s, "head": head.ages_s, "tail": tail.ages_s}
    return Measured(_rate(outcome), peak, ages_s, table)


def _rate(outcome: dict[str, Any]) -> float:
    """Bytes a second of the script's time."""
    took: float = next(phase["seconds"] for phase in outcome["phases"] if phase["name"] == "script")
    return float(outcome["log"]["bytes"] / took)


def _ages(watcher: Watcher) -> str:
    """Of the oldest line in each piece: the median, and the most."""
    return f"{median(watcher.ages_s):.2f} s, most {max(watcher.ages_s):.2f} s" if watcher.ages_s else "none seen"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-logs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="that each run writes")
    parser.add_argument("--image", default=IMAGE, help="of the docker sandbox; where it is missing only processes run")
    parser.add_argument("--quick", action="store_true", help="a short form")
    found = parser.parse_args()
    if found.quick:
        found.seconds = 2.0
    there = (
        shutil.which("docker")
        and not subprocess.run(["docker", "image", "inspect", found.image], capture_output=True, check=False).returncode
    )
    found.kinds = ["process", *(["docker"] if there else [])]
    return found


if __name__ == "__main__":
    sys.exit(main())
