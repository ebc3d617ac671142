"""firstbad recipes: how the projects that a service knows are built and run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from service.cli import complete, screen, tell
from service.cli.asked import wanted
from service.cli.connect import connect
from service.cli.later import MARKUP, epilog
from service.cli.options import DEFAULT_URL, Json, Url
from service.domain.duration import spoken
from service.doors.api.views import RecipeView

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=MARKUP)


@app.callback()
def recipes() -> None:
    """Look at the recipes: how each project is built and run, where a request says nothing else."""


@app.command("list", epilog=epilog("firstbad recipes list"))
def list_all(as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """List the recipes that the service knows."""
    with connect(url) as client:
        found = client.recipes()
    if as_json:
        tell.as_program([tell.data(recipe) for recipe in found])
    else:
        screen.put(screen.console(), _table(found))


@app.command(epilog=epilog("firstbad recipes show python"))
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of a recipe.", autocompletion=complete.recipes)],
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show all that a recipe says."""
    with connect(url) as client:
        found = client.recipe(name)
    if as_json:
        tell.as_program(tell.data(found))
        return
    grid = screen.pairs()
    for what, said in _rows(found):
        grid.add_row(what, Text(screen.clean_lines(said)))
    screen.put(screen.console(), grid)


def _table(found: Sequence[RecipeView]) -> Table:
    table = screen.columns("NAME", "IMAGE", "NETWORK", "BUILD")
    for recipe in found:
        table.add_row(
            screen.clean(recipe.name),
            screen.clean(recipe.image or ""),
            screen.clean(recipe.network),
            screen.first_line(recipe.build or "builds nothing"),
        )
    return table


def _rows(recipe: RecipeView) -> Iterator[tuple[str, str]]:
    yield "recipe", recipe.name
    yield "build", recipe.build.rstrip() if recipe.build else "nothing: it runs in the source tree"
    if recipe.build:
        yield "within", f"{spoken(recipe.build_timeout_s)}, network {recipe.build_network}"
        yield from _listed("wheels", recipe.wheel_paths)
        yield from _listed("native", recipe.native_paths)
        yield from _listed("indexes", recipe.wheel_indexes)
    for name, said in (("package", recipe.package), ("overlay", recipe.overlay), ("image", recipe.image)):
        if said:
            yield name, said
    yield "network", recipe.network
    yield from _listed("resources", tuple(wanted(recipe.resources)))
    yield from _listed("env", tuple(f"{name}={value}" for name, value in recipe.env.items()))
    yield from _listed("secrets", recipe.secrets)
    if recipe.deps.as_of:
        yield "dependencies", f"as of {recipe.deps.as_of}"
    if recipe.deps.constraints:
        yield "constraints", recipe.deps.constraints.rstrip()
    for fixup in recipe.fixups:
        yield "fix-up", f"{fixup.range}: " + (f"the commit {fixup.cherry_pick}" if fixup.cherry_pick else "a patch")
    if recipe.model_cache != "none":
        yield "models", str(recipe.model_cache)


def _listed(name: str, said: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if said:
        yield name, ", ".join(said)
