"""firstbad db: the version of the database's schema, and the way to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.text import Text

from service.cli import screen, tell
from service.cli.later import MARKUP, epilog
from service.cli.options import HOME, Home, Json
from service.cli.status import CommandError, Status

if TYPE_CHECKING:
    from service.adapters.database.migrate import Step
    from service.wiring import Settings

T = TypeVar("T")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=MARKUP,
    help="Look at the schema of the database, and take it to another version. FIRSTBAD_DATABASE_URL names it; else the "
    "SQLite in the home is meant.",
)


@app.command(epilog=epilog("firstbad db version"))
def version(home: Home = HOME, as_json: Json = False) -> None:
    """Print the version that the database is at, and the one that this firstbad works with."""
    from service.adapters.database import engine, migrate

    settings = read_settings(home)
    found = done(lambda: migrate.current(settings.database))
    if as_json:
        _as_program(settings, version=found, needs=migrate.head())
        return
    is_ = migrate.told(found)
    needs = f"this firstbad works with version {migrate.head()}"
    screen.console().print(f"{engine.shown(settings.database)} is {is_}; {needs}.", soft_wrap=True)


@app.command(epilog=epilog("firstbad db check"))
def check(home: Home = HOME, as_json: Json = False) -> None:
    """Tell whether this firstbad can work with the database: exit status 0 if so, else 3 and what to do."""
    from service.adapters.database import engine, migrate

    settings = read_settings(home)
    done(lambda: migrate.check(settings.database))
    if as_json:
        _as_program(settings, version=migrate.head(), needs=migrate.head())
        return
    screen.console().print(f"{engine.shown(settings.database)} is at version {migrate.head()}, as it must be.")


@app.command(epilog=epilog("firstbad db upgrade"))
def upgrade(home: Home = HOME, as_json: Json = False) -> None:
    """Take the database to the version of this firstbad. `firstbad up` does so by itself when it starts."""
    from service.adapters.database import engine, migrate

    settings = read_settings(home)
    found = done(lambda: migrate.current(settings.database))
    if found == migrate.head():
        if as_json:
            _as_program(settings, before=found, after=found, steps=[])
            return
        screen.console().print(f"{engine.shown(settings.database)} is at version {found} already.", soft_wrap=True)
        return
    with _alone(settings):
        moved = done(lambda: migrate.upgrade(settings.database))
    if as_json:
        _as_program(settings, before=moved.before, after=moved.after, steps=_told(moved.steps))
        return
    _say(
        f"Upgraded {engine.shown(settings.database)}, which was {migrate.told(moved.before)}", moved.after, moved.steps
    )


@app.command(epilog=epilog("firstbad db downgrade 0006 --yes"))
def downgrade(
    revision: Annotated[str, typer.Argument(metavar="REVISION", help="Like 0004; `base` takes everything away.")],
    home: Home = HOME,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Take the database back to an older version, as before an older firstbad is installed.

    What only newer versions know is lost: make a copy of the database first.
    """
    from service.adapters.database import engine, migrate

    settings = read_settings(home)
    steps = done(lambda: migrate.back(settings.database, revision))
    if not steps:
        if as_json:
            now = done(lambda: migrate.current(settings.database))
            _as_program(settings, before=now, after=now, steps=[])
            return
        screen.console().print(f"{engine.shown(settings.database)} is at version {revision} already.", soft_wrap=True)
        return
    with _alone(settings):
        if not yes:
            tell.confirm(f"lose what only these versions know: {', '.join(step.revision for step in steps)}")
        moved = done(lambda: migrate.downgrade(settings.database, revision))
    if as_json:
        _as_program(settings, before=moved.before, after=moved.after, steps=_told(moved.steps))
        return
    _say(
        f"Downgraded {engine.shown(settings.database)}, which was {migrate.told(moved.before)}",
        moved.after,
        moved.steps,
    )


def _as_program(settings: Settings, **told: object) -> None:
    from service.adapters.database import engine

    tell.as_program({"database": engine.shown(settings.database), **told})


def _told(steps: Sequence[Step]) -> list[dict[str, str]]:
    return [{"revision": step.revision, "what": step.what} for step in steps]


def _say(done: str, after: str | None, steps: Sequence[Step]) -> None:
    out = screen.console()
    out.print(f"{done}, to {f'version {after}' if after is not None else 'an empty one'}:", soft_wrap=True)
    for step in steps:
        out.print(Text(f"  {step.revision}  {step.what}"), soft_wrap=True)


def read_settings(home: Path) -> Settings:
    from pydantic import ValidationError

    from service import wiring

    try:
        return wiring.settings(home=home)
    except ValidationError as error:
        raise CommandError(*wiring.complaints(error)) from None


def done(work: Callable[[], T]) -> T:
    """Errors: CommandError, for what is wrong with the database; no error shows a password."""
    from service.adapters.database import engine, migrate

    try:
        return work()
    except engine.BadDatabaseUrl as error:
        raise CommandError(f"FIRSTBAD_DATABASE_URL: {error}") from None
    except migrate.WrongSchema as error:
        raise CommandError(str(error), status=Status.FAILED) from None
    except migrate.DatabaseUnavailable as error:
        advice = "see that it is up and that this user may write it, or correct FIRSTBAD_DATABASE_URL"
        raise CommandError(str(error), advice, status=Status.FAILED) from None


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """While a service runs its tables must not change under it: its queries name the columns that it knows.

    A service of this home holds its lock; any other one shows by its control workers.
    """
    from service import embedded
    from service.adapters.database import migrate

    with ExitStack() as stack:
        try:
            if settings.home_dir.exists():
                stack.enter_context(embedded.only_one(settings.home_dir))
        except embedded.CannotStart as error:
            raise CommandError(str(error), status=Status.FAILED) from None
        if busy := done(lambda: migrate.control_workers(settings.database, datetime.now(UTC))):
            raise CommandError(
                f"a service works with this database: {', '.join(busy)}",
                "stop it first; one that was killed counts as stopped after 30 seconds",
                status=Status.FAILED,
            )
        yield
