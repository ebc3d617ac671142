"""Python's tracebacks, in a process' own lines: chained, grouped, repeated by Ray, and those of faulthandler."""

from __future__ import annotations

import re

from worker.observe.failures import Failure, Failures, Kind, Place, Record, add_place

_HEADER = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s{0,40}File "(?P<file>[^"]{1,1000})", line \d+(?:,? in (?P<function>.{1,300}))?\s*$')
_RAISED = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200})(?:\(\w{1,80}\))?(?::(?:\s+(?P<message>.*))?)?$")
_SURE = re.compile(r"(?:Error|Exception|Interrupt|Exit|Failed|Failure|Timeout|Group|Warning|Died|Empty|Full|\w\.\w+)$")
_GROUP = re.compile(r"\s{0,40}(?:\| ?|\+ (?=Exception Group))")
_RULER = re.compile(r"\s{0,40}\+-[+-]{2,}")
#: Rich draws a box round a traceback.
_BOXED = re.compile(r"[\u2502\u2503\u256d\u2570](?: (?P<file>/\S{1,400}):\d+ in (?P<function>\S{1,200}))?")
_CHAINED = (
    "During handling of the above exception, another exception occurred",
    "The above exception was the direct cause of the following exception",
)
_NO_TYPES = {"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "FATAL", "TRACE", "NOTE", "File"}
#: The message goes on where it has only announced what it is about.
_ANNOUNCES = re.compile(r"(?::|\b\d{1,6} validation errors? for \S+)$")
_ASIDE = re.compile(r"\s{0,8}For further information visit ")
_FATAL = re.compile(r"Fatal Python error: (?P<what>.*)")
_HUNG = re.compile(r"Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$")
_CURRENT = re.compile(r"(?:Current thread|Stack) .{0,120}\(most recent call first\):")
_THREAD = re.compile(r"(?:Thread|Current thread) .{0,120}\(most recent call first\):")
_SIGNALS = {
    "Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT", "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE", "Illegal instruction": "SIGILL",
}  # fmt: skip
#: Lines of other things that may stand between those of a traceback, and lines until it is given up.
NOISE, PATIENCE = 20, 400


class PythonReader:
    """Of one process."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._state = ""
        self._chain = 0
        self._linked = False
        self._begin()
        self._dump: Failure | None = None
        self._raised: Failure | None = None
        self._wants = 0
        self._ignored_at = 0
        self._opens = False

    def takes(self, text: str) -> bool:
        """Another header begins something new, unless it was announced."""
        if _HEADER in text:
            return self._linked
        if self._state == "behind" and (not text.strip() or any(words in text for words in _CHAINED)):
            return True
        return self._state == "frames" or self._linked or self._wants > 0 or self._dump is not None

    def feed(self, record: Record) -> bool:
        """Whether the line belonged to a traceback."""
        text = record.text
        if _HEADER in text:
            self._header(record)
            return True
        if text.startswith("Exception ignored in"):
            self._ignored_at = record.number
            self._failures.listen(record.number, 3)
        if self._dump is not None and self._dumped(text):
            return True
        if self._started_dump(record):
            return True
        if not self._state or (record.opens and not self._opens and self._state == "frames"):
            return False
        self._failures.listen(record.number, PATIENCE)
        if group := _GROUP.match(text):
            text = text[group.end() :]
        return self._in_frames(record, text) if self._state == "frames" else self._behind(record, text)

    def _begin(self) -> None:
        self._places: list[Place] = []
        self._source = ""
        self._fresh = False
        self._noise = 0
        self._handled = False

    def _header(self, record: Record) -> None:
        if not self._linked:
            self._chain = self._failures.new_chain()
        self._begin()
        self._state, self._linked, self._wants = "frames", False, 0
        self._opens = record.opens
        self._handled = record.level in ("WARNING", "INFO", "DEBUG", "TRACE") or (
            0 < record.number - self._ignored_at <= 2 and self._ignored_at > 0
        )
        self._failures.listen(record.number, PATIENCE)

    def _in_frames(self, record: Record, text: str) -> bool:
        if found := _FRAME.match(text):
            add_place(self._places, Place(found["file"], (found["function"] or "").strip()))
            self._source, self._fresh, self._noise = "", True, 0
            return True
        if boxed := _BOXED.match(text):
            if boxed["file"]:
                add_place(self._places, Place(boxed["file"], boxed["function"]))
            return True
        if not text.strip() or text[0] in " \t" or _RULER.match(text):
            if self._fresh and not self._source:
                self._source = text.strip()
            return True
        found = _RAISED.match(text)
        if found and found["type"] not in _NO_TYPES and (self._noise == 0 or _SURE.search(found["type"])):
            self._raise(record, found)
            return True
        self._noise += 1
        if self._noise > NOISE:
            self._state = ""
        return False

    def _raise(self, record: Record, found: re.Match[str]) -> None:
        message = (found["message"] or "").strip()
        if not message and self._source.startswith("assert"):
            message = self._source
        name = found["type"].rpartition(".")[2]
        kind = _kind_of(name, message)
        self._raised = self._failures.add(
            Failure(kind, name, message, record.number, record.process, self._places, self._chain)
        )
        self._raised.handled = self._handled
        self._doubtful = not _SURE.search(found["type"])
        self._state = "behind"
        self._wants = 2 if not message or _ANNOUNCES.search(message) else 0

    def _behind(self, record: Record, text: str) -> bool:
        raised = self._raised
        assert raised is not None
        if any(words in text for words in _CHAINED):
            self._linked, self._wants = True, 0
            return True
        if found := _FRAME.match(text):
            self._again(raised)
            return self._in_frames(record, found[0])
        if self._wants and text.strip() and not record.opens and not _ASIDE.match(text):
            self._wants -= 1
            raised.message = f"{raised.message} {text.strip()}".strip()
            raised.kind = _kind_of(raised.type, raised.message)
            return True
        if self._wants and record.opens:
            self._wants = 0
        if record.number - raised.number > PATIENCE:
            self._state, self._linked = "", False
        return False

    def _again(self, raised: Failure) -> None:
        """Frames without a header: Ray's, or what looked like an exception was something else."""
        self._state, self._linked, self._wants = "frames", False, 0
        places = raised.places
        self._begin()
        self._handled = raised.handled
        if self._doubtful:
            self._failures.drop(raised)
            self._places = places

    def _started_dump(self, record: Record) -> bool:
        found, hung = _FATAL.search(record.text), _HUNG.match(record.text)
        if not found and not hung:
            return False
        what = found["what"].strip() if found else "Timeout"
        kind = Kind.HANG if hung else Kind.SIGNAL
        name = _SIGNALS.get(what, "Timeout" if hung else "Fatal Python error")
        self._dump = self._failures.add(Failure(kind, name, what, record.number, record.process))
        self._in_current = False
        self._failures.listen(record.number, PATIENCE)
        return True

    def _dumped(self, text: str) -> bool:
        """Innermost first, of the thread that failed; others are not of interest."""
        assert self._dump is not None
        if _THREAD.match(text):
            self._in_current = bool(_CURRENT.match(text)) or (self._dump.kind is Kind.HANG and not self._dump.places)
            return True
        if found := _FRAME.match(text):
            if self._in_current and len(self._dump.places) < PATIENCE // 2:
                self._dump.places.insert(0, Place(found["file"], (found["function"] or "").strip()))
            return True
        if text.startswith("Extension modules:"):
            self._dump = None
            return True
        return not text.strip()


def _kind_of(name: str, message: str) -> Kind:
    if "NCCL" in message or name == "DistBackendError":
        return Kind.NCCL
    if (
        "CUDA error" in message
        or "CUDA driver error" in message
        or "HIP error" in message
        or name == "AcceleratorError"
    ):
        return Kind.CUDA
    return Kind.PYTHON
