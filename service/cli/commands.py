"""The firstbad command. Commands parse, call the client and print; what goes wrong ends in one place."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from firstbad.errors import NoService, ProblemError
from service.cli import status
from service.cli.index import ENTRIES
from service.cli.later import MARKUP, LaterGroup
from service.cli.status import CommandError, Status
from service.domain.errors import UserError


class Commands(LaterGroup):
    """Turns what a command raises into lines on standard error and an exit status."""

    entries = ENTRIES

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
    rich_markup_mode=MARKUP,
    epilog=status.HELP,
)


def complain(error: CommandError) -> Status:
    from rich.text import Text

    from service.cli import screen

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
        from importlib.metadata import version

        from service.cli import screen

        screen.console().print(f"firstbad {version('firstbad')}")
        raise typer.Exit


@app.callback()
def firstbad(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Finds the one commit that broke it: give a good commit, a bad one, and how to see the failure."""
