"""Commands that change what a live bisection does: cancel it, hold it, let it go on, have it go first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Annotated

import typer

from firstbad import Client, ProblemError
from service.cli import complete, screen, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Json, LiveId, Url, state_of
from service.cli.status import CommandError
from service.domain.budget import Priority
from service.domain.errors import BadRequest
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState
from service.doors.api.views import BisectionView

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Ids of bisections, or their beginnings.", autocompletion=complete.live_ids),
]
NoneOrIds = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Ids of bisections, or their beginnings.", autocompletion=complete.live_ids),
]
States = Annotated[
    list[BisectionState],
    typer.Option(
        "--state",
        metavar="STATE",
        parser=state_of,
        autocompletion=complete.states,
        help="With --all, only those; may be repeated.",
    ),
]
#: What one list of the service holds at most.
MOST = 200


def cancel(
    ids: NoneOrIds = [],  # noqa: B006
    every: Annotated[bool, typer.Option("--all", help="All that have not ended.")] = False,
    state: States = [],  # noqa: B006
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --all, do not ask.")] = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Cancel bisections, and stop what runs for them."""
    with connect(url) as client:
        _check_states(ids, every, state)
        if every:
            _several(_all(client, state, yes), client.cancel, _cancelled, as_json)
        else:
            _each(client, list(dict.fromkeys(ids)), client.cancel, _cancelled, as_json)


def pause(ids: Ids, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Begin nothing new for a bisection; what runs goes on to its end."""
    with connect(url) as client:
        _each(client, ids, client.pause, _paused, as_json)


def resume(ids: Ids, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Let a paused bisection go on."""
    with connect(url) as client:
        _each(client, ids, client.resume, lambda done: f"Bisection {done.id} goes on.", as_json)


def priority(
    id: LiveId,
    wanted: Annotated[Priority, typer.Argument(metavar="PRIORITY", help="high, normal or low.")],
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Have a bisection go before others, or after them."""
    with connect(url) as client:
        _each(client, [id], lambda found: client.prioritize(found, wanted), _prioritized, as_json)


def _cancelled(done: BisectionView) -> str:
    return f"Bisection {done.id} is cancelled."


def _paused(done: BisectionView) -> str:
    return (
        f"Bisection {done.id} is paused; what runs for it goes on to its end. Resume it with: firstbad resume {done.id}"
    )


def _prioritized(done: BisectionView) -> str:
    return f"Bisection {done.id} has the priority {done.priority}."


def _each(
    client: Client,
    ids: Sequence[str],
    change: Callable[[str], BisectionView],
    said: Callable[[BisectionView], str],
    as_json: bool,
) -> None:
    """What one of several refuses is told, and the others are changed. JSON of one is no list."""
    if len(ids) == 1:
        done = change(client.find(ids[0]))
        _tell([done], said, tell.data(done) if as_json else None)
        return
    _several(ids, lambda id: change(client.find(id)), said, as_json)


def _several(
    ids: Iterable[str], change: Callable[[str], BisectionView], said: Callable[[BisectionView], str], as_json: bool
) -> None:
    done, refused = [], []
    for id in ids:
        try:
            done.append(change(id))
        except (ProblemError, BadRequest) as error:
            refused.append(str(error))
    _tell(done, said, [tell.data(view) for view in done] if as_json else None)
    if refused:
        raise CommandError(f"{len(refused)} of {len(done) + len(refused)} refused it", *refused)


def _tell(done: Sequence[BisectionView], said: Callable[[BisectionView], str], document: object | None) -> None:
    if document is not None:
        tell.as_program(document)
        return
    for view in done:
        screen.console().print(said(view), soft_wrap=True)


def _check_states(ids: Sequence[str], every: bool, states: Collection[BisectionState]) -> None:
    if ids and (every or states):
        raise CommandError("ids are named, and --all or --state too", "name ids alone, or say --all")
    if not every and states:
        raise CommandError("--state is given without --all", "add --all to cancel all in that state")
    if not every and not ids:
        raise CommandError("no bisection is named", "name one or several, or say --all")
    if ended := sorted(set(states) - LIVE_BISECTIONS):
        raise CommandError(f"--state {ended[0]}: that has ended", f"one of {', '.join(sorted(LIVE_BISECTIONS))}")


def _all(client: Client, states: Collection[BisectionState], yes: bool) -> Iterator[str]:
    """The ids of all that live, in those states, also of those that no longer fit into one list; asks first."""
    wanted, told = frozenset(states) or LIVE_BISECTIONS, set[str]()
    found = client.bisections(wanted, MOST)
    if found and not yes:
        tell.confirm(f"cancel {screen.count(len(found), 'bisection')}{' and more' if len(found) == MOST else ''}")
    while new := [view.id for view in found if view.id not in told]:
        told.update(new)
        yield from new
        found = client.bisections(wanted, MOST)
