"""firstbad parse: the text of an issue becomes a request file, each line with where it comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
import yaml

from service.cli import screen, tell
from service.cli.connect import connect
from service.cli.options import Json
from service.cli.status import CommandError
from service.doors.api.views.previews import DraftView, FoundView, MissingView

STANDARD_INPUT = "-"
LONGEST_QUOTE = 60


def parse(
    text: Annotated[str, typer.Argument(metavar="FILE", help="The text, as Markdown; - for standard input.")],
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The recipe whose project it is about.")] = None,
    as_json: Json = False,
    url: Annotated[str | None, typer.Option("--url", envvar="FIRSTBAD_URL", help="Where the service answers.")] = None,
) -> None:
    """Read the text of an issue, and print the request that it makes.

    With --url, or FIRSTBAD_URL, a service reads it by its own recipes; without, none is needed.
    What it prints is a request file: firstbad parse issue.md | firstbad submit - --set repo=…
    """
    written = _read(text)
    if url is None:
        found = _here(written, project)
    else:
        with connect(url) as client:
            found = client.parse(written, project)
    if as_json:
        tell.as_program(tell.data(found))
        return
    sys.stdout.write("".join(f"{line}\n" for line in lines(found)))


def _read(name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise CommandError(f"{name}: {reason}", "name a file, or - for standard input") from None
    return raw.decode("utf-8-sig", "replace")


def _here(written: str, project: str | None) -> DraftView:
    """Without a service: by the recipes that come with the command."""
    from service.adapters import failures, recipes, servers
    from service.application import parse as reading
    from service.doors.api import previews

    known = recipes.load()
    if project is not None and project not in known:
        raise CommandError(f"--project {project}: there is no such recipe", f"known: {', '.join(sorted(known))}")
    packages = {recipe.package: name for name, recipe in known.items() if recipe.package}
    draft = reading.parse(written, reading.Known(packages, project), servers.load(), failures.said)
    return previews.draft(draft)


def lines(found: DraftView) -> Iterator[str]:
    """As YAML: what was found, and as comments from where, and what is missing."""
    for note in found.notes:
        yield f"# {_one_line(note)}"
    for name in found.request:
        for field in found.fields:
            if field.name.split(".")[0] == name:
                yield from _told(field)
        document = {name: found.request[name]}
        yield yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000).rstrip("\n")
    for missing in found.missing:
        yield from _asked(missing)


def _told(field: FoundView) -> Iterator[str]:
    quoted = "; ".join(f"{_quoted(origin.quoted)} at {origin.start}" for origin in field.origins[:3])
    yield f"# {field.name}: {field.certainty}: {_one_line(field.why)}: {quoted}"


def _asked(missing: MissingView) -> Iterator[str]:
    yield f"# {missing.name}: missing. {_one_line(missing.question)}"
    for candidate in missing.candidates:
        yield f"#   it may be {_quoted(candidate.value)} at {candidate.origin.start}"


def _quoted(text: str) -> str:
    line = _one_line(text)
    return repr(line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…")


def _one_line(text: str) -> str:
    """Nothing of a text can end a comment."""
    return screen.clean(" ".join(text.split()))


class _Dumper(yaml.SafeDumper):
    """Scripts are written as they are."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
