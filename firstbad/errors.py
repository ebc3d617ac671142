"""What a call can end with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.doors.api.views import Problem


class ClientError(Exception):
    """Base of all errors of a client."""


class NoService(ClientError):
    """Nothing that speaks this API answers at the URL. `advice` is the next step."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.advice = advice


class ProblemError(ClientError):
    """The service answered with a problem. `after_s`: seconds until it is worth trying again, where it said so."""

    def __init__(self, problem: Problem, after_s: float | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.after_s = after_s


class Unauthorized(ProblemError):
    """401: it wants a token, or another one."""


class Forbidden(ProblemError):
    """403: this token may not."""


class NotFound(ProblemError):
    """404, and 410: there is no such thing, or none any more."""


class Conflict(ProblemError):
    """409: not in this state."""


class Changed(ProblemError):
    """412: somebody else changed it meanwhile."""


class Refused(ProblemError):
    """Any other 4xx: something in the request cannot be used."""


class TooMany(ProblemError):
    """429: too many requests in a short time."""


class Unavailable(ProblemError):
    """5xx: the service, or a part that it needs, does not work."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Changed,
    429: TooMany,
}


def of_status(status: int) -> type[ProblemError]:
    return _BY_STATUS.get(status, Unavailable if status >= 500 else Refused)


def passing(error: NoService | ProblemError) -> bool:
    """It is about the service, which may be mended, and not about what it was asked."""
    return isinstance(error, NoService | Unavailable)
