"""firstbad token: who may use a service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from service.cli import screen, tell
from service.cli.connect import connect
from service.cli.later import MARKUP, epilog
from service.cli.options import DEFAULT_URL, HOME, Home, Json, Url
from service.domain.access import Scope
from service.domain.errors import UserError
from service.doors.api.views import NewTokenView, TokenView

app = typer.Typer(no_args_is_help=True, rich_markup_mode=MARKUP)
Days = Annotated[float | None, typer.Option(metavar="DAYS", help="Until it expires; never without.")]
OnDatabase = Annotated[
    bool, typer.Option("--database", help="In the database itself, as the first one of a service must be.")
]


@app.callback()
def token() -> None:
    """Make, list and revoke the tokens by which callers are known."""


@app.command(
    epilog=epilog(
        "firstbad token create nightly --scope submit --days 90", "firstbad token create ann --scope admin --database"
    )
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.")],
    scope: Annotated[Scope, typer.Option(help="What it may do; each holds those before it.")] = Scope.SUBMIT,
    days: Days = None,
    database: OnDatabase = False,
    home: Home = HOME,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Make a token and print it: it is shown this once."""
    if database:
        made = _in_database(home, name, scope, days)
    else:
        with connect(url) as client:
            made = client.create_token(name, scope, days)
    if as_json:
        tell.as_program(tell.data(made))
        return
    screen.console(stderr=True).print(
        f"{screen.clean(made.name)} ({made.id}) has the scope {made.scope}. Keep its token; it is shown this once:",
        soft_wrap=True,
    )
    screen.console().print(made.token, soft_wrap=True, markup=False, highlight=False)


@app.command("list", epilog=epilog("firstbad token list"))
def list_all(as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """List the tokens, newest first, with when each was last used."""
    with connect(url) as client:
        found = client.tokens().items
    if as_json:
        tell.as_program([tell.data(each) for each in found])
    else:
        screen.put(screen.console(), _table(found))


@app.command(epilog=epilog("firstbad token revoke 3f9a1c07"))
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a token, as firstbad token list shows it.")],
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Let a token work no longer. What it began goes on."""
    with connect(url) as client:
        found = client.revoke_token(id)
    if as_json:
        tell.as_program(tell.data(found))
        return
    screen.console().print(f"{screen.clean(found.name)} ({found.id}) works no longer.", soft_wrap=True)


def _in_database(home: Path, name: str, scope: Scope, days: float | None) -> NewTokenView:
    from service import wiring
    from service.adapters.database import migrate
    from service.cli.db import done, read_settings
    from service.cli.status import CommandError

    settings = read_settings(home)
    settings.home_dir.mkdir(parents=True, exist_ok=True)
    if done(lambda: migrate.current(settings.database)) is None:
        done(lambda: migrate.upgrade(settings.database))
    done(lambda: migrate.check(settings.database))
    try:
        made, text = wiring.make_token(settings, name, scope, days)
    except UserError as error:
        raise CommandError(error.detail, error.advice) from None
    return NewTokenView(token=text, **TokenView.model_validate(made).model_dump())


def _table(found: Sequence[TokenView]) -> Table:
    table = screen.columns("ID", "NAME", "SCOPE", "BEGINS WITH", "USED", "STATE")
    for each in found:
        used = f"{each.used_at:%Y-%m-%d %H:%M}" if each.used_at else "never"
        table.add_row(each.id, screen.clean(each.name), str(each.scope), each.prefix, used, _state(each))
    return table


def _state(token: TokenView) -> str:
    if token.revoked_at is not None:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    return f"until {token.expires_at:%Y-%m-%d}" if token.expires_at is not None else "works"
