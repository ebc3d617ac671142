"""The OpenAPI document: what FastAPI writes, and the schemas that only our own reading of bodies and errors uses."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from service.doors.api.action_bodies import ChangeBody, OverrideBody, ReprobeBody
from service.doors.api.bodies import SubmissionBody
from service.doors.api.document import JSON_TYPES, YAML_TYPES
from service.doors.api.reports.whole import WholeReportView
from service.doors.api.views import Problem

#: Operations that answer a new bisection.
BEGINNING = frozenset({"submit", "cloneBisection"})
REFS = "#/components/schemas/{model}"

YAML_EXAMPLE = """\
repo: https://git.example.org/team/tinyserve.git
good: v1.4.0
bad: main
serve:
  command: tinyserve serve --num_speculative_tokens 2
  ready: {http: /health, within: 2m}
failure: supports graph capture of uniform decode batches only
"""
#: Those that routes read themselves.
_bodies: list[type[BaseModel]] = [SubmissionBody, ChangeBody, OverrideBody, ReprobeBody]
_CHANGES = {JSON_TYPES[0]: {"priority": "high"}, JSON_TYPES[1]: {"priority": "high"}, YAML_TYPES[0]: "priority: high\n"}


def request_body() -> dict[str, Any]:
    """For the route that takes a request: the same schema in both languages."""
    schema = {"$ref": REFS.format(model=SubmissionBody.__name__)}
    as_json = {"schema": schema, "example": SubmissionBody.model_config["json_schema_extra"]["examples"][0]}  # type: ignore[index]
    content = {JSON_TYPES[0]: as_json, YAML_TYPES[0]: {"schema": schema, "example": YAML_EXAMPLE}}
    return {"requestBody": {"required": True, "content": content}}


def change_body() -> dict[str, Any]:
    """For the route that changes a bisection."""
    schema = {"$ref": REFS.format(model=ChangeBody.__name__)}
    content = {kind: {"schema": schema, "example": text} for kind, text in _CHANGES.items()}
    return {"requestBody": {"required": True, "content": content}}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """For a route that reads its body itself, in both languages; the example is the model's first."""
    if model not in _bodies:
        _bodies.append(model)
    schema = {"$ref": REFS.format(model=model.__name__)}
    example = model.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    written = yaml.safe_dump(example, sort_keys=False)
    content = {JSON_TYPES[0]: example, YAML_TYPES[0]: written}
    made = {kind: {"schema": schema, "example": shown} for kind, shown in content.items()}
    return {"requestBody": {"required": True, "content": made}}


def partial_body() -> dict[str, Any]:
    """For the route that takes changes of a request: any of its keys."""
    schema = {"type": "object", "description": "Keys of a request; null takes one out."}
    content = {kind: {"schema": schema, "example": {"bad": "v1.5.1"}} for kind in JSON_TYPES}
    return {"requestBody": {"content": {**content, YAML_TYPES[0]: {"schema": schema, "example": "bad: v1.5.1\n"}}}}


def _link(document: dict[str, Any]) -> None:
    """What began a bisection leads to what can be asked of it (OpenAPI's links)."""
    operations = [one for item in document["paths"].values() for one in item.values()]
    of_one = [name for name, item in document["paths"].items() if "/bisections/{id}" in name and "{number}" not in name]
    asked = [one["operationId"] for name in of_one for one in document["paths"][name].values() if _of_id(one)]
    links = {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in sorted(asked)}
    for operation in operations:
        if operation["operationId"] in BEGINNING:
            operation["responses"]["201"]["links"] = links


def _of_id(operation: dict[str, Any]) -> bool:
    return any(given["in"] == "path" and given["name"] == "id" for given in operation.get("parameters", ()))


def describe(app: FastAPI) -> None:
    """Makes `app.openapi()` complete."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for body in _bodies:
        schemas.update(_schemas(body, "validation"))
    schemas.update(_schemas(WholeReportView, "serialization"))
    schemas.update(_schemas(Problem, "serialization"))
    _link(document)
    return document


def _schemas(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=REFS, mode=mode)
    return {**schema.pop("$defs", {}), model.__name__: schema}
