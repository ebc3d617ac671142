"""A report as one file of HTML that loads nothing and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.application.reports.findings import Findings, facts, seconds, steps
from service.domain.duration import spoken
from service.doors.hiding import without_password

_HERE = Path(__file__).parent
STYLE = (_HERE / "report.css").read_text()
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
#: What such a page may do, wherever it is opened.
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
LONGEST, LONGEST_CODE, MOST_ROWS = 1000, 100_000, 2000
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def _clean(text: str, most: int = LONGEST) -> str:
    fit = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text[: most + 1])
    return fit if len(fit) <= most else f"{fit[: most - 1]}…"


_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters["clean"] = _clean
_TEMPLATES.filters["code"] = lambda text: _clean(text, LONGEST_CODE)


def page(found: Findings) -> str:
    rows = [(probe, found.subject(probe.sha), _took(seconds(probe))) for probe in found.over[:MOST_ROWS]]
    return _TEMPLATES.get_template("report.html").render(
        found=found,
        report=found.report,
        bisection=found.bisection,
        first=found.first_bad,
        facts=list(facts(found, without_password(found.request.repo))),
        proof={proof.probe.id for proof in found.report.evidence},
        steps=list(steps(found)),
        rows=rows,
        more=len(found.over) - len(rows),
        style=STYLE,
        policy=POLICY,
    )


def _took(seconds_: float | None) -> str:
    return spoken(seconds_) if seconds_ is not None else ""
