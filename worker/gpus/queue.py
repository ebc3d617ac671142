"""A line of those who wait for cards, and the cards' locks: files of a folder that all workers of the node share.

Whatever a process holds there ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from worker.errors import fault_of


@dataclass(frozen=True)
class Ticket:
    """The lower the number, the earlier he came who waits for cards of this class."""

    number: int
    model: str
    file: IO[str]

    def let_by(self, yes: bool) -> None:
        """Whether those who came later may go first: nothing that they do keeps this one waiting."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write(_written(self.model, yes))
        self.file.flush()


def _written(model: str, lets_by: bool) -> str:
    return f"{model} {'lets by' if lets_by else 'waits'}"


class Line:
    """All but `alone` is called while that is held. Errors: NodeFault."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else looks, or takes, meanwhile: for moments only."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise fault_of(error, f"locking {self._folder}") from error

    def lock(self, index: int) -> IO[str] | None:
        """The card's, as long as the file is open; None when somebody has it."""
        return _locked(self._folder / f"gpu-{index}")

    def draw(self, model: str) -> Ticket:
        number = max(self._numbers(), default=0) + 1
        file = _locked(self._path(number))
        assert file is not None, "a ticket was drawn twice"
        file.write(_written(model, False))
        file.flush()
        return Ticket(number, model, file)

    def give_back(self, ticket: Ticket) -> None:
        with contextlib.suppress(OSError):
            self._path(ticket.number).unlink()
        ticket.file.close()

    def first(self, ticket: Ticket) -> bool:
        """Whether nobody who came before still waits for the same cards."""
        return not any(self._waits(number, ticket.model) for number in self._numbers() if number < ticket.number)

    def _waits(self, number: int, model: str) -> bool:
        path = self._path(number)
        file = _locked(path)
        if file is not None:
            # He who drew it is dead.
            path.unlink()
            file.close()
            return False
        return path.read_text() == _written(model, False)

    def _numbers(self) -> list[int]:
        return sorted(int(path.name.removeprefix("ticket-")) for path in self._folder.glob("ticket-*"))

    def _path(self, number: int) -> Path:
        return self._folder / f"ticket-{number}"


def _locked(path: Path) -> IO[str] | None:
    # Not truncated: what another has written there shall stay.
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
