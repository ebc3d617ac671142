"""Log lines and progress on stderr, each written in one piece and with the process it comes from."""

import os
import sys
import time

ERROR_LINE_PAUSE_S = 0.0005


class PrefixedStream:
    """Puts the name of the process before each line, as several processes share one terminal."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._open_line = ""

    def write(self, text: str) -> int:
        *lines, self._open_line = (self._open_line + text).split("\n")
        for line in lines:
            os.write(2, f"{self.prefix}{line}\n".encode(errors=self.errors))
        return len(text)

    def write_over(self, text: str) -> None:
        """Writes a line that the next one replaces."""
        os.write(2, f"\r{self.prefix}{text}".encode())

    def end_line(self) -> None:
        os.write(2, b"\n")

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 2


_stream = PrefixedStream("")


def decorate(process_name: str) -> None:
    """Prefixes whatever this process writes to stderr from now on, uncaught tracebacks included."""
    _stream.prefix = f"({process_name} pid={os.getpid()}) "
    sys.stderr = _stream


def info(message: str) -> None:
    _log("INFO", message)


def warning(message: str) -> None:
    _log("WARNING", message)


def error(message: str) -> None:
    _log("ERROR", message)


def exception(message: str) -> None:
    """Logs the exception that is being handled, with its traceback."""
    import traceback

    _log("ERROR", f"{message}\n{traceback.format_exc()}", ERROR_LINE_PAUSE_S)


def _log(level: str, message: str, pause_s: float = 0) -> None:
    caller = sys._getframe(2)
    where = f"{caller.f_code.co_filename.rpartition(os.sep)[2]}:{caller.f_lineno}"
    stamp = time.strftime("%m-%d %H:%M:%S")
    for line in message.splitlines():
        _stream.write(f"{level} {stamp} [{where}] {line}\n")
        if pause_s:
            # The other ranks report at the same moment: give them their turn, as a slow terminal would.
            time.sleep(pause_s)


class Progress:
    """A bar that is redrawn over itself, drawn by one rank for all."""

    def __init__(self, label: str, total: int, shown: bool) -> None:
        self.label, self.total, self.shown = label, total, shown
        self._done = -1
        self.step()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.shown:
            _stream.end_line()

    def step(self) -> None:
        self._done += 1
        if self.shown:
            share = self._done / self.total
            bar = ("█" * int(10 * share)).ljust(10)
            _stream.write_over(f"{self.label}: {share:4.0%}|{bar}| {self._done}/{self.total}")
