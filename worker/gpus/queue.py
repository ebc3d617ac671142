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
    """The lower the number, the earlier he came who waits for cards of this class: for these, or, without indexes, for
    any."""

    number: int
    model: str
    file: IO[str]
    indexes: tuple[int, ...] = ()

    def let_by(self, yes: bool) -> None:
        """Whether those who came later may go first: nothing that they do keeps this one waiting."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write(_written(self.model, self.indexes, yes))
        self.file.flush()


def _written(model: str, indexes: tuple[int, ...], lets_by: bool) -> str:
    return "lets by" if lets_by else f"{model} waits {' '.join(map(str, indexes))}"


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

    def draw(self, model: str, indexes: tuple[int, ...] = ()) -> Ticket:
        number = max(self._numbers(), default=0) + 1
        file = _locked(self._path(number))
        assert file is not None, "a ticket was drawn twice"
        file.write(_written(model, indexes, False))
        file.flush()
        return Ticket(number, model, file, indexes)

    def give_back(self, ticket: Ticket) -> None:
        with contextlib.suppress(OSError):
            self._path(ticket.number).unlink()
        ticket.file.close()

    def ahead(self, ticket: Ticket) -> frozenset[int] | None:
        """The cards that those wait for who came before; None when one of them waits for any of this class."""
        found: set[int] = set()
        for number in self._numbers():
            told = self._told(number) if number < ticket.number else ""
            model, _, indexes = told.partition(" waits ")
            if told != "lets by" and model == ticket.model:
                if not indexes:
                    return None
                found.update(map(int, indexes.split()))
        return frozenset(found)

    def _told(self, number: int) -> str:
        path = self._path(number)
        file = _locked(path)
        if file is not None:
            # He who drew it is dead.
            path.unlink()
            file.close()
            return ""
        return path.read_text()

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
