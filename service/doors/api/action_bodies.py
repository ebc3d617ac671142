"""What changes a bisection, and its way from plain data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from service.application.adjust import Change
from service.application.submit import budget_of
from service.domain.budget import Priority
from service.domain.errors import BadRequest
from service.domain.evidence import Verdict
from service.doors.api.bodies import budget_form, validated
from service.doors.api.fields import Line, Strict
from service.doors.api.parts import BudgetBody


class BudgetChangeBody(BudgetBody):
    """Each limit that is given takes the place of the one that was; null takes it off."""


class ChangeBody(Strict):
    """What can be changed of a bisection; at least one of the two."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"priority": "high"}, {"budget": {"probes": 80}}]})

    priority: Priority | None = Field(
        None, description="All that is high goes before what is normal, and that before what is low."
    )
    budget: BudgetChangeBody | None = Field(None, description="What it may cost from now on, spent before or not.")


class OverrideBody(Strict):
    """What a person says of a commit."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"commit": "72ab01c4", "verdict": "bad", "why": "seen on my desk"}]}
    )

    commit: Line = Field(description="Of the range, or an end: its SHA, or the first four digits of it or more.")
    verdict: Literal["good", "bad", "skip", "none"] = Field(description="None takes back what was said before.")
    why: Line = Field(description="One line, which is kept and shown.")


class ReprobeBody(Strict):
    """A commit to run once more."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"commit": "72ab01c4", "why": "to be sure"}]})

    commit: Line = Field(description="Of the range, or an end: its SHA, or the first four digits of it or more.")
    why: Line = Field(description="One line, which is kept and shown.")


_FIELDS = {"probes": "probes", "wall": "wall_s", "gpu_hours": "gpu_s"}


def change(document: dict[str, Any]) -> Change:
    """Errors: BadRequest; RequestValidationError, whose `loc` begins with "body"."""
    body = validated(ChangeBody, document)
    limits = frozenset(_FIELDS[name] for name in (body.budget.model_fields_set if body.budget is not None else ()))
    if body.priority is None and not limits:
        raise BadRequest("nothing is changed", field="priority", advice="give priority: or budget:, as {probes: 80}")
    return Change(body.priority, budget_of(budget_form(body.budget)), limits)


def override(document: dict[str, Any]) -> tuple[str, Verdict | None, str]:
    """Commit, verdict and why. Errors: RequestValidationError, whose `loc` begins with "body"."""
    body = validated(OverrideBody, document)
    return body.commit, None if body.verdict == "none" else Verdict(body.verdict), body.why


def reprobe(document: dict[str, Any]) -> tuple[str, str]:
    """Commit and why. Errors: RequestValidationError, whose `loc` begins with "body"."""
    body = validated(ReprobeBody, document)
    return body.commit, body.why
