"""The text of a request, JSON or YAML, as plain data. Values are kept as they were written, so that refs survive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import yaml

from service.domain.errors import BadRequest, UserError

JSON_TYPES = ("application/json", "application/merge-patch+json")
YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
#: More than any request needs, and few enough that reading them takes no time worth having.
MOST_YAML_EVENTS = 20_000


class UnsupportedMediaType(UserError):
    slug = "unsupported-media-type"
    title = "This content type is not read here"
    status = 415


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.1 makes the ref 0.10 the number 0.1, and `no` false: here all but null stays the text it is."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        _refuse_repeated(keys)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


def parse(text: bytes, media_type: str) -> dict[str, Any]:
    """Errors: UnsupportedMediaType; BadRequest for what is not one mapping in that language."""
    if media_type not in JSON_TYPES + YAML_TYPES:
        raise UnsupportedMediaType(
            f"the request has the content type {media_type or '(none)'!s}",
            value=media_type,
            field="Content-Type",
            advice=f"send JSON as {JSON_TYPES[0]} or YAML as {YAML_TYPES[0]}",
        )
    try:
        decoded = text.decode("utf-8-sig")
        document = _json(decoded) if media_type in JSON_TYPES else _yaml(decoded)
    except UnicodeDecodeError as error:
        raise BadRequest(f"byte {error.start} of the request is not UTF-8", advice="save the file as UTF-8") from None
    except RecursionError:
        raise BadRequest("the request is nested too deeply", advice="write it as docs/requests.md shows") from None
    return _mapping(document)


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(f"the request is no JSON: {error.msg} at {where}", advice="send one JSON object") from None
    except ValueError as error:
        raise BadRequest(f"the request is no usable JSON: {error}", advice="send one JSON object") from None


def _yaml(text: str) -> object:
    try:
        _refuse_costly(yaml.parse(text, Loader=_Loader))
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        detail = f"the request is no YAML: {error.problem or error.context}{where}"
        raise BadRequest(detail, advice="mind indentation, and quote values that hold ': ' or ' #'") from None
    except yaml.YAMLError as error:
        raise BadRequest(f"the request is no YAML: {error}", advice="save the file as plain UTF-8 text") from None
    except ValueError as error:
        raise BadRequest(f"the request is no usable YAML: {error}", advice="write plain keys and values") from None


def _refuse_costly(events: Iterable[yaml.Event]) -> None:
    """Aliases can make a kilobyte expand to gigabytes."""
    for number, event in enumerate(events):
        if isinstance(event, yaml.AliasEvent):
            raise BadRequest(
                f"the alias *{event.anchor} is not read", value=str(event.anchor), advice="write the value out"
            )
        if number > MOST_YAML_EVENTS:
            raise BadRequest("the request holds too many values", advice="write it as docs/requests.md shows")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_repeated([key for key, _ in pairs])
    return dict(pairs)


def _refuse_repeated(keys: list[Any]) -> None:
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise BadRequest(
                f"the key {key!r} is given twice", value=str(key), field=str(key), advice="keep one of them"
            )
        seen.add(key)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _mapping(document: object) -> dict[str, Any]:
    if isinstance(document, dict) and all(isinstance(key, str) for key in document):
        return document
    what = "empty" if document is None else "no mapping of names to values"
    raise BadRequest(f"the request is {what}", advice="give at least good, bad and a script, as docs/requests.md shows")
