"""`make bench-metric`: the search for the commit that made a number worse, its figures and other tools beside it.

    python -m benchmarks.metric [--quick] [--bayesect DIR] [--seeds N] [--only NAME ...]

`--bayesect` is a folder where git-bayesect is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.metric import calibration, ends, speed, versus
from benchmarks.search.table import Row, show_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metric", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds: a smoke test, no figures")
    parser.add_argument("--bayesect", type=Path, help="folder where git-bayesect is installed")
    parser.add_argument("--seeds", type=int, default=1000, help="histories of each shape")
    parts: dict[str, Callable[[argparse.Namespace], Iterable[Row]]] = {
        "versus": lambda given: versus.rows(given.quick, given.bayesect, min(given.seeds, 200)),
        "ends": lambda given: ends.rows(given.quick, given.seeds),
        "speed": lambda given: speed.rows(given.quick),
        "calibration": lambda given: calibration.rows(given.quick, given.seeds),
    }
    parser.add_argument("--only", nargs="+", choices=sorted(parts), help="some parts of the table")
    given = parser.parse_args()
    show_all(parts, given, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
