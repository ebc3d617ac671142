"""Commands by which a person says what no search knows: a verdict, one more run, a larger budget, another like it."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.text import Text

from firstbad import Client
from firstbad.steering import Said
from service.cli import requests, screen, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, Id, Json, Url
from service.cli.status import CommandError
from service.doors.api.views import BisectionView, ReportView

Commit = Annotated[str, typer.Argument(metavar="COMMIT", help="Its SHA, or the first four digits of it or more.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="One line, which is kept and shown.")]
VERDICTS = ("good", "bad", "skip", "none")
#: How a limit is taken off.
NO_LIMIT = "none"


def _verdict(written: str) -> str:
    if written not in VERDICTS:
        raise typer.BadParameter(f"{written!r} is not one of {', '.join(VERDICTS)}")
    return written


def override(
    id: Id,
    commit: Commit,
    verdict: Annotated[
        str, typer.Argument(metavar="VERDICT", parser=_verdict, help="good, bad, skip; none takes it back.")
    ],
    why: Why,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Say of a commit that it is good, bad or cannot be tested, whatever its runs show."""
    with connect(url) as client:
        done = client.override(client.find(id), commit, cast(Said, verdict), why)
        _goes_on(client, done, as_json)


def reprobe(id: Id, commit: Commit, why: Why, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Run a commit of a bisection once more."""
    with connect(url) as client:
        probe = client.reprobe(client.find(id), commit, why)
        if as_json:
            tell.as_program(tell.data(probe))
            return
        said = f"Probe {probe.id} runs {probe.sha[:10]} once more; read it with: firstbad logs -f {probe.id}"
        screen.console().print(Text(said), soft_wrap=True)


def extend(
    id: Id,
    probes: Annotated[str | None, typer.Option(metavar="NUMBER", help="Probes at most; none: no limit.")] = None,
    wall: Annotated[str | None, typer.Option(metavar="TIME", help="Like 6h; none: no limit.")] = None,
    gpu_hours: Annotated[str | None, typer.Option(metavar="HOURS", help="Of one card; none: no limit.")] = None,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Change what a bisection may cost; one that ended since that was spent goes on."""
    given = {"probes": probes, "wall": wall, "gpu_hours": gpu_hours}
    changes = {name: None if limit == NO_LIMIT else limit for name, limit in given.items() if limit is not None}
    if not changes:
        raise CommandError("no limit is given", "give --probes, --wall or --gpu-hours")
    with connect(url) as client:
        _goes_on(client, client.extend(client.find(id), changes), as_json)


def clone(
    id: Id,
    change: Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="Set a key, like bad=v1.5.1.")] = [],  # noqa: B006
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it to the end.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="Sent again with this key, it begins no second one.")
    ] = None,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Begin another bisection like one, with changes."""
    changes: dict[str, Any] = {}
    for each in change:
        requests.set_key(changes, each)
    with connect(url) as client:
        original = client.find(id)
        made = client.clone(original, changes, key)
        out = screen.console(stderr=as_json)
        said = Text.assemble("Bisection ", (made.id, "bold"), f" is like {original}, at {client.url(made.links.self)}")
        out.print(said, soft_wrap=True)
        if watch:
            with tell.interruptible(made.id):
                tell.to_the_end(client, made.id, as_json)
        if as_json:
            tell.as_program(tell.data(made))


def _goes_on(client: Client, done: BisectionView, as_json: bool) -> None:
    if as_json:
        tell.as_program(tell.data(done))
        return
    report: ReportView = client.bisection(done.id)
    more = (f"Follow it with: firstbad watch {done.id}",) if done.live else ()
    for line in (f"Bisection {done.id}: {report.headline}", *more):
        screen.console().print(Text(screen.clean(line)), soft_wrap=True)
