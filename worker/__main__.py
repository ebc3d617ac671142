"""`python -m worker`: a worker with the settings of the environment (FIRSTBAD_…)."""

from __future__ import annotations

import logging
import sys

from worker.errors import NodeFault
from worker.settings import Settings
from worker.tasks import run


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        return run(Settings())
    except NodeFault as fault:
        sys.stderr.write(f"firstbad worker: {fault.message}. {fault.advice}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
