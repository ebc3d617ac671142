"""`python -m worker`: a worker with the settings of the environment (FIRSTBAD_…). `python -m worker doctor` looks this
node over with them."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import TYPE_CHECKING

from pydantic import ValidationError

from worker.errors import NodeFault
from worker.settings import Settings, complaints, misspelt

if TYPE_CHECKING:
    from worker import doctor


def main(argv: list[str] | None = None) -> int:
    """The exit status: 2 for settings that are wrong and for a worker that cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m worker", description="A worker of firstbad; settings: docs/worker.md."
    )
    commands = parser.add_subparsers(dest="command")
    doctor = commands.add_parser("doctor", help="look this node over, and say what to do")
    doctor.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args(argv)
    return _doctor(as_json=given.json) if given.command == "doctor" else _work()


def _work() -> int:
    from worker.lines import set_up
    from worker.tasks import run

    try:
        settings = Settings()
        set_up(settings.log_format, settings.unshown())
        for name, like in misspelt().items():
            logging.getLogger(__name__).warning("%s is no setting; did you mean %s?", name, like)
        return run(settings)
    except ValidationError as error:
        sys.stderr.writelines(f"firstbad worker: {line}\n" for line in complaints(error))
        return 2
    except NodeFault as fault:
        sys.stderr.write(f"firstbad worker: {fault.message}. {fault.advice}\n")
        return 2


def _doctor(*, as_json: bool) -> int:
    """1 where something keeps this node from working; warnings do not."""
    from worker import doctor

    # What libraries and our own parts log while they are tried is told as findings.
    logging.disable(logging.CRITICAL)
    found: list[doctor.Finding] = []
    try:
        return _told(found, as_json=as_json)
    except BrokenPipeError:
        # The reader has had enough; nothing is left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return doctor.status(found)


def _told(found: list[doctor.Finding], *, as_json: bool) -> int:
    from worker import doctor

    try:
        settings = Settings()
        node = settings.node
        for finding in doctor.examine(settings):
            found.append(finding)
            if not as_json:
                sys.stdout.write(doctor.as_text(finding))
                sys.stdout.flush()
    except ValidationError as error:
        node = ""
        found[:] = [doctor.wrong_setting(line) for line in complaints(error)]
        if not as_json:
            sys.stdout.writelines(map(doctor.as_text, found))
    sys.stdout.write(doctor.as_json(node, found) if as_json else doctor.summary(found))
    sys.stdout.flush()
    return doctor.status(found)


if __name__ == "__main__":
    sys.exit(main())
