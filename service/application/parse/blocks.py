"""A text of Markdown in blocks: prose, code, tables and headings, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from service.application.parse.draft import Origin

#: So many characters are read; the forges take no longer issues and comments.
LONGEST = 65_536
#: So many lines outside of code blocks, each of which takes a Markdown parser some 40 microseconds at worst.
MOST_LINES = 800
#: And so many inside.
MOST_CODE_LINES = 6_000
_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"[ \t>*+-]{0,12}(`{3,}|~{3,})")
_SUMMARY = re.compile(r"(?i)<summary>([^\n<]{0,300})")
_TAG = re.compile(r"<[^<>\n]{0,300}>")

Kind = Literal["prose", "code", "table", "heading"]


@dataclass(frozen=True)
class Block:
    """`text`: of code what stands in it, else the text from `start` to `end` as it is. `language`: of a fence.
    `section`: the heading above it, or the summary of the details that it stands in; `lead`: the prose before it."""

    kind: Kind
    start: int
    end: int
    text: str
    language: str = ""
    section: str = ""
    lead: str = ""
    exact: bool = True

    def origin(self, start: int, end: int) -> Origin:
        """Of a part of an exact block's text."""
        return Origin(self.start + start, self.start + end, self.text[start:end])


@dataclass(frozen=True)
class Read:
    """`unread`: characters at the end that were too many."""

    text: str
    blocks: tuple[Block, ...]
    unread: int = 0


def read(text: str) -> Read:
    """Never raises."""
    ends = _bounded(text)
    end = ends[-1] if ends else 0
    markdown = MarkdownIt("commonmark").enable("table")
    # Their text is looked through as it stands.
    markdown.core.ruler.disable(["inline", "text_join"], True)
    starts = [0, *ends]
    found = _blocks(text, starts, markdown.parse(text[:end]))
    return Read(text, tuple(_placed(found)), len(text) - end)


def _bounded(text: str) -> list[int]:
    """Where the lines end that are read."""
    ends: list[int] = []
    plain = code = 0
    fence = ""
    at = 0
    while at < min(len(text), LONGEST) and plain < MOST_LINES and code < MOST_CODE_LINES:
        found = _LINE_END.search(text, at, LONGEST)
        end = found.end() if found is not None else min(len(text), LONGEST)
        mark = _FENCE.match(text, at, end)
        if mark is not None:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        plain, code = (plain, code + 1) if fence else (plain + (mark is not None or not text[at:end].isspace()), code)
        ends.append(end)
        at = end
    return ends


def _blocks(text: str, starts: Sequence[int], tokens: Sequence[Token]) -> Iterator[Block]:
    within_table = False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            within_table = token.type == "table_open"
        if token.map is None:
            continue
        start, end = starts[min(token.map[0], len(starts) - 1)], starts[min(token.map[1], len(starts) - 1)]
        raw = text[start:end]
        match token.type:
            case "fence" | "code_block":
                language = token.info.strip().split(" ")[0].strip("{}.").lower() if token.info.strip() else ""
                yield Block("code", start, end, token.content, language, exact=False)
            case "html_block":
                yield from _of_html(start, raw)
            case "table_open":
                yield Block("table", start, end, raw)
            case "heading_open":
                yield Block("heading", start, end, raw)
            case "paragraph_open" if not within_table:
                yield Block("prose", start, end, raw)
            case _:
                pass


def _of_html(start: int, raw: str) -> Iterator[Block]:
    """Fences stand in it where nobody left a line blank."""
    at, fence, begun = 0, "", 0
    lines = raw.splitlines(keepends=True)
    language, place = "", 0
    for line in lines:
        mark = _FENCE.match(line)
        if mark is not None and not fence:
            if raw[begun:place].strip():
                yield Block("prose", start + begun, start + place, raw[begun:place])
            fence, at, language = mark[1], place + len(line), line[mark.end() :].strip().lower()
        elif mark is not None and mark[1].startswith(fence):
            yield Block("code", start + at, start + place, raw[at:place], language)
            fence, begun = "", place + len(line)
        place += len(line)
    if fence:
        yield Block("code", start + at, start + place, raw[at:place], language)
    elif raw[begun:].strip():
        yield Block("prose", start + begun, start + len(raw), raw[begun:])


def _placed(blocks: Iterator[Block]) -> Iterator[Block]:
    """With the section and the prose that lead to each."""
    heading, summary, lead = "", "", ""
    for block in blocks:
        if block.kind == "prose" and "<" in block.text:
            if "</details>" in block.text.lower():
                summary = ""
            if (found := _SUMMARY.search(block.text)) is not None:
                summary = found[1].strip()
        yield replace(block, section=summary or heading, lead=lead)
        if block.kind == "heading":
            heading, lead = block.text.strip(" \t\r\n#=-"), ""
        elif block.kind == "prose":
            lead = _TAG.sub(" ", block.text).strip()[-200:] or lead
        else:
            lead = ""
