"""A dry run and a text, from what the flow returns to what the API answers; and the body that holds a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from service.domain.errors import BadRequest
from service.doors.api import render
from service.doors.api.bodies import validated
from service.doors.api.document import JSON_TYPES, parse
from service.doors.api.fields import Line, Strict
from service.doors.api.views import CommitView
from service.doors.api.views.previews import (
    DraftView,
    DryRunView,
    RangeView,
    SecondsView,
    ServingView,
    StockView,
)

if TYPE_CHECKING:
    from service.application.dry_run import Preview
    from service.application.parse import Draft

EXAMPLE = "It works in v0.9.2 but fails in v0.10.0."
TEXTS = ("text/plain", "text/markdown")


class TextBody(Strict):
    """The text of an issue or a comment."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "project": "python"}]})

    text: str = Field(description="Markdown.")
    project: Line | None = Field(None, description="The recipe whose project it is about, where that is known.")


def text_of(body: bytes, media_type: str) -> tuple[str, str | None]:
    """The text and the project. Errors: BadRequest, RequestValidationError."""
    if media_type in TEXTS:
        try:
            return body.decode("utf-8-sig"), None
        except UnicodeDecodeError as error:
            raise BadRequest(f"byte {error.start} of the text is not UTF-8", advice="save it as UTF-8") from None
    made = validated(TextBody, parse(body, media_type))
    # Half a surrogate pair could not be told back.
    return made.text.encode("utf-8", "replace").decode("utf-8"), made.project


def text_body() -> dict[str, Any]:
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}, "example": EXAMPLE} for kind in TEXTS}
    content[JSON_TYPES[0]] = {"schema": TextBody.model_json_schema(), "example": {"text": EXAMPLE}}
    return {"requestBody": {"required": True, "content": content}}


def dry_run(made: Preview) -> DryRunView:
    looked = made.looked
    return DryRunView(
        request=render.request(made.request),
        problems=tuple(render.trouble(problem) for problem in made.problems),
        range=RangeView(
            good=tuple(CommitView.model_validate(commit) for commit in looked.good),
            bad=CommitView.model_validate(looked.bad),
            candidates=looked.candidates,
            expected_probes=looked.probes,
        )
        if looked is not None
        else None,
        unread=made.unread,
        wheels=StockView.model_validate(made.wheels) if made.wheels is not None else None,
        expected_s=SecondsView.model_validate(made.expected) if made.expected is not None else None,
        nodes=tuple(ServingView.model_validate(node) for node in made.nodes),
        notes=made.notes,
    )


def draft(found: Draft) -> DraftView:
    return DraftView.model_validate(found)
