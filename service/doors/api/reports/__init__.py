"""A report in the form that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.application.flow import Flow
from service.application.reports.markdown import markdown
from service.domain.errors import UserError
from service.doors.api.reports import junit, page, whole
from service.doors.hiding import without_password


class Format(StrEnum):
    """`log`: as of git bisect log."""

    JSON = "json"
    MD = "md"
    HTML = "html"
    LOG = "log"
    JUNIT = "junit"


@dataclass(frozen=True)
class Form:
    media_type: str
    write: Callable[[Flow, str], str]
    ending: str


def _markdown(flow: Flow, id: str) -> str:
    found = flow.findings(id)
    return markdown(found, without_password(found.request.repo))


FORMS: Mapping[Format, Form] = {
    Format.JSON: Form("application/json", lambda flow, id: whole.whole(flow.findings(id)), "json"),
    Format.MD: Form("text/markdown", _markdown, "md"),
    Format.HTML: Form("text/html", lambda flow, id: page.page(flow.findings(id)), "html"),
    Format.LOG: Form("text/plain", lambda flow, id: flow.git_log(id), "log"),
    Format.JUNIT: Form("application/xml", lambda flow, id: junit.junit(flow.findings(id)), "xml"),
}


class NotAcceptable(UserError):
    slug = "not-acceptable"
    title = "A report has no such form"
    status = 406


def accepted(header: str | None) -> Format:
    """The form that an Accept header likes best. Errors: NotAcceptable."""
    liked = sorted(_wishes(header or "*/*"), key=lambda wish: -wish[1])
    for wanted, quality in liked:
        for format, form in FORMS.items():
            kind = form.media_type.partition("/")[0]
            if quality > 0 and wanted in (form.media_type, f"{kind}/*", "*/*"):
                return format
    raise NotAcceptable(
        f"a report cannot be had as {(header or '')[:100]!r}",
        value=header or "",
        field="Accept",
        advice=f"ask for one of {', '.join(form.media_type for form in FORMS.values())}",
    )


def _wishes(header: str) -> list[tuple[str, float]]:
    found = []
    for part in header[:1000].split(","):
        wanted, *parameters = (each.strip().lower() for each in part.split(";"))
        found.append((wanted, next((_quality(each[2:]) for each in parameters if each.startswith("q=")), 1.0)))
    return found


def _quality(written: str) -> float:
    digits = written.replace(".", "", 1)
    return min(float(written), 1.0) if digits.isdecimal() and digits.isascii() and len(written) < 8 else 0.0
