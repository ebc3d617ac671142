"""Commands that are known by name and a line, and loaded when they are called: most need much that others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

MARKUP: Final = "rich"
#: Options by which a shell is set up, of the whole command alone.
SET_UP = ("install_completion", "show_completion")


@dataclass(frozen=True)
class Entry:
    """`where`: module of service.cli and its function or Typer. `line`: how the command's own help begins. `exits`:
    what its exit statuses mean, where they tell how a bisection ended."""

    where: str
    line: str
    panel: str
    examples: tuple[str, ...] = ()
    exits: str = ""

    def load(self, name: str) -> Any:
        module, _, attribute = self.where.partition(":")
        found = getattr(import_module(f"service.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            command = get_command(found)
            command.name = name
            command.params = [param for param in command.params if param.name not in SET_UP]
            return command
        alone = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
        alone.command(name, epilog=epilog(*self.examples, exits=self.exits))(found)
        return get_command(alone)


class Later(TyperCommand):
    """What the help and the shell are told of a command that is not loaded."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.line, rich_help_panel=entry.panel, rich_markup_mode=MARKUP)
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self._entry.load(self.name or "").make_context(info_name, args, parent, **extra)


class LaterGroup(TyperGroup):
    """`entries`: set by a subclass."""

    entries: Mapping[str, Entry]

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = {name: Later(name, entry) for name, entry in self.entries.items()}


def epilog(*examples: str, exits: str = "") -> str:
    """The last lines of a command's help."""
    from rich.markup import escape

    told = [f"[dim]Example:[/dim] {escape(line)}" for line in examples]
    return "\n\n".join([*told, *([exits] if exits else [])])
