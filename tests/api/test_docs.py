"""docs/requests.md, docs/api.md and docs/cli.md say what the code does."""

from __future__ import annotations

import io
import re
from dataclasses import fields
from pathlib import Path

import pytest
from fastapi import FastAPI
from rich.console import Console

from service.adapters import readers, servers
from service.adapters.recipes import load
from service.application.ports import Policy
from service.application.submit import complete
from service.cli import asked
from service.cli.index import ENTRIES
from service.cli.plot import Plot
from service.cli.status import Status
from service.domain.lifecycle import BisectionState
from service.domain.recipe import Deps, Fixup, Recipe, SandboxKind
from service.doors.api import render
from service.doors.api.bodies import SubmissionBody, submission
from service.doors.api.document import parse
from service.doors.api.parts import (
    BudgetBody,
    ControlBody,
    CsvBody,
    DepsBody,
    FixupBody,
    MeasuringBody,
    MetricBody,
    ReadyBody,
    ResourcesBody,
    ServeBody,
)
from service.doors.api.problems import MEANINGS
from service.doors.api.routes import router
from service.doors.api.views import CurveView, IntervalView, PointView, ReportView, RunView, SideView, StepView
from tests.doors.curves import stepped

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = (DOCS / "recipes.md").read_text()
REQUESTS = (DOCS / "requests.md").read_text()
API = (DOCS / "api.md").read_text()
CLI = (DOCS / "cli.md").read_text()


def rows(text: str) -> set[str]:
    """The first cell of each row of a table whose rows begin with a name."""
    return set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))


def test_every_key_of_a_request_is_told() -> None:
    ready = {f"ready.{name}" for name in ReadyBody.model_fields}
    parts = (ServeBody, DepsBody, FixupBody, ControlBody, MetricBody, CsvBody, MeasuringBody, ResourcesBody)
    parts = (*parts, BudgetBody)
    inner = {name for body in parts for name in body.written()}
    assert rows(REQUESTS) == {*SubmissionBody.model_fields, *inner, *ready} - {"ready"}


def test_every_key_of_a_recipe_is_told() -> None:
    inner = {each.name for part in (Deps, Fixup) for each in fields(part)} | set(ResourcesBody.written())
    told = rows(RECIPES.partition("\n## The keys\n")[2].partition("\n## ")[0])
    assert told == {each.name for each in fields(Recipe)} - {"name"} | inner


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", RECIPES, re.DOTALL))
def test_every_example_of_a_recipe_is_taken(example: str, tmp_path: Path) -> None:
    (tmp_path / "example.yaml").write_text(example)
    assert load(tmp_path)["example"].build_command


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", REQUESTS, re.DOTALL))
def test_every_example_is_taken(example: str) -> None:
    made = submission(parse(example.encode(), "application/yaml"))
    assert made.good and made.bad and made.repo


@pytest.mark.parametrize(
    "file", sorted((DOCS.parent / "examples" / "requests").glob("*.yaml")), ids=lambda file: file.name
)
def test_every_request_of_the_examples_is_completed(file: Path) -> None:
    policy = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
    asked = submission(parse(file.read_bytes(), "application/yaml"))
    request = complete(asked, load(), policy, servers.load(), readers.load())
    assert request.reproduction.check or request.metric is not None


def test_what_a_pasted_script_becomes_is_what_the_document_shows() -> None:
    told = REQUESTS.partition("## A pasted script")[2].partition("\n## ")[0]
    written, shown = re.findall(r"```(?:yaml|console)\n(.*?)```", told, re.DOTALL)
    policy = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
    request = complete(submission(parse(written.encode(), "application/yaml")), load(), policy, servers.load())
    out = io.StringIO()
    asked.would_run(Console(file=out, width=10_000), render.request(request))
    assert shown.partition("\n")[2] == out.getvalue()


def test_every_route_is_told() -> None:
    app = FastAPI()
    app.include_router(router)
    for whole in app.openapi()["paths"]:
        path = whole.removeprefix("/api/v1")
        assert re.search(rf"`[^`]*{re.escape(path)}(\?[^`]*)?`", API), path


def test_every_member_of_a_metric_is_told() -> None:
    told = API.partition("\n## A metric\n")[2].partition("\n## ")[0]
    for view in (CurveView, PointView, RunView, SideView, StepView, IntervalView):
        assert all(f"`{name}`" in told for name in view.model_fields), view


def test_the_plot_in_the_document_is_what_is_drawn() -> None:
    out = io.StringIO()
    Console(file=out, width=100, legacy_windows=False).print(Plot(render.curve(stepped())))
    assert f"```console\n{out.getvalue()}```" in CLI


def test_every_state_status_and_member_is_told() -> None:
    assert all(f"`{state}`" in API for state in BisectionState)
    assert all(f"| {status} |" in API for status in MEANINGS)
    assert all(f"| {status} |" in CLI for status in Status)
    shown = set(ReportView.model_fields) - {"id", "live", "links", "repo", "submitter"}
    assert all(f"`{name}`" in API for name in shown if not name.endswith("_at"))


def test_every_command_is_told() -> None:
    told = {word for row in re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", CLI, re.MULTILINE) for word in row.split()}
    assert set(ENTRIES) <= {word.strip("`,") for word in told}
