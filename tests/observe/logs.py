"""The corpus: logs written for these tests, one that the example's server wrote, and what is right of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from worker.observe.signature import Signature, signature

CORPUS = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Right:
    """What the signature of a log is. `failure`: logs with the same one are runs of the same failure. `signs`: all that
    it shows, in the order of their lines; `aside`: those that are not the root failure's own."""

    failure: str
    project: tuple[str, ...]
    kind: str
    type: str
    message: str
    frames: tuple[str, ...]
    line: int
    hang: bool = False
    signs: tuple[str, ...] = field(default=(), compare=False)
    aside: tuple[str, ...] = field(default=(), compare=False)


@cache
def rights() -> dict[str, Right]:
    given = yaml.safe_load((CORPUS / "signatures.yaml").read_text())
    return {
        name: Right(**{key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()})
        for name, facts in given.items()
    }


def text_of(name: str) -> str:
    """As it is: a carriage return belongs to a progress bar and ends no line."""
    return (CORPUS / name).read_bytes().decode()


@cache
def found_in(name: str) -> Signature:
    right = rights()[name]
    found = signature(text_of(name), right.project, hang=right.hang)
    assert found is not None
    return found
