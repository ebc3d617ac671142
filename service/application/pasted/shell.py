"""A shell script as its grammar sees it: statements one after another, and the commands in them.

Places are bytes of the UTF-8 text, as the parser counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_bash.language())
#: A script beyond these is no paste. What is asked of its commands takes the square of their number.
LONGEST = 64 * 1024
MOST_NODES = 20_000
MOST_PARTS = 1000
DEEPEST = 100
#: The parser asks for a script in pieces of this many bytes, each about once. Where it guesses on, as in 8 KiB of `$[`
#: or `a@`, it goes back for one 40,000 times and takes the square of their number.
_PIECE = 1024
MOST_PIECES = 2000
#: Of a variable's value: one that is made of others can double with each line.
LONGEST_VALUE = 4096
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_EXPANSION = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^{}$]*))?\})")


@dataclass(frozen=True)
class Word:
    """`text`: without its quotes; expansions in it stand as they are written."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Command:
    """`assigned`: what stands before its first word. `end`: of the last one."""

    node: Node
    assigned: Mapping[str, str]
    words: tuple[Word, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)

    @property
    def name(self) -> str:
        """Without the folder that it is in."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""


@dataclass(frozen=True)
class Part:
    """One of several commands that are joined by `&&`. `data`: the whole script."""

    node: Node
    data: bytes

    @property
    def start(self) -> int:
        return self.node.start_byte

    @property
    def end(self) -> int:
        return self.node.end_byte

    @property
    def text(self) -> str:
        return text_of(self.node, self.data)

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """All that are in it, at any depth."""
        return tuple(_command(node, self.data) for node in descend(self.node) if node.type == "command")

    @cached_property
    def command(self) -> Command | None:
        """When it is one command, with redirections perhaps, and perhaps with `|| true` behind it."""
        node = _without_or(self.node, self.data)
        if node.type == "redirected_statement":
            node = node.child_by_field_name("body") or node
        return _command(node, self.data) if node.type == "command" else None

    @property
    def function(self) -> str | None:
        """The name of the function that it defines."""
        if self.node.type != "function_definition":
            return None
        name = self.node.child_by_field_name("name")
        return text_of(name, self.data) if name is not None else None

    @cached_property
    def assignments(self) -> dict[str, str]:
        """Those of a statement that only assigns, with `export` perhaps."""
        node = self.node
        if node.type not in ("variable_assignment", "variable_assignments", "declaration_command"):
            return {}
        inside = [node] if node.type == "variable_assignment" else node.children
        return dict(_assignment(child, self.data) for child in inside if child.type == "variable_assignment")

    @property
    def is_comment(self) -> bool:
        return self.node.type == "comment"


@dataclass(frozen=True)
class Statement:
    """`stop`: behind the `;` or `&` that ends it."""

    parts: tuple[Part, ...]
    start: int
    end: int
    stop: int
    background: bool


@dataclass(frozen=True)
class Script:
    """Without statements, where `broken` is the first line that the grammar cannot read, from 1, or `beyond` says which
    bound it is beyond."""

    text: str
    statements: tuple[Statement, ...]
    broken: int | None = None
    beyond: str = ""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for statement in self.statements for part in statement.parts)


def read(text: str) -> Script:
    data = text.encode()
    if len(data) > LONGEST:
        return Script(text, (), beyond=f"it has more than {LONGEST} bytes")
    root = _root(data)
    if root is None:
        return Script(text, (), beyond="it takes too long to read it as a shell script")
    if root.descendant_count > MOST_NODES:
        return Script(text, (), beyond=f"it has more than {MOST_NODES} words and signs")
    if root.has_error:
        broken = next((node for node in descend(root) if node.is_error or node.is_missing), root)
        return Script(text, (), broken.start_point[0] + 1)
    if _is_deep(root):
        return Script(text, (), beyond=f"its commands are more than {DEEPEST} deep in each other")
    found = tuple(_statements(root, data))
    if sum(len(statement.parts) for statement in found) > MOST_PARTS:
        return Script(text, (), beyond=f"it has more than {MOST_PARTS} commands")
    places = [place for statement in found for place in (statement.start, statement.stop)]
    if places != sorted(places):
        # What follows a here-document on the line that begins it lies within that document's node.
        return Script(text, (), 1)
    made = Script(text, found)
    prompted = next((part for part in made.parts if part.text.startswith(("$ ", "$\t"))), None)
    if prompted is not None:
        # To the grammar a prompt is an expansion.
        return Script(text, (), data[: prompted.start].count(b"\n") + 1)
    return made


def is_whole(text: str) -> bool:
    """The grammar takes it as it is."""
    root = _root(text.encode())
    return root is not None and not root.has_error


def _root(data: bytes) -> Node | None:
    """None when the parser goes back too often."""
    # The grammar looks characters up in a table of bytes, and beyond it. To a shell all of these are letters alike.
    plain = _NOT_ASCII.sub(b"x", data)
    asked = 0

    def piece(start: int, point: object) -> bytes:
        nonlocal asked
        asked += 1
        return plain[start : start + _PIECE]

    def stops(start: int, failed: bool) -> bool:
        return asked > MOST_PIECES

    try:
        return Parser(_LANGUAGE).parse(piece, progress_callback=stops).root_node
    except ValueError:
        return None


def _is_deep(root: Node) -> bool:
    level = [root]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.children]
        if not level:
            return False
    return True


def descend(node: Node) -> Iterator[Node]:
    """Not by recursion, which a deep script would exhaust."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.children))


def text_of(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode()


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """With the variables that are known in their places; as it is written where it would be longer than a value may."""
    pieces: list[str] = []
    size = at = 0
    for found in _EXPANSION.finditer(text):
        value = variables.get(found[1] or found[2], found[3] if found[3] is not None else found[0])
        pieces += (text[at : found.start()], value)
        size += found.start() - at + len(value)
        at = found.end()
        if size > LONGEST_VALUE:
            return text
    made = "".join([*pieces, text[at:]])
    return made if len(made) <= LONGEST_VALUE else text


def _statements(root: Node, data: bytes) -> Iterator[Statement]:
    children = root.children
    for place, node in enumerate(children):
        if not node.is_named:
            continue
        behind = children[place + 1] if place + 1 < len(children) else None
        ends = behind is not None and behind.type in (";", "&")
        stop = behind.end_byte if ends and behind is not None else node.end_byte
        background = ends and behind is not None and behind.type == "&"
        parts = tuple(Part(each, data) for each in _joined(node))
        yield Statement(parts, node.start_byte, node.end_byte, stop, background)


def _joined(node: Node) -> Iterator[Node]:
    """Those of `a && b && c`; whatever else it is, as a whole."""
    chain = [node]
    while chain[0].type == "list" and [child.type for child in chain[0].children[1:2]] == ["&&"]:
        if len(chain[0].children) != 3:
            break
        left, _, right = chain[0].children
        chain = [left, right, *chain[1:]]
    yield from chain


def _without_or(node: Node, data: bytes) -> Node:
    """`a || true` is `a` that may fail."""
    if node.type == "list" and any(child.type == "||" for child in node.children):
        named = [child for child in node.children if child.is_named]
        if len(named) == 2 and text_of(named[1], data) in ("true", ":", "exit 0"):
            return named[0]
    return node


def _command(node: Node, data: bytes) -> Command:
    named = [child for child in node.children if child.is_named]
    assigned = dict(_assignment(child, data) for child in named if child.type == "variable_assignment")
    words = [child for child in named if child.type != "variable_assignment" and not child.type.endswith("redirect")]
    return Command(node, assigned, tuple(_word(word, data) for word in words))


def _assignment(node: Node, data: bytes) -> tuple[str, str]:
    value, name = node.child_by_field_name("value"), node.child_by_field_name("name")
    return text_of(name, data) if name is not None else "", _unquoted(value, data) if value is not None else ""


def _word(node: Node, data: bytes) -> Word:
    return Word(_unquoted(node, data), node.start_byte, node.end_byte)


def _unquoted(node: Node, data: bytes) -> str:
    if node.type == "concatenation":
        return "".join(_unquoted(child, data) for child in node.children)
    text = text_of(node, data)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        return text.strip('"')
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if node.type == "word" else text
