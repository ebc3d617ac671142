"""The firstbad command. Commands parse, call the client and print; what goes wrong ends in one place."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperGroup

from firstbad import DEFAULT_PORT, Client, NoService, ProblemError
from service.cli import asked, db, isolation, operating, requests, run, screen, status, steering, store, tell
from service.cli.options import DEFAULT_URL, HOME, Home, Id, Json, Url, state_of
from service.cli.show import bisections, show
from service.cli.status import CommandError, Status
from service.domain.errors import UserError
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState
from service.doors.api.views import RequestView


class Commands(TyperGroup):
    """Turns what a command raises into lines on standard error and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (UserError, ProblemError, NoService) as error:
            raise typer.Exit(complain(status.explained(error))) from None
        except CommandError as error:
            raise typer.Exit(complain(error)) from None
        except BrokenPipeError:
            # The reader has had enough; nothing is left to flush at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(Status.OK) from None
        except OSError as error:
            where = error.filename or "standard output"
            told = CommandError(f"{where}: {(error.strerror or str(error)).lower()}", status=Status.FAILED)
            raise typer.Exit(complain(told)) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=status.HELP,
)


def complain(error: CommandError) -> Status:
    err = screen.console(stderr=True)
    err.print(Text.assemble(("firstbad: ", "bold red"), screen.clean(error.detail)), soft_wrap=True)
    for line in error.more:
        if line:
            err.print(Text(f"  {screen.clean(line)}"), soft_wrap=True)
    return error.status


def main() -> None:
    """Errors of usage are told in our own way, in a line or two."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "firstbad")
        said = error.format_message() if str(error) or error.format_message() else ""
        code = complain(CommandError(said[:1].lower() + said[1:], f"see: {command} --help")) if said else Status.USAGE
    except typer.Abort:
        code = Status.INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _print_version(wanted: bool) -> None:
    if wanted:
        screen.console().print(f"firstbad {version('firstbad')}")
        raise typer.Exit


@app.callback()
def firstbad(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Finds the one commit that broke it: give a good commit, a bad one, and how to see the failure."""


@app.command()
def up(
    home: Home = HOME,
    port: Annotated[
        int, typer.Option(envvar="FIRSTBAD_PORT", min=0, max=65535, help="Port on 127.0.0.1.")
    ] = DEFAULT_PORT,
    slots: Annotated[int, typer.Option(envvar="FIRSTBAD_SLOTS", min=1, max=256, help="Builds and probes at once.")] = 2,
) -> None:
    """Start the whole service on this machine.

    Ctrl-C stops it, and what runs for it; a second start goes on where it was.
    """
    from service import embedded, wiring
    from service.embedded_redis import NoRedis

    out = screen.console()
    for name, like in wiring.misspelt().items():
        screen.console(stderr=True).print(Text(f"note: {name} is no setting; did you mean {like}?"), soft_wrap=True)
    try:
        embedded.up(home, port, slots, lambda url: _ready(out, url, home))
    except (embedded.CannotStart, NoRedis) as error:
        raise CommandError(str(error), status=Status.FAILED) from None
    except ValidationError as error:
        raise CommandError(*wiring.complaints(error)) from None
    out.print("Stopped.")


def _ready(out: Console, url: str, home: Path) -> None:
    table = screen.pairs()
    table.add_row("submit", "firstbad submit request.yaml --watch" + ("" if url == DEFAULT_URL else f" --url {url}"))
    table.add_row("kept in", str(home.expanduser()))
    table.add_row("stop", "Ctrl-C")
    out.print(Text.assemble("firstbad is ready at ", (url, "bold")))
    screen.put(out, Padding(table, (0, 0, 0, 2), expand=False))


@app.command(epilog=status.HELP)
def submit(
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="YAML or JSON file; - for standard input.")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it to the end.")] = False,
    change: Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="Set a key, like good=v1.4.0.")] = [],  # noqa: B006
    script: Annotated[Path | None, typer.Option(help="Take the script from this file.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and begin nothing.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", metavar="TEXT", help="Sent again with this key, it begins no second one.")
    ] = None,
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the refs to be looked up.")] = 15,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Start a bisection: print its id, and what its range is once that is known."""
    document = requests.read(request, change, script)
    with Client(url) as client:
        if dry_run:
            _show_request(client.complete(document), as_json)
            return
        made = client.submit(document, key)
        out = screen.console(stderr=as_json)
        out.print(Text.assemble("Bisection ", (made.id, "bold"), f" at {client.url(made.links.self)}"), soft_wrap=True)
        for note in made.notes:
            out.print(Text(f"note: {screen.clean(note)}"), soft_wrap=True)
        with tell.interruptible(made.id):
            asked_for = client.bisection(made.id).request
            for note in isolation.told(client.nodes(), asked_for.sandbox, online=asked_for.network != "none"):
                out.print(Text(f"note: {note}"), soft_wrap=True)
            if watch:
                tell.to_the_end(client, made.id, as_json, told=made.notes)
            tell.accepted(client, made.id, wait_s, as_json)


def _show_request(request: RequestView, as_json: bool) -> None:
    if as_json:
        tell.as_program(tell.data(request))
    else:
        asked.would_run(screen.console(), request)


@app.command(epilog=status.HELP)
def watch(id: Id, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Follow a bisection until it ends."""
    with Client(url) as client:
        found = client.find(id)
        with tell.interruptible(found):
            tell.to_the_end(client, found, as_json)


@app.command("show", epilog=status.HELP)
def show_one(
    id: Id,
    probes: Annotated[bool, typer.Option("--probes", help="Every probe and every build, too.")] = False,
    request: Annotated[bool, typer.Option("--request", help="All that was asked for, with the defaults.")] = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Show where a bisection stands: the first bad commit, and what that stands on."""
    with Client(url) as client:
        report = client.bisection(client.find(id))
        tried, made = (client.probes(report.id), client.builds(report.id)) if probes else ((), ())
        if as_json:
            lists = {"probes": tried, "builds": made} if probes else {}
            more = {name: [tell.data(each) for each in items] for name, items in lists.items()}
            tell.as_program({**tell.data(report), **more})
        else:
            out = screen.console()
            show(out, report, client.url, tried, made, client.curve(report), tell.held_by(client, report))
            if request:
                asked.section(out, report.request)
    raise typer.Exit(status.of(report.state))


@app.command("list")
def list_all(
    state: Annotated[
        list[BisectionState],
        typer.Option(metavar="STATE", parser=state_of, help="Only those in this state; may be repeated."),
    ] = [],  # noqa: B006
    live: Annotated[bool, typer.Option("--live", help="Only those that have not ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many at most.")] = 20,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """List bisections, newest first."""
    with Client(url) as client:
        items = client.bisections({*state, *(LIVE_BISECTIONS if live else ())}, limit)
    if as_json:
        tell.as_program([tell.data(item) for item in items])
    elif items:
        screen.put(screen.console(), bisections(items))
    else:
        screen.console(stderr=True).print("No bisections. Start one with: firstbad submit request.yaml")


@app.command()
def logs(
    probe: Annotated[str, typer.Argument(metavar="PROBE", help="Id of a probe, like b3f9c2a417.4.")],
    build: Annotated[bool, typer.Option("--build", help="That of the build of its wheel instead.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print it as it is written, until it ends.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the log of a probe, or of its build.

    With --follow, of one that runs what comes from now on and a little before; Ctrl-C ends only the following.
    """
    id, dot, number = probe.rpartition(".")
    with Client(url) as client:
        if not dot:
            known = client.probes(client.find(probe))
            listed = ", ".join(each.id for each in known) or "none yet"
            raise CommandError(f"{probe} is a bisection, and each of its probes has a log", f"name one of: {listed}")
        full = f"{client.find(id)}.{number}"
        _print_log(_build_log(client, full, follow) if build else client.log(full, follow=follow), at_once=follow)


def _print_log(pieces: Iterator[bytes], *, at_once: bool) -> None:
    out = sys.stdout
    writes = map(out.write, screen.clean_log(pieces)) if out.isatty() else map(out.buffer.write, pieces)
    for _ in writes:
        if at_once:
            out.flush()
    out.flush()


def _build_log(client: Client, probe: str, follow: bool) -> Iterator[bytes]:
    key = client.probe(probe).build
    if key is None:
        raise CommandError(f"no wheel was built for the probe {probe}", "without --build its own log is printed")
    return client.build_log(key, follow=follow)


for steer in (steering.cancel, steering.pause, steering.resume, steering.priority):
    app.command()(steer)
app.command("run", epilog=run.HELP)(run.run)
app.command()(operating.nodes)
app.command()(operating.doctor)
app.command(epilog=status.HELP)(operating.judge)
app.add_typer(db.app, name="db")
app.add_typer(store.app, name="store")
