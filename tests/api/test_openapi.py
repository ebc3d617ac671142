from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.doors.api.bodies import SubmissionBody
from service.doors.api.document import parse

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture
def document(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/api/v1/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method} {path}", item[method]


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_every_route_is_described(document: dict[str, Any]) -> None:
    assert {name for name, _ in operations(document)} == {
        "post /api/v1/bisections",
        "post /api/v1/bisections/parse",
        "post /api/v1/bisections/{id}/judge",
        "post /api/v1/bisections/{id}/clone",
        "get /api/v1/bisections/{id}/report",
        "post /api/v1/bisections/{id}/overrides",
        "post /api/v1/bisections/{id}/probes",
        "post /api/v1/nodes/{name}/return",
        "get /api/v1/bisections",
        "get /api/v1/bisections/{id}",
        "delete /api/v1/bisections/{id}",
        "patch /api/v1/bisections/{id}",
        "post /api/v1/bisections/{id}/pause",
        "post /api/v1/bisections/{id}/resume",
        "get /api/v1/bisections/{id}/metric",
        "get /api/v1/bisections/{id}/metric.svg",
        "get /api/v1/bisections/{id}/probes",
        "get /api/v1/bisections/{id}/builds",
        "get /api/v1/bisections/{id}/events",
        "get /api/v1/bisections/{id}/probes/{number}/log",
        "get /api/v1/probes/{id}",
        "get /api/v1/probes/{id}/log",
        "get /api/v1/builds/{key}/log",
        "get /api/v1/builds",
        "get /api/v1/builds/{key}",
        "get /api/v1/recipes",
        "get /api/v1/recipes/{name}",
        "get /api/v1/nodes",
        "get /api/v1/nodes/{name}",
        "post /api/v1/tokens",
        "get /api/v1/tokens",
        "delete /api/v1/tokens/{id}",
        "post /api/v1/webhooks",
        "get /api/v1/webhooks",
        "get /api/v1/webhooks/{id}",
        "post /api/v1/webhooks/{id}/test",
        "delete /api/v1/webhooks/{id}",
        "get /",
        "get /healthz",
        "get /readyz",
    }


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does(document: dict[str, Any]) -> None:
    described = list(operations(document))
    names = [operation["operationId"] for _, operation in described]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] for _, operation in described)


def test_every_error_is_documented_as_a_problem(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        answers = operation["responses"].items()
        errors = {status: said for status, said in answers if status >= "400" and status != "503"}
        assert any(status.startswith("4") for status in errors), name
        for said in errors.values():
            content = said["content"]["application/problem+json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert set(content["example"]) >= {"type", "title", "status", "detail"}
        if "{id}" in name:
            assert {"404", "422"} <= set(errors)


def test_every_reference_leads_to_a_schema_and_every_schema_is_used(document: dict[str, Any]) -> None:
    used = {reference.rpartition("/")[2] for reference in references(document)}
    assert used == set(document["components"]["schemas"])
    assert all(reference.startswith("#/components/schemas/") for reference in references(document))


def test_the_examples_of_a_request_are_taken(document: dict[str, Any], http: httpx.Client) -> None:
    content = document["paths"]["/api/v1/bisections"]["post"]["requestBody"]["content"]
    for media_type, said in content.items():
        example = said["example"]
        text = example if isinstance(example, str) else json.dumps(example)
        answer = http.post("/api/v1/bisections", content=text.encode(), headers={"content-type": media_type})
        assert answer.status_code == 201, answer.text
        assert SubmissionBody.model_validate(parse(text.encode(), media_type))


def test_every_part_of_a_request_says_what_it_means(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    parts = ("ServeBody", "ReadyBody", "DepsBody", "FixupBody", "ControlBody", "MetricBody", "CsvBody", "MeasuringBody")
    for part in (*parts, "ResourcesBody", "BudgetBody"):
        assert all(said.get("description") for name, said in schemas[part]["properties"].items() if name != "ready")
    assert {"pattern", "json", "csv", "reader"} < set(schemas["MetricBody"]["properties"])
    assert "json_path" not in schemas["MetricBody"]["properties"]


def test_the_document_holds_every_key_of_a_request_with_its_meaning(document: dict[str, Any]) -> None:
    properties = document["components"]["schemas"]["SubmissionBody"]["properties"]
    assert set(properties) == set(SubmissionBody.model_fields)
    assert all(said.get("description") for said in properties.values())
