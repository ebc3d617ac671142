"""The firstbad command."""

from service.cli.commands import main

__all__ = ["main"]
