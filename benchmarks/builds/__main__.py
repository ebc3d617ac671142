"""`make bench-builds`: what builds cost on the example repository, in native builds and in time.

In turn: native builds of a bisection for every place of the first bad commit (the planner alone, builds and runs
told); whole bisections on a running service, one and two at once; an overlay beside a full build; building ahead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.builds import ahead, overlays, planned, served
from examples.generate import Options, generate


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="firstbad-bench-") as folder:
        root = Path(folder)
        example = generate(root / "tinyserve", Options())
        planned.run(example)
        overlays.run(example, root / "overlays", arguments.pairs)
        served.run(root, arguments.port, arguments.places)
        ahead.run(example, root, arguments.port, arguments.build_s, arguments.run_s)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-builds", description=__doc__)
    parser.add_argument("--port", type=int, default=8398)
    parser.add_argument("--pairs", type=int, default=9, help="overlays beside full builds")
    parser.add_argument(
        "--places", type=int, nargs="*", default=[20, 97, 135, 190, 240], help="of the first bad commit"
    )
    parser.add_argument("--build-s", type=float, default=20.0, help="seconds that a native build takes longer")
    parser.add_argument("--run-s", type=float, default=5.0, help="seconds that a server takes longer to start")
    parser.add_argument("--quick", action="store_true", help="a short form of each")
    found = parser.parse_args()
    if found.quick:
        found.pairs, found.places, found.build_s, found.run_s = 3, [135], 4.0, 1.0
    return found


if __name__ == "__main__":
    sys.exit(main())
