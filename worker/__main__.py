"""`python -m worker`: a worker with the settings of the environment (FIRSTBAD_…)."""

from __future__ import annotations

import sys

from pydantic import ValidationError

from worker.errors import NodeFault
from worker.lines import set_up
from worker.settings import Settings, complaints
from worker.tasks import run


def main() -> int:
    try:
        settings = Settings()
        set_up(settings.log_format, settings.unshown())
        return run(settings)
    except ValidationError as error:
        sys.stderr.writelines(f"firstbad worker: {line}\n" for line in complaints(error))
        return 2
    except NodeFault as fault:
        sys.stderr.write(f"firstbad worker: {fault.message}. {fault.advice}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
