"""Recipes from YAML files: `<name>.yaml`, one recipe each. docs/recipes.md tells each key."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.adapters import yaml_lines
from service.adapters.yaml_lines import Source, Way
from service.domain.errors import BadRequest
from service.domain.recipe import Deps, Fixup, Recipe
from service.domain.recipe_rules import first_flaw
from service.domain.size import size

_RECIPE = TypeAdapter(Recipe)
_EACH = "[]"
_KEYS: Mapping[Way, frozenset[str]] = {
    (): frozenset(each.name for each in fields(Recipe)) - {"name"},
    ("deps",): frozenset(each.name for each in fields(Deps)),
    ("fixups", _EACH): frozenset(each.name for each in fields(Fixup)),
    ("resources",): frozenset({"gpus", "gpu", "shm", "memory", "cpus", "pids", "cpuset", "numa", "labels", "models"}),
}
#: Sizes are written with units.
_SIZES = {"shm": "shm_bytes", "memory": "memory_bytes"}
_SAID = {
    "string_type": "is no text; write it in quotes",
    "tuple_type": "is no list; write it like [first, second]",
    "dict_type": "is no mapping; write it like {NAME: value}",
    "dataclass_type": "is no mapping; write it like {key: value}",
    "missing": "is missing",
    "int_parsing": "is no whole number",
    "int_from_float": "is no whole number",
    "int_type": "is no whole number",
    "float_parsing": "is no number",
    "float_type": "is no number",
}


#: What requests call it.
_IN_A_REQUEST = {"build": "build_command", "overlay": "overlay_command"}


class BadRecipe(ValueError):
    """An operator's recipe cannot be used; the message names the file, the line, what is wrong there and what to do."""


def load(extra: Path | None = None) -> dict[str, Recipe]:
    """The recipes that come along, then those of `extra`, which may replace them. Errors: BadRecipe."""
    found = {}
    for folder in (resources.files("recipes"), extra):
        if folder is not None:
            files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda e: e.name)
            found.update({recipe.name: recipe for recipe in map(_read, files)})
    return found


def _read(entry: Path | Traversable) -> Recipe:
    text = _text(entry)
    source, document = _parse(entry.name, text)
    _refuse_unknown_keys(source)
    document = _with_sizes(source, document)
    try:
        recipe = _RECIPE.validate_python({"name": entry.name.removesuffix(".yaml"), **document})
    except ValidationError as error:
        first = error.errors()[0]
        raise _bad(source, first["loc"], _said(first["loc"], first["type"], first["msg"])) from None
    if (flaw := first_flaw(recipe)) is not None:
        raise _bad(source, flaw.where, f"{flaw.what}; {flaw.advice}")
    return recipe


def _bad(source: Source, way: Way, what: str) -> BadRecipe:
    return BadRecipe(source.told(way, what))


def _text(entry: Path | Traversable) -> str:
    try:
        return entry.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadRecipe(f"{entry.name}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except IsADirectoryError:
        raise BadRecipe(
            f"{entry.name} is a folder; a recipe is a file, like vllm.yaml: name the folder otherwise"
        ) from None
    except OSError as error:
        raise BadRecipe(f"{entry.name}: {(error.strerror or str(error)).lower()}; make it readable") from None


def _parse(file: str, text: str) -> tuple[Source, dict[Any, Any]]:
    otherwise = "a recipe is a mapping; write it like build_command: make"
    try:
        return yaml_lines.parse(file, text, otherwise=otherwise, page="docs/recipes.md")
    except yaml_lines.BadYaml as error:
        raise BadRecipe(str(error)) from None


def _refuse_unknown_keys(source: Source) -> None:
    for way in source.lines:
        *outer, key = way
        known = _KEYS.get(tuple(_EACH if isinstance(part, int) else part for part in outer))
        if known is not None and isinstance(key, str) and key not in known:
            if len(way) == 1 and key in _IN_A_REQUEST:
                raise _bad(source, way, f"unknown key {key!r}; in a recipe it is called {_IN_A_REQUEST[key]}")
            near = difflib.get_close_matches(key.lower().replace("-", "_"), sorted(known), n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"known here are {', '.join(sorted(known))}"
            raise _bad(source, way, f"unknown key {key!r}; {advice}")


def _with_sizes(source: Source, document: dict[Any, Any]) -> dict[Any, Any]:
    """Errors: BadRecipe."""
    wanted = document.get("resources")
    if not isinstance(wanted, dict):
        return document
    read = dict(wanted)
    for key, name in _SIZES.items():
        if (written := read.pop(key, None)) is not None:
            try:
                read[name] = size(written, field=f"resources.{key}")
            except BadRequest as error:
                raise _bad(source, ("resources", key), f"{error.detail}; {error.advice}") from None
    return {**document, "resources": read}


def _said(loc: Way, kind: str, message: str) -> str:
    name = ".".join(str(part) for part in loc if part != "[key]")
    if name == "build_timeout_s":
        return f"{name} is no number; write seconds, like 7200"
    return f"{name} {_SAID[kind]}" if kind in _SAID else f"{name}: {message[:1].lower()}{message[1:]}"
