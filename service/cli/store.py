"""firstbad store: what lies in the artifact store and is of no use any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from service.cli import db, screen, tell
from service.cli.later import MARKUP, epilog
from service.cli.options import HOME, Home, Json
from service.cli.status import CommandError, Status
from service.domain.size import told

if TYPE_CHECKING:
    from service.adapters.artifacts import Artifacts
    from service.adapters.database.repository import Database
    from service.application.ports import Stored

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=MARKUP)


@app.callback()
def store() -> None:
    """Look after the artifact store, where wheels and logs are kept."""


@app.command(epilog=epilog("firstbad store tidy --dry-run"))
def tidy(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them, and remove nothing.")] = False,
    home: Home = HOME,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove wheels and logs that no row of the database knows, as of attempts that were lost.

    Those of the last day are left alone, and those of what is under way. A store that several services share must not
    be tidied: each would take the others' files for its own lost ones.
    """
    from service.application.ports import StoreBusy

    try:
        database, artifacts = _opened(home)
        found = tuple(_orphans(database, artifacts))
        if found and not dry_run:
            if not yes:
                tell.confirm(f"remove {_counted(found)} that no bisection knows")
            for file in found:
                artifacts.remove(file.path)
    except StoreBusy as error:
        raise CommandError(str(error), status=Status.FAILED) from None
    _tell(found, dry_run, as_json)


def _tell(found: tuple[Stored, ...], dry_run: bool, as_json: bool) -> None:
    if as_json:
        files = [{"path": file.path, "bytes": file.bytes, "at": file.at.isoformat()} for file in found]
        tell.as_program({"files": files, "removed": not dry_run})
        return
    out = screen.console()
    if dry_run:
        for file in found:
            out.print(Text(f"{screen.clean(file.path)}  {told(file.bytes)}  {screen.when(file.at)}"), soft_wrap=True)
    out.print(f"{_counted(found)}{' would be removed' if dry_run else ' removed'}.")


def _counted(found: tuple[Stored, ...]) -> str:
    size = sum(file.bytes for file in found)
    return screen.count(len(found), "file") + (f", {size} bytes," if found else "")


def _opened(home: Path) -> tuple[Database, Artifacts]:
    """Errors: CommandError."""
    from service import wiring
    from service.adapters.database import migrate

    settings = db.read_settings(home)
    db.done(lambda: migrate.check(settings.database))
    try:
        return wiring.database(settings), wiring.store(settings)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _orphans(database: Database, artifacts: Artifacts) -> Iterator[Stored]:
    from service.application import retention

    before = datetime.now(UTC) - retention.YOUNG
    for folder in (retention.LOGS, retention.WHEELS, retention.PASSING):
        yield from retention.orphans(database, artifacts.stored(folder), before)
