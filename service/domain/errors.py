"""What a user can get wrong. Each error names the value and the next step; a door turns it into its own form."""

from __future__ import annotations


class UserError(Exception):
    """Base. `slug`: the problem's stable name; `status`: of HTTP; `field`: the part of the request it is about."""

    slug = "bad-request"
    title = "The request cannot be used"
    status = 422

    def __init__(self, detail: str, *, value: str = "", field: str = "", advice: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.value = value[:200]
        self.field = field
        self.advice = advice


class BadRequest(UserError):
    pass


class NotAllowed(UserError):
    """The operator does not let this caller have it; another may."""

    slug = "not-allowed"
    title = "A policy does not allow this"
    status = 403


class Unauthenticated(UserError):
    slug = "unauthenticated"
    title = "Nobody here knows who asks"
    status = 401


class Forbidden(UserError):
    """What may be done depends on who asks."""

    slug = "forbidden"
    title = "This caller may not do this"
    status = 403


class TooMany(UserError):
    """`wait_s`: seconds until it may be tried again."""

    slug = "too-many-requests"
    title = "Too many requests"
    status = 429

    def __init__(self, detail: str, wait_s: int) -> None:
        super().__init__(detail, advice=f"send it again in {wait_s} seconds")
        self.wait_s = wait_s


class NotFound(UserError):
    slug = "not-found"
    title = "There is no such thing"
    status = 404


class NotNow(UserError):
    """The thing exists, but not in a state that allows this."""

    slug = "conflict"
    title = "Not possible in this state"
    status = 409


class PreconditionFailed(UserError):
    """It is not any more as the caller read it."""

    slug = "precondition-failed"
    title = "It has changed since"
    status = 412


class Removed(UserError):
    """It was there, and was taken away by a rule of the operator's."""

    slug = "removed"
    title = "It was removed"
    status = 410


class TooLarge(UserError):
    slug = "too-large"
    title = "Too large"
    status = 413


class Refusal(UserError):
    """Base of all that shows only after submission: the bisection ends as `refused` with this problem."""


class RepositoryUnavailable(Refusal):
    slug = "repository-unavailable"
    title = "The repository cannot be read"


class UnknownRef(Refusal):
    slug = "unknown-ref"
    title = "Not in the repository"


class AmbiguousRef(Refusal):
    slug = "ambiguous-ref"
    title = "More than one commit begins like this"


class BadRange(Refusal):
    slug = "bad-range"
    title = "There is nothing between good and bad"


class BadPaths(Refusal):
    slug = "bad-paths"
    title = "The paths of the build are not in the repository"


class BadEnds(Refusal):
    slug = "bad-ends"
    title = "The two ends do not differ"
