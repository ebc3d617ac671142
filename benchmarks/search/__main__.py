"""`make bench-search`: the search's figures, targets beside them, and other tools on the same histories.

    python -m benchmarks.search [--cases DIR] [--quick] [--bayesect DIR] [--only NAME ...]

`--cases` is a folder of real histories as JSON, `--bayesect` one where git-bayesect is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.search import flaky, priors, speed, versus_git, widths
from benchmarks.search.table import Row, show_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, help="folder of real histories, one JSON file each")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and positions: a smoke test, no figures")
    parser.add_argument("--bayesect", type=Path, help="folder where git-bayesect is installed")
    parts: dict[str, Callable[[argparse.Namespace], Iterable[Row]]] = {
        "git": lambda given: versus_git.rows(given.quick),
        "widths": lambda given: widths.rows(given.quick),
        "priors": lambda given: priors.rows(given.quick, given.cases),
        "flaky": lambda given: flaky.rows(given.quick, given.bayesect),
        "speed": lambda given: speed.rows(given.quick),
    }
    parser.add_argument("--only", nargs="+", choices=sorted(parts), help="some parts of the table")
    given = parser.parse_args()
    if given.cases is not None and not list(given.cases.glob("*.json")):
        parser.error(f"--cases {given.cases}: no JSON file there")
    show_all(parts, given, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
