"""Reads a log line by line, each process on its own, and passes over what says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from worker.observe.blocks import Block, Filter, blocks_of
from worker.observe.error_lines import LineReader
from worker.observe.failures import Failures, Record
from worker.observe.frames import frames_of
from worker.observe.pointers import Rank, rank
from worker.observe.pytest_report import PytestReader
from worker.observe.records import records_of
from worker.observe.traceback_native import NativeReader
from worker.observe.traceback_python import PythonReader
from worker.observe.traceback_stacks import GoReader, RustReader, StackReader

#: Lines are alike when so many of their first and last characters are, digits aside; so many of them are remembered.
SHAPE, SHAPES = 200, 4096
#: Lines that are read on behind a failure that explains the rest.
AFTERWARDS = 20_000
_DIGITS = str.maketrans("123456789", "000000000")
#: A block without any of these words, while nobody waits for more, is passed over.
WORDS = (
    "rror", "ERROR", "Traceback (", "xception", "ssert", "ASSERT", "anic", "atal", "FATAL", "FAIL", "terminat",
    "ignal", "SIG", "Segfault", "egmentation", "core dumped", "Aborted", "Killed", "NCCL WARN",
    "undefined reference", "ld: ", "Caused by", "Check failed", "(): ", "corrupt", "stack smashing", "Sanitizer",
    "uda", "\u25cf ", "curl: (", ": line ", "Bus e", "Timeout (", ".go:", ": In ", "atchdog", "========= ",
)  # fmt: skip
#: After so many lines that led to nothing but themselves, only those with one of these words are read.
WEAK = 20_000
TELLING = (
    "Traceback (", "xception", "ssert", "ASSERT", "panic", "terminat", "Segfault", "egmentation", "core dumped",
    "Fatal Python", "CUDA error", "Sanitizer", "Check failed", "NCCL WARN", ": error", "Error:", "SIGSEGV", "corrupt",
)  # fmt: skip
#: The line above a traceback may say that it was caught, by words that not every warning before a crash has.
_HEADER = b"Traceback ("
CAUGHT = Filter([r"(?i)fail|could not|couldn't|cannot|can't|unable|skip|ignor|error|exception"])
_WORDS, _TELLING = Filter.of_words(WORDS), Filter.of_words(TELLING)


def read(log: str | Iterable[str], project: tuple[str, ...]) -> Reading:
    reading = Reading(project)
    lines = log.split("\n") if isinstance(log, str) else log
    for block in blocks_of(line.encode("utf-8", "replace") for line in lines):
        reading.read(block)
        if reading.settled(block.first):
            break
    return reading


class Reading:
    """Of a log: each process' lines go to readers of its own."""

    def __init__(self, project: tuple[str, ...]) -> None:
        self.failures = Failures()
        self.last: Record | None = None
        self._project = project
        self._next_look = AFTERWARDS
        self._words = _WORDS
        self._weak = 0
        self._seen: dict[str, int] = {}
        self._readers: dict[str, Readers] = {}
        self._before: Readers | None = None
        self._before_number = 0
        self._last_line = b""

    def read(self, block: Block) -> None:
        if block.first <= self.failures.live_until or self._words.within(block.text):
            before = self._last_line
            for number, line in enumerate(block.lines, block.first):
                if number <= self.failures.live_until:
                    self._line(line.decode("utf-8", "replace"), number)
                elif self._words.within(line):
                    if _HEADER in line and self._before_number < number - 1 and CAUGHT.within(before):
                        self._line(before.decode("utf-8", "replace"), number - 1)
                    self._new(line.decode("utf-8", "replace"), number)
                before = line
        self._last_line = block.lines[-1]
        last = block.first + len(block.lines) - 1
        for number, line in zip(range(last, block.first - 1, -1), reversed(block.lines), strict=True):
            if said := [each for each in records_of(line.decode("utf-8", "replace"), number) if each.text.strip()]:
                self.last = said[-1]
                break

    def settled(self, number: int) -> bool:
        """Whether the root has been found and all that could tell its frames lies behind."""
        if not self._project or number < self._next_look:
            return False
        self._next_look = number + AFTERWARDS // 4
        behind = (failure for failure in self.failures.found if failure.number < number - AFTERWARDS)
        return any(
            rank(failure, True) is Rank.SPECIFIC and frames_of(failure.places, self._project) for failure in behind
        )

    def _new(self, line: str, number: int) -> None:
        """A line that led to nothing but itself is not read a third time, whatever numbers it holds."""
        shape = (line[:SHAPE] + line[SHAPE:][-SHAPE:]).translate(_DIGITS)
        if self._seen.get(shape, 0) >= 2:
            self._count_weak()
            return
        until = self.failures.live_until
        self._line(line, number)
        last = self.failures.found[-1] if self.failures.found else None
        strong = last is not None and last.number == number and not last.line_only
        if self.failures.live_until == until and not strong:
            self._count_weak()
            if len(self._seen) < SHAPES:
                self._seen[shape] = self._seen.get(shape, 0) + 1

    def _count_weak(self) -> None:
        self._weak += 1
        if self._weak == WEAK:
            self._words = _TELLING

    def _line(self, line: str, number: int) -> None:
        for record in records_of(line, number):
            readers = self._of(record)
            readers.feed(record)
            self._before, self._before_number = readers, number

    def _of(self, record: Record) -> Readers:
        """A line without a mark continues the record right above it, when that one began something and no other did."""
        unmarked = self._get("")
        before = self._before
        if record.process or record.opens or before is None or before is unmarked or unmarked.takes(record.text):
            return self._get(record.process)
        adjacent = record.number - self._before_number <= 1
        return before if adjacent and before.takes(record.text) else unmarked

    def _get(self, process: str) -> Readers:
        if process not in self._readers:
            if len(self._readers) >= 512:
                self._readers.clear()
            self._readers[process] = Readers(self.failures)
        return self._readers[process]


class Reader(Protocol):
    """Finds failures of one kind in the lines of one process."""

    def takes(self, text: str) -> bool:
        """Whether it waits for more, and a line that nobody marked may be that."""

    def feed(self, record: Record) -> bool:
        """Whether the line was its own."""


#: The first that takes a line has it alone.
READERS: tuple[Callable[[Failures], Reader], ...] = (
    PytestReader, PythonReader, RustReader, GoReader, StackReader, NativeReader, LineReader,
)  # fmt: skip


class Readers:
    """Of one process."""

    def __init__(self, failures: Failures) -> None:
        self._all: tuple[Reader, ...] = tuple(kind(failures) for kind in READERS)
        self._level = ("", 0)

    def takes(self, text: str) -> bool:
        return any(reader.takes(text) for reader in self._all)

    def feed(self, record: Record) -> None:
        record = self._with_level(record)
        for reader in self._all:
            if reader.feed(record):
                return

    def _with_level(self, record: Record) -> Record:
        """What follows a warning without prefixes of its own, right away, belongs to it."""
        level, number = self._level
        if record.opens:
            self._level = (record.level if record.level == "WARNING" and not record.source else "", record.number)
        elif level and not record.level and record.number == number + 1:
            self._level = (level, record.number)
            return Record(record.number, record.process, level, record.text)
        return record
