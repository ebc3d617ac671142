"""`make bench-api`: how soon the API answers under load, and what watchers cost. See docs/load.md.

Its exit status tells of lost events and answers of 500 and above alone; how fast it went is for whoever reads the
table.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.api import asked, held
from benchmarks.api.filled import fill
from benchmarks.api.served import served
from benchmarks.load.place import Place, place
from benchmarks.load.repository import Made, line
from benchmarks.search.table import show
from service.domain.access import Scope

KINDS = ("postgresql", "sqlite")
COMMITS = 512


def main() -> int:
    given = _arguments()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="firstbad-api-") as root:
        made = line(Path(root) / "source.git", COMMITS)
        for kind in given.kinds:
            with place(Path(root) / kind, kind) as where:
                wrong += _measured(given, where, made, kind)
    print(f"\n{wrong} events lost or doubled, streams broken, or answers of 500 and above")
    return int(wrong > 0)


def _measured(given: argparse.Namespace, where: Place, made: Made, kind: str) -> int:
    began, wrong = time.monotonic(), 0
    where.wired.flow.ports.history.refresh(str(made.path))
    filled = fill(where.url, made, given.bisections)
    print(f"\n{len(filled.ids)} bisections in {kind} after {time.monotonic() - began:.0f} s", flush=True)
    tokens = [where.wired.flow.create_token(f"caller-{n}", Scope.ADMIN, "bench")[1] for n in range(given.tokens)]
    log = where.folder / "api.log"
    with served(where, log, bool(tokens)) as api:
        if given.rate:
            print(f"API: {api.process.pid}", flush=True)
            answered = asked.measure(api, filled, made, where.folder, given.rate, given.seconds, tokens)
            show(f"{given.rate:g} requests a second, {kind}", asked.rows(answered))
            wrong += answered.wrong
        if given.watchers:
            found = held.measure(api, where.url, filled, where.folder, given.watchers, given.seconds / 2, tokens)
            show(f"Server-Sent Events, {kind}", held.rows(found))
            wrong += found.lost + found.broken
    if text := log.read_text():
        print(f"\nthe API's log ends with:\n{text[-2000:]}", file=sys.stderr)
    return wrong


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-api", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short form of each")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, help="of databases")
    parser.add_argument("--bisections", type=int, default=10_000, help="in the database")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second; 0 leaves them out")
    parser.add_argument("--seconds", type=float, default=30.0, help="of load; half of it with watchers")
    parser.add_argument("--watchers", type=int, default=1000, help="0 leaves them out")
    parser.add_argument("--tokens", type=int, default=0, help="callers with a token each; 0 is open to all")
    found = parser.parse_args()
    if found.quick:
        found.bisections, found.rate, found.seconds, found.watchers = 1000, 50.0, 4.0, 100
    if shutil.which("redis-server") is None:
        parser.error("redis-server is not installed; on Debian: apt-get install redis-server")
    return found


if __name__ == "__main__":
    sys.exit(main())
