"""firstbad list: bisections, a line each. It loads no more than that takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstbad.calls import PAGE, Sort
from service.cli import complete, screen
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Json, Url, state_of
from service.domain.budget import Priority
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState
from service.doors.api.views import BisectionView

#: Columns of a list, and from which width of the terminal on each is shown.
_COLUMNS = {"ID": 0, "STATE": 0, "LEFT": 60, "AGE": 72, "FIRST BAD": 90, "SUBMITTER": 110, "RANGE": 0}


def list_all(
    state: Annotated[
        list[BisectionState],
        typer.Option(
            metavar="STATE",
            parser=state_of,
            autocompletion=complete.states,
            help="Only those in this state; may be repeated.",
        ),
    ] = [],  # noqa: B006
    live: Annotated[bool, typer.Option("--live", help="Only those that have not ended.")] = False,
    project: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=complete.recipes, help="Only those of this recipe.")
    ] = None,
    submitter: Annotated[str | None, typer.Option(metavar="NAME", help="Only those that this one submitted.")] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those that asked for something with it.")
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="By when they were submitted, or have ended; with a minus the last first.")
    ] = "-created",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many at most.")] = 20,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """List bisections, newest first."""
    states = {*state, *(LIVE_BISECTIONS if live else ())}
    with connect(url) as client:
        if limit <= PAGE:
            items = client.bisections(states, limit, project=project, submitter=submitter, text=text, sort=sort)
        else:
            every = client.every_bisection(states, project=project, submitter=submitter, text=text, sort=sort)
            items = tuple(islice(every, limit))
    if as_json:
        from service.cli import tell

        tell.as_program([tell.data(item) for item in items])
    elif items:
        out = screen.console()
        screen.put(out, bisections(items, out.width))
    elif states or project or submitter or text:
        screen.console(stderr=True).print("No bisection is like that; firstbad list shows the newest of all.")
    else:
        screen.console(stderr=True).print("No bisections. Start one with: firstbad submit request.yaml")


def bisections(items: Sequence[BisectionView], width: int = screen.WIDE) -> Table:
    """A line each: what a narrow terminal has no room for is left out, and the range is cut."""
    names = [name for name, least in _COLUMNS.items() if width >= least]
    rows = [{name: cell for name, cell in _cells(item).items() if name in names} for item in items]
    taken = (max(len(name), *(len(row[name]) for row in rows)) + 2 for name in names[:-1])
    room = max(width - sum(taken), 10)
    table = screen.columns(*names)
    for row in rows:
        row["RANGE"].truncate(room, overflow="ellipsis")
        table.add_row(*row.values())
    return table


def _cells(item: BisectionView) -> dict[str, Text]:
    first_bad = ", ".join(sha[:10] for sha in item.first_bad[:3]) + (" …" if len(item.first_bad) > 3 else "")
    return {
        "ID": Text(item.id),
        "STATE": state_shown(item),
        "LEFT": Text(left(item)),
        "AGE": Text(screen.since(item.created_at)),
        "FIRST BAD": Text(first_bad),
        "SUBMITTER": Text(screen.clean(item.submitter)),
        "RANGE": Text(screen.clean(f"{', '.join(item.good)}..{item.bad} of {item.repo}")),
    }


def state_shown(item: BisectionView) -> Text:
    """The state, and what else says whether anything is going to happen."""
    more = [("paused", "yellow")] if item.paused_at is not None and item.live else []
    if item.priority is not Priority.NORMAL and item.live:
        more.append((f"{item.priority} priority", ""))
    return Text.assemble(screen.styled(item.state), *((f", {word}", style) for word, style in more))


def left(view: BisectionView) -> str:
    return "" if view.candidates is None else f"{view.candidates_left} of {view.candidates}"
