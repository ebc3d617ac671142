"""Recipes from YAML files: `<name>.yaml`, one recipe each."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from service.domain.recipe import Recipe

_RECIPE = TypeAdapter(Recipe)
_KEYS = frozenset(Recipe.__dataclass_fields__) - {"name"}


class BadRecipe(ValueError):
    """An operator's recipe cannot be read; the message names the file and what is wrong in it."""


def load(extra: Path | None = None) -> dict[str, Recipe]:
    """The recipes that come along, then those of `extra`, which may replace them. Errors: BadRecipe."""
    found = {}
    for folder in (resources.files("recipes"), extra):
        if folder is not None:
            files = [entry for entry in folder.iterdir() if entry.name.endswith(".yaml")]
            found.update({recipe.name: recipe for recipe in (_read(entry.name, entry.read_text()) for entry in files)})
    return found


def _read(file: str, text: str) -> Recipe:
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise BadRecipe(f"{file}: no YAML: {error}") from error
    if not isinstance(document, dict):
        raise BadRecipe(f"{file}: a recipe is a mapping, not {type(document).__name__}")
    unknown = sorted(str(key) for key in document if key not in _KEYS)
    if unknown:
        raise BadRecipe(f"{file}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    try:
        return _RECIPE.validate_python({"name": file.removesuffix(".yaml"), **document})
    except ValidationError as error:
        raise BadRecipe(f"{file}: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}") from error
