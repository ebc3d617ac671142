"""`python -m tests.worker.impatient`: a worker whose broker takes a message for lost after 5 s, and not after a day."""

from __future__ import annotations

import sys

from worker.alone import alone
from worker.lines import set_up
from worker.settings import Settings
from worker.tasks import Worker

VISIBILITY_S = 5


def main() -> int:
    settings = Settings()
    set_up(settings.log_format, settings.unshown())
    with alone(settings.work_dir):
        worker = Worker(settings)
        options = {**worker.app.conf.broker_transport_options, "visibility_timeout": VISIBILITY_S}
        worker.app.conf.broker_transport_options = options
        worker.adopt()
        return worker.start()


if __name__ == "__main__":
    sys.exit(main())
