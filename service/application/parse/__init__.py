"""The text of an issue or a comment, read for what a request needs.

Nothing is invented: each value stands in the text, and what is not plain is left out and asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from packaging.utils import canonicalize_name

from service.application.parse import blocks, ends, mentions, scripts, sides
from service.application.parse.blocks import Block, Read
from service.application.parse.draft import Candidate, Certainty, Draft, Field, Known, Missing, Origin
from service.application.parse.sides import Sided
from service.application.ports import FailureReader
from service.domain import refs
from service.domain.servers import Server

__all__ = ["Candidate", "Certainty", "Draft", "Field", "Known", "Missing", "Origin", "parse"]

_ENVIRONMENT = re.compile(
    r"(?im)^[ \t>*-]*(?P<name>[a-z][\w.-]{1,30}?)(?: version)?`?[ \t]*:[ \t]*`?(?P<version>v?[0-9][\w.+!-]{2,80})"
)
_IS_ENVIRONMENT = re.compile(r"(?i)collecting environment information|collect_env|check_env|\bversion *:|CUDA runtime")
_FIRST_BAD = re.compile(r"\b([0-9a-f]{7,64}) is the first bad commit")
_CLONE = re.compile(r"git clone (?:--?[\w-]+(?:[ =]\d+)? )*(https://[\w.-]+/[\w./-]{3,200})")
_LINK = re.compile(
    r"(https://(?:github|gitlab|codeberg)\.[a-z]{2,6}/([\w.-]+)/([\w.-]+))/(?:blob|pull|issues|commit|compare|-)/"
)
_FAILED = re.compile(r"Traceback|Error\b|Exception|Segmentation fault|[Aa]ssert|[Ff]atal|FAILED|core dumped")
_INSTALLED = re.compile(r"\b(?:pip3?|uv pip) install (?:-\S+ ){0,4}['\"]?([A-Za-z][\w-]{1,60})==")
#: So much outside of code is looked through for refs, in characters.
MOST_PROSE = 24 * 1024
#: So much of logs is looked through for a failure.
MOST_LOG = 16 * 1024


def parse(text: str, known: Known, servers: Sequence[Server], failures: FailureReader) -> Draft:
    """Never raises."""
    read = blocks.read(text)
    names = _subject(read, known, servers)
    fields, missing = ends.choose(_said(read, names))
    fields += scripts.find(text, read.blocks, servers, names)
    fields += _failure(read, names, failures)
    fields += _repo(read, fields, names)
    fields += _project(names, known, read)
    return Draft(tuple(fields), (*missing, *_missing(fields)), tuple(_notes(read)))


def _said(read: Read, names: Collection[str]) -> list[Sided]:
    said: list[Sided] = []
    left, prose = mentions.MOST, MOST_PROSE
    for block in read.blocks:
        if block.kind == "code":
            said += _bisected(read, block)
            continue
        block = replace(block, text=block.text[: max(prose, 0)])
        every = list(islice(mentions.find(block), left))
        left, prose = left - len(every), prose - len(block.text)
        said += sides.sided(block, list(ends.about(every, names)))
    if not any(each.side == "bad" for each in said):
        said += _environment(read, names)
    return said


def _bisected(read: Read, block: Block) -> Iterator[Sided]:
    """What git bisect printed."""
    for found in _FIRST_BAD.finditer(read.text, block.start, block.end):
        raw = replace(block, start=found.start(), end=found.end(1), text=found[1], exact=True)
        for each in mentions.find(raw):
            yield Sided(each, "bad", Certainty.HIGH, "git bisect found it")


def _environment(read: Read, names: Collection[str]) -> Iterator[Sided]:
    """The version that the reporter has is where it is broken, where nothing else is said."""
    for block in read.blocks:
        if block.kind == "heading" or not _IS_ENVIRONMENT.search(f"{block.section}\n{block.text[:20_000]}"):
            continue
        raw = replace(block, text=read.text[block.start : block.end], exact=True)
        for found in _ENVIRONMENT.finditer(raw.text[:40_000]):
            if str(canonicalize_name(found["name"])) in names:
                inner = replace(raw, text=raw.text[: found.end()])
                for each in list(mentions.find(inner))[-1:]:
                    why = "the reporter's own environment has it"
                    yield Sided(replace(each, block=raw), "bad", Certainty.LOW, why)
                    return


def _subject(read: Read, known: Known, servers: Sequence[Server]) -> frozenset[str]:
    """Names of the package that the text is about; none where that is not plain."""
    if known.project is not None:
        packages = [package for package, name in known.projects.items() if name == known.project]
        return frozenset(str(canonicalize_name(name)) for name in (known.project, *packages))
    text = read.text[: len(read.text) - read.unread]
    count: Counter[str] = Counter(_linked(text))
    for found in _INSTALLED.finditer(text):
        count[str(canonicalize_name(found[1]))] += 1
    for server in servers:
        called = [" ".join(command) for command in server.commands]
        if any(command in text for command in called):
            count[_program(called[0].split())] += 3
    for package in known.projects:
        if re.search(rf"(?i)\b{re.escape(package)}\b", text):
            count[str(canonicalize_name(package))] += 2
    likely = [name for name, _ in count.most_common() if name not in mentions.OTHERS]
    return frozenset(likely[:1])


def _program(words: Sequence[str]) -> str:
    """vllm serve, python -m sglang.launch_server."""
    return str(canonicalize_name(words[2].split(".")[0] if words[:2] == ["python", "-m"] else words[0]))


def _linked(text: str) -> Iterator[str]:
    for found in _LINK.finditer(text):
        yield str(canonicalize_name(found[3].removesuffix(".git")))


def _failure(read: Read, names: Collection[str], failures: FailureReader) -> Iterator[Field]:
    left = MOST_LOG
    for block in read.blocks:
        if block.kind == "heading" or left <= 0 or not _FAILED.search(block.text[:left]):
            continue
        if block.kind != "code" and "Error: " not in block.text:
            continue
        log = block.text[:left]
        left -= len(log)
        said = failures(log, tuple(sorted(names)))
        start = read.text.find(said, block.start, block.end) if said else -1
        if said is not None and start >= 0:
            origin = Origin(start, start + len(said), said)
            certainty = Certainty.HIGH if block.kind == "code" else Certainty.MEDIUM
            yield Field("failure", said, certainty, "what the log in the text failed with", (origin,))
            return


def _repo(read: Read, fields: Sequence[Field], names: Collection[str]) -> Iterator[Field]:
    """That of the ends' own pages; of what is cloned, or spoken of most, where it has the package's name."""
    text = read.text[: len(read.text) - read.unread]
    own = [found for each in fields if each.name in ("good", "bad") for found in [_site(str(each.value))] if found]
    if own and len(set(own)) == 1:
        origin = next(each.origins[0] for each in fields if each.name in ("good", "bad") and _site(str(each.value)))
        yield Field("repo", own[0], Certainty.HIGH, "a commit's own page is there", (origin,))
        return
    for pattern, certainty in ((_CLONE, Certainty.HIGH), (_LINK, Certainty.MEDIUM)):
        for found in pattern.finditer(text):
            address = found[1].rstrip("/.").removesuffix(".git")
            if str(canonicalize_name(address.rpartition("/")[2])) in names:
                why = "it is cloned from there" if pattern is _CLONE else "a page of it is named"
                yield Field(
                    "repo", address, certainty, why, (Origin(found.start(1), found.start(1) + len(address), address),)
                )
                return


def _site(ref: str) -> str | None:
    return refs.read(ref).site


def _project(names: Collection[str], known: Known, read: Read) -> Iterator[Field]:
    for package, project in known.projects.items():
        if str(canonicalize_name(package)) in names:
            at = read.text.lower().find(package.lower())
            origins = (Origin(at, at + len(package), read.text[at : at + len(package)]),) if at >= 0 else ()
            yield Field("project", project, Certainty.MEDIUM, f"it is about {package}", origins)
            return


def _missing(fields: Sequence[Field]) -> Iterator[Missing]:
    there = {each.name for each in fields}
    if "repo" not in there:
        yield Missing("repo", "Which repository is it? Give the URL to clone it from.")
    if "script" not in there:
        yield Missing("script", "How is it seen? Give commands that fail where it is broken.")


def _notes(read: Read) -> Iterator[str]:
    if read.unread:
        yield f"The last {read.unread} characters were not read: there are too many."
