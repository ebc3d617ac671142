"""`make bench-load`: what the control plane can carry. See docs/load.md.

Its exit status tells of lost, doubled and wrong probes alone; how fast it went is for whoever reads the table.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from benchmarks.load import long, many, mirrors
from benchmarks.search.table import show

KINDS = ("postgresql", "sqlite")


def main() -> int:
    given = _arguments()
    wrong = 0
    for kind in given.kinds:
        if "many" in given.parts:
            options = ("--profile",) if given.profile else ()
            (found,) = many.measure(kind, [given.bisections], given.workers, *options, keep=given.profile)
            show(f"many bisections, {kind}", many.rows(found, kind, given.workers))
            wrong += len(found.wrong)
    if "cost" in given.parts:
        rounds = many.measure("postgresql", given.sizes, given.workers)
        show("cost of a probe by bisections at once, postgresql", many.exponent(rounds))
        wrong += sum(len(found.wrong) for found in rounds)
    if "long" in given.parts:
        found_rows, lost = long.measure(given.commits)
        show("a long range, postgresql", found_rows)
        wrong += len(lost)
    if "mirrors" in given.parts:
        show("one repository for many", mirrors.measure(50, given.workers))
    print(f"\n{wrong} probes or answers lost, doubled or wrong")
    return int(wrong > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short form of each")
    parser.add_argument("--parts", nargs="*", default=["many", "cost", "long", "mirrors"])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, help="of databases")
    parser.add_argument("--workers", type=int, default=2, help="control workers")
    parser.add_argument("--bisections", type=int, default=200, help="at once")
    parser.add_argument("--profile", type=Path, help="folder for a profile of each control worker")
    found = parser.parse_args()
    found.sizes, found.commits = [10, 30, 100, 300, 1000], 100_000
    if found.quick:
        found.bisections, found.sizes, found.commits = 20, [5, 20], 10_000
    if shutil.which("redis-server") is None:
        parser.error("redis-server is not installed; on Debian: apt-get install redis-server")
    return found


if __name__ == "__main__":
    sys.exit(main())
