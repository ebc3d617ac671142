"""docs/requests.md and docs/api.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.cli.status import Status
from service.domain.lifecycle import BisectionState
from service.doors.api.bodies import ReadyBody, ServeBody, SubmissionBody, submission
from service.doors.api.document import parse
from service.doors.api.problems import MEANINGS
from service.doors.api.routes import router
from service.doors.api.views import ReportView

DOCS = Path(__file__).parents[2] / "docs"
REQUESTS = (DOCS / "requests.md").read_text()
API = (DOCS / "api.md").read_text()


def rows(text: str) -> set[str]:
    """The first cell of each row of a table whose rows begin with a name."""
    return set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))


def test_every_key_of_a_request_is_told() -> None:
    ready = {f"ready.{name}" for name in ReadyBody.model_fields}
    assert rows(REQUESTS) == {*SubmissionBody.model_fields, *ServeBody.model_fields, *ready} - {"ready"}


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", REQUESTS, re.DOTALL))
def test_every_example_is_taken(example: str) -> None:
    made = submission(parse(example.encode(), "application/yaml"))
    assert made.good and made.bad and made.repo


def test_every_route_is_told() -> None:
    for route in router.routes:
        path = route.path.removeprefix("/api/v1")  # type: ignore[attr-defined]
        assert re.search(rf"`[^`]*{re.escape(path)}(\?[^`]*)?`", API), path


def test_every_state_status_and_member_is_told() -> None:
    assert all(f"`{state}`" in API for state in BisectionState)
    assert all(f"| {status} |" in API for status in (*MEANINGS, *Status))
    shown = set(ReportView.model_fields) - {"id", "live", "links", "repo", "submitter"}
    assert all(f"`{name}`" in API for name in shown if not name.endswith("_at"))
