"""How well signatures tell failures apart, and how fast a log is read for its signature and its signs.

    python -m benchmarks.signatures [--mib N]

The first table is of the corpus in tests/observe/corpus: pairs of logs of the same failure, and of different ones.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
import time
import tracemalloc
from collections.abc import Iterator

from service.application.similar import THRESHOLD, similarity
from tests.observe.logs import found_in, rights, text_of
from worker.observe import shown

TENTHS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signatures", description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=64, help="size of each log that is timed")
    given = parser.parse_args()
    distribution()
    print()
    speed(given.mib << 20)
    return 0


def distribution() -> None:
    same: list[tuple[float, str, str]] = []
    different: list[tuple[float, str, str]] = []
    for one, other in itertools.combinations(rights(), 2):
        alike = rights()[one].failure == rights()[other].failure
        (same if alike else different).append((similarity(found_in(one), found_in(other)), one, other))
    failures = {right.failure for right in rights().values()}
    print(f"{len(rights())} logs, {len(failures)} failures; threshold {THRESHOLD}\n")
    print(f"{'similarity':12}{'same failure':>14}{'another one':>14}")
    for tenth in reversed(range(TENTHS)):
        counts = [sum(_tenth(pair[0]) == tenth for pair in pairs) for pairs in (same, different)]
        print(f"{tenth / TENTHS:.1f} to {(tenth + 1) / TENTHS:.1f}  {counts[0]:14}{counts[1]:14}")
    print(f"{'pairs':12}{len(same):14}{len(different):14}\n")
    for title, pairs in (
        ("least alike of the same", sorted(same)[:8]),
        ("most alike of others", sorted(different)[-8:]),
    ):
        print(title)
        for alike, one, other in pairs:
            print(f"  {alike:.3f}  {one:34} {other}")


def _tenth(alike: float) -> int:
    return min(int(alike * TENTHS), TENTHS - 1)


def speed(size: int) -> None:
    print(f"{'log':42}{'MiB':>6}{'CPU s':>7}{'MiB/s':>7}  root, signs")
    failing = text_of("vllm-gdn-capture.log").split("\n")
    full = (f"write {number}: No space left on device" for number in itertools.count())
    for name, lines in (
        ("a server's, with a failure at its end", itertools.chain(_within(_served(), size), failing)),
        ("lines that say ERROR, all alike", _within(_errors(alike=True), size)),
        ("lines that say ERROR, all different", _within(_errors(alike=False), size)),
        ("lines of a full disk", _within(full, size)),
        ("tracebacks, the same failure over and over", _within(itertools.cycle(failing), size)),
        ("lines of 64 KiB", _within(itertools.repeat("Error: x, " * 6553), size)),
    ):
        log = io.BytesIO("\n".join(lines).encode())
        begun = time.process_time()
        found = shown(log, ("vllm",))
        took = time.process_time() - begun
        root = f"{found.signature.type}, line {found.signature.line}" if found.signature else "none"
        signs = "".join(f"; {sign.rule}, line {sign.line}" for sign in found.signs)
        print(f"{name:42}{size >> 20:6}{took:7.1f}{(size >> 20) / took:7.0f}  {root}{signs}")
    print("\nwhat reading it needs besides the log:", f"{_memory(size) >> 20} MiB")


def _memory(size: int) -> int:
    """At most at a time, of what Python allocates; the lines are made while they are read."""
    tracemalloc.start()
    shown((line.encode() for line in _within(_errors(alike=False), size // 16)), ("vllm",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _within(lines: Iterator[str], size: int) -> Iterator[str]:
    for line in lines:
        size -= len(line) + 1
        if size < 0:
            return
        yield line


def _served() -> Iterator[str]:
    for number in itertools.count():
        yield (
            f"(APIServer pid=123) INFO 09-25 12:{number // 60 % 60:02}:{number % 60:02} [loggers.py:127] Engine 000: "
            f"Avg prompt throughput: {number % 977}.0 tokens/s, Running: {number % 7} reqs, GPU KV cache usage: 0.1%"
        )


def _errors(alike: bool) -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for number in itertools.count():
        word = "" if alike else "".join(letters[number // 26**place % 26] for place in range(6))
        yield f"(Worker_TP{number % 4} pid=12) ERROR 09-25 12:00:00 [serve.py:7] request {number} {word} got no slot"


if __name__ == "__main__":
    sys.exit(main())
