"""Policies from an operator's YAML file, or from JSON in the setting itself. docs/policies.md tells each key."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from service.adapters import yaml_lines
from service.adapters.yaml_lines import BadYaml, Way
from service.domain import duration
from service.domain.access import Scope
from service.domain.budget import Budget, Priority
from service.domain.errors import BadRequest
from service.domain.policy import USUAL, CallerPolicy
from service.domain.recipe import SandboxKind

MOST_BYTES = 256 * 1024
#: What the file is called where there is none.
WRITTEN = "the JSON"
_Text = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True)]
_Patterns = Annotated[tuple[_Text, ...], Field(max_length=200)]
#: By pydantic's name of what is wrong.
_SAID: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "is no text; write it in quotes",
    "tuple_type": "is no list; write it like [first, second]",
    "model_type": "is no mapping; write it like {key: value}",
    "int_type": "is no whole number",
    "int_parsing": "is no whole number",
    "int_from_float": "is no whole number",
    "float_type": "is no number",
    "float_parsing": "is no number",
    "string_too_short": "is empty",
}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Budget(_Model):
    probes: int | None = Field(None, ge=2)
    wall: str | float | None = None
    gpu_hours: float | None = Field(None, gt=0)


class _Policy(_Model):
    """What is left out is as the usual policy of the scope has it; without one, as the service allows."""

    name: _Text
    scope: Scope | None = None
    callers: _Patterns = ()
    sandboxes: tuple[SandboxKind, ...] | None = Field(None, min_length=1)
    networks: _Patterns | None = None
    build_networks: _Patterns | None = None
    secrets: _Patterns | None = None
    images: _Patterns | None = None
    gpus: int | None = Field(None, ge=0)
    width: int | None = Field(None, ge=1)
    priority: Priority | None = None
    budget: _Budget = Field(default_factory=_Budget)


class _File(_Model):
    policies: Annotated[tuple[_Policy, ...], Field(max_length=200)] = ()


def load(written: str) -> tuple[CallerPolicy, ...]:
    """`written`: the path of a file, or JSON; nothing is no policy but the usual ones. Errors: ValueError, which names
    the line and the key."""
    if not written.strip():
        return ()
    file, text = (WRITTEN, written) if written.lstrip().startswith("{") else _read(written.strip())
    source, document = yaml_lines.parse(
        file, text, otherwise="it is no mapping; write it like policies: [{name: …}]", page="docs/policies.md"
    )
    try:
        found = _File.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadYaml(source.told(first["loc"], _said(first["loc"], first["type"], first["msg"]))) from None
    made: list[CallerPolicy] = []
    for place, policy in enumerate(found.policies):
        way: Way = ("policies", place)
        if policy.name in [one.name for one in made]:
            raise BadYaml(source.told((*way, "name"), f"{policy.name!r} is given twice; name each policy otherwise"))
        try:
            made.append(_made(policy))
        except BadRequest as error:
            raise BadYaml(source.told((*way, "budget", "wall"), f"{error.detail}; {error.advice}")) from None
    return tuple(made)


def _read(path: str) -> tuple[str, str]:
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise BadYaml(f"{path!r}: {said}; name a YAML file, or write JSON that begins with {{") from None
    if len(content) > MOST_BYTES:
        raise BadYaml(f"{path!r} has more than {MOST_BYTES} bytes")
    try:
        return path, content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadYaml(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def _made(policy: _Policy) -> CallerPolicy:
    usual = USUAL.get(policy.scope or Scope.SUBMIT, CallerPolicy(""))
    wall = policy.budget.wall
    hours = policy.budget.gpu_hours
    return CallerPolicy(
        policy.name,
        policy.scope,
        policy.callers,
        frozenset(policy.sandboxes) if policy.sandboxes is not None else usual.sandboxes,
        policy.networks if policy.networks is not None else usual.networks,
        policy.build_networks if policy.build_networks is not None else usual.build_networks,
        policy.secrets if policy.secrets is not None else usual.secrets,
        policy.images if policy.images is not None else usual.images,
        policy.gpus,
        policy.width,
        policy.priority or usual.priority,
        Budget(
            policy.budget.probes,
            duration.seconds(wall, field="wall") if wall is not None else None,
            hours * 3600.0 if hours is not None else None,
        ),
    )


def _said(loc: Way, kind: str, message: str) -> str:
    name = ".".join(map(str, loc))
    if kind == "extra_forbidden":
        return f"unknown key {loc[-1]!r}; {_near(loc)}"
    return f"{name} {_SAID[kind]}" if kind in _SAID else f"{name}: {message[:1].lower()}{message[1:]}"


def _near(loc: Way) -> str:
    model: Any = _File if len(loc) == 1 else _Budget if "budget" in loc[:-1] else _Policy
    known = sorted(model.model_fields)
    found = difflib.get_close_matches(str(loc[-1]).lower().replace("-", "_"), known, n=1)
    return f"did you mean {found[0]!r}?" if found else f"known here are {', '.join(known)}"
