"""The servers that are known in pasted scripts, from recipes/known/servers.yaml."""

from __future__ import annotations

from importlib import resources

import yaml
from pydantic import TypeAdapter

from service.domain.servers import Server


def load() -> tuple[Server, ...]:
    text = resources.files("recipes").joinpath("known/servers.yaml").read_text(encoding="utf-8")
    entries = [{**each, "commands": [line.split() for line in each["commands"]]} for each in yaml.safe_load(text)]
    return TypeAdapter(tuple[Server, ...]).validate_python(entries)
