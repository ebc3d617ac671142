"""A bisection on a page for people: whole without JavaScript, and kept up to date by it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from service.application.curve import Curve, Point
from service.application.flow import Flow
from service.application.report import Report
from service.domain import amounts
from service.domain.bisection import Bisection, Problem
from service.domain.budget import Priority
from service.domain.duration import spoken
from service.domain.errors import NotFound, UserError
from service.domain.lifecycle import LIVE_BISECTIONS
from service.doors import charts, paths
from service.doors.charts.words import clean, description, short
from service.doors.hiding import without_password
from service.doors.parameters import BISECTION, FlowOf

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

HERE = Path(__file__).parent
STYLE, SCRIPT = ((HERE / name).read_text() for name in ("page.css", "page.js"))
#: Of a subject or a reason; what is longer is cut.
LONGEST = 500


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        "img-src 'self'",
        "connect-src 'self'",
        f"style-src {_hash(STYLE)}",
        f"script-src {_hash(SCRIPT)}",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


@router.get("/bisections/{id}")
def bisection(id: str, flow: FlowOf) -> HTMLResponse:
    """What is wrong with what was asked for is a page too."""
    try:
        return _page(_shown(id, flow), 200)
    except UserError as error:
        return refused(error)


def refused(error: UserError) -> HTMLResponse:
    written = _template("problem.html").render(headline=error.title, problem=_trouble(error), live=False)
    return _page(written, error.status)


def _page(written: str, status: int) -> HTMLResponse:
    return HTMLResponse(written, status, {"Content-Security-Policy": POLICY})


def _shown(id: str, flow: Flow) -> str:
    if not re.fullmatch(BISECTION, id):
        raise NotFound(f"there is no bisection {id!r}", value=id, advice="check the id; firstbad list shows all")
    report = flow.report(id)
    curve = flow.curve(id) if report.bisection.request.metric is not None else None
    return _written(report, curve)


@cache
def _template(name: str) -> Template:
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    environment.globals.update(style=Markup(STYLE), script=Markup(SCRIPT))
    return environment.get_template(name)


def _written(report: Report, curve: Curve | None) -> str:
    found = report.bisection
    answer = found.answer
    return _template("bisection.html").render(
        id=found.id,
        state=_state(found),
        live=found.state in LIVE_BISECTIONS,
        repo=clean(without_password(found.request.repo), LONGEST),
        headline=clean(report.headline, LONGEST),
        explanation=[clean(line, 4 * LONGEST) for line in report.explanation],
        good=clean(", ".join(found.request.good), LONGEST),
        bad=clean(found.request.bad, LONGEST),
        standing=_standing(report),
        problem=_trouble(found.problem),
        answer=report.answer,
        confidence=f"{answer.confidence:.1%}" if answer is not None and answer.confidence is not None else "",
        evidence=report.evidence,
        picture=_picture(found.id, curve) if curve is not None and curve.points else None,
        json=paths.bisection(found.id),
        log=paths.log,
        clean=lambda text: clean(text, LONGEST),
    )


def _trouble(problem: Problem | UserError | None) -> list[str]:
    """What was wrong, a line each, and what to do."""
    if problem is None:
        return []
    lines = [*problem.detail.splitlines(), *([f"→ {problem.advice}"] if problem.advice else [])]
    return [clean(line, LONGEST) for line in lines]


def _state(found: Bisection) -> str:
    """And what else says whether anything is going to happen."""
    live = found.state in LIVE_BISECTIONS
    more = ["paused"] if live and found.paused_at is not None else []
    more += [f"{found.priority} priority"] if live and found.priority is not Priority.NORMAL else []
    return ", ".join((str(found.state), *more))


def _standing(report: Report) -> str:
    found, said = report.bisection, []
    if found.candidates is not None and found.state in LIVE_BISECTIONS:
        said += [f"{found.candidates_left} of {found.candidates} candidates left", f"{report.probes_done} probes done"]
        said += [f"{report.waiting} waiting for their turn"] if report.waiting else []
    return ", ".join((*said, *_spent(report)))


def _spent(report: Report) -> Iterator[str]:
    """Of each limit of its budget."""
    most, cost = report.bisection.budget, report.spent
    if most.probes is not None:
        yield f"{cost.probes} of {most.probes} probes spent"
    if most.wall_s is not None:
        yield f"{spoken(cost.wall_s)} of {spoken(most.wall_s)} spent"
    if most.gpu_s is not None:
        yield f"{cost.gpu_s / 3600:.2f} of {most.gpu_s / 3600:.4g} GPU hours spent"


def _picture(id: str, curve: Curve) -> dict[str, object]:
    """The path changes when the picture does, so that a browser loads it again then, and only then."""
    drawn = charts.tag(curve).strip('"')
    return {
        "path": f"{paths.picture(id)}?drawn={drawn}",
        "told": description(curve),
        "name": clean(" ".join(filter(None, (curve.name, curve.unit))), 80),
        "rows": [_row(point) for point in curve.points],
    }


def _row(point: Point) -> dict[str, object]:
    return {
        "place": point.position,
        "sha": short(point.sha),
        "verdict": point.verdict or "",
        "level": amounts.level(point.level),
        "runs": sum(not run.dropped for run in point.runs),
        "subject": clean(point.subject, LONGEST),
    }
