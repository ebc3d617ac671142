"""What all answers are, and those about what went wrong."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class View(BaseModel):
    """A client of an older version reads a newer service: what it does not know is left aside."""

    #: Built when first used: the command line needs few of them, and building all takes longer than its request.
    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True, defer_build=True)


class FieldError(View):
    field: str
    detail: str
    value: str = ""
    advice: str = ""


class Trouble(View):
    """What was wrong: the sentence, the part of the request and the value it is about, and what to do."""

    type: str = Field(
        description="Stable name of the problem, as a relative reference.", examples=["/problems/not-found"]
    )
    title: str
    detail: str
    field: str = ""
    value: str = ""
    advice: str = ""


class Problem(Trouble):
    """Problem details (RFC 9457). `errors` lists every field when several are wrong."""

    status: int
    instance: str = ""
    errors: tuple[FieldError, ...] = ()
