"""An operator's YAML file with the line of each value in it, so that what is wrong can be pointed at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

#: A way to a value: keys, and places in lists.
Way = tuple[str | int, ...]


class BadYaml(ValueError):
    """The message names the file, the line, what is wrong there and what to do."""


class _Loader(yaml.SafeLoader):
    """A date stays the text that it is."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True)
class Source:
    """`lines`: of each value, of a key where it has one."""

    file: str
    lines: Mapping[Way, int]

    def told(self, way: Way, what: str) -> str:
        """Where the way leads on to what is not written, the last that is."""
        known = next((way[:size] for size in range(len(way), 0, -1) if way[:size] in self.lines), ())
        return f"{self.file}, line {self.lines.get(known, 1)}: {what}"


def parse(file: str, text: str, *, otherwise: str, page: str) -> tuple[Source, dict[Any, Any]]:
    """`otherwise`: what is said of what is no mapping; `page`: of the documentation. Errors: BadYaml."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is not None and not isinstance(node, yaml.MappingNode):
            raise BadYaml(f"{file}, line {_line(node)}: {otherwise}")
        source = Source(file, dict(_lines(file, page, node)) if node is not None else {})
        return source, yaml.load(text, Loader=_Loader) or {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise BadYaml(f"{file}, line {line}: no YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, BadYaml):
            raise
        raise BadYaml(f"{file}: no YAML: {error}") from None


def _lines(
    file: str, page: str, node: yaml.Node, way: Way = (), above: tuple[int, ...] = ()
) -> Iterator[tuple[Way, int]]:
    """Errors: BadYaml for a key that is given twice, and for an alias of what it is in."""
    if id(node) in above:
        raise BadYaml(f"{file}, line {_line(node)}: this value holds itself; write it out instead of the alias")
    if isinstance(node, yaml.SequenceNode):
        for place, item in enumerate(node.value):
            yield (*way, place), _line(item)
            yield from _lines(file, page, item, (*way, place), (*above, id(node)))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise BadYaml(f"{file}, line {_line(key)}: a key is no name; write it as {page} shows")
            if key.value in seen:
                raise BadYaml(f"{file}, line {_line(key)}: {key.value!r} is given twice; keep one of them")
            seen.add(key.value)
            yield (*way, key.value), _line(key)
            yield from _lines(file, page, value, (*way, key.value), (*above, id(node)))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
