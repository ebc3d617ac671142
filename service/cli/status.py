"""Exit statuses, and the one error that a command ends with."""

from __future__ import annotations

from enum import IntEnum

from firstbad.errors import NoService, ProblemError
from service.domain.errors import UserError
from service.domain.lifecycle import BisectionState


class Status(IntEnum):
    OK = 0
    SUSPECTS = 1
    USAGE = 2
    FAILED = 3
    CANCELLED = 4
    UNDER_WAY = 5
    INTERRUPTED = 130


HELP = (
    "Exit status: 0 found, or done what was asked; 1 suspects only; 2 wrong usage, or refused; "
    "3 failed, or no service answers; 4 cancelled; 5 still under way; 130 interrupted."
)
#: Of a bisection of a checkout, which nobody else can cancel.
RUN = (
    "Exit status: 0 found; 1 suspects only; 2 wrong usage, or refused; 3 failed; "
    "130 interrupted: the same command goes on."
)

_ENDS = {
    BisectionState.FOUND: Status.OK,
    BisectionState.SUSPECTS: Status.SUSPECTS,
    BisectionState.REFUSED: Status.USAGE,
    BisectionState.FAILED: Status.FAILED,
    BisectionState.CANCELLED: Status.CANCELLED,
}


def of(state: BisectionState) -> Status:
    return _ENDS.get(state, Status.UNDER_WAY)


class CommandError(Exception):
    """What was wrong, and each further line of help."""

    def __init__(self, detail: str, *more: str, status: Status = Status.USAGE) -> None:
        super().__init__(detail)
        self.detail = detail
        self.more = more
        self.status = status


def explained(error: UserError | ProblemError | NoService) -> CommandError:
    if isinstance(error, NoService):
        return CommandError(str(error), error.advice, status=Status.FAILED)
    if isinstance(error, UserError):
        return CommandError(error.detail, error.advice)
    problem = error.problem
    if problem.status == 401:
        return CommandError(problem.detail, "give a token of this service in the variable FIRSTBAD_TOKEN")
    status = Status.FAILED if problem.status >= 500 else Status.USAGE
    if problem.errors:
        first, *others = (f"{each.detail}{'; ' if each.advice else ''}{each.advice}" for each in problem.errors)
        return CommandError(first, *others, status=status)
    return CommandError(problem.detail, problem.advice, status=status)
