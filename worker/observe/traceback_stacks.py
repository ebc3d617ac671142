"""Stacks that name their exception first: the JVM's, Node's, Go's and Rust's."""

from __future__ import annotations

import re

from worker.observe.failures import Failure, Failures, Kind, Place, Record

_HEAD = re.compile(
    r'(?P<caused>\s{0,12}(?:Caused by: |\[cause\]: ))?(?:Exception in thread "[^"]{0,120}" |Uncaught '
    r"|\(node:\d+\) \w{1,40}: )?"
    r"(?P<type>(?:[\w$]{1,80}\.){0,12}[A-Z][\w$]{0,80})(?: \[\w{1,60}\])?(?:: (?P<message>.*))?$"
)
_JVM = re.compile(
    r"\s{0,12}at (?:[\w.@-]{0,80}/{1,2}){0,2}(?P<name>[\w$.<>]{1,300})\((?P<file>[^():]{1,200})(?::\d+)?\)"
)
_NODE = re.compile(
    r"\s{1,12}at (?:async )?(?:(?P<name>[^()]{1,200}) \()?(?P<file>[^()\s][^()]{0,600}?):\d+:\d+\)?(?: \{)?$"
)
_MORE = re.compile(r"\s{0,12}\.\.\. \d+ more|\s{0,12}(?:Suppressed: .*)$|\s{0,12}at \S")
_PANIC = re.compile(
    r"thread '[^']{0,120}'(?: \(\d+\))? panicked at (?:'(?P<old>.*)', (?P<old_file>[^', ]{1,300}):\d+:\d+"
    r"|(?P<file>[^']{1,300}?):\d+:\d+:?)$"
)
_RUST_NAME = re.compile(r"\s{1,6}\d{1,4}:\s{1,4}(?:0x[0-9a-f]{4,16} - )?(?P<name>\S.{0,300})$")
_RUST_FILE = re.compile(r"\s{6,40}at (?P<file>\S{1,300}?):\d+(?::\d+)?$")
_ERROR = re.compile(r"Error: (?P<message>\S.*)$")
_CAUSE = re.compile(r"\s{2,8}(?:\d{1,3}: )?(?P<message>\S.*)$")
_GO_HEAD = re.compile(r"(?:panic|fatal error): (?P<message>.*?)(?: \[recovered\])?$")
_GOROUTINE = re.compile(r"goroutine \d+(?: gp=\S+ m=\S+(?: mp=\S+)?)? \[[^\]]{1,80}\]:$")
_GO_NAME = re.compile(r"(?:created by )?(?P<name>[\w./*()$\[\]-]{1,300}?)(?:\([^()]{0,400}\)| in goroutine \d+)?$")
_GO_FILE = re.compile(r"\t(?P<file>\S{1,400}\.(?:go|s)):\d+")
#: A head may stand this many lines above its first frame.
NEAR, PATIENCE = 12, 300


class StackReader:
    """JVM and Node, of one process."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._head: tuple[int, re.Match[str]] | None = None
        self._current: Failure | None = None
        self._last = 0

    def takes(self, text: str) -> bool:
        return self._current is not None

    def feed(self, record: Record) -> bool:
        text = record.text
        if " at " in text or text.startswith(("at ", "\tat ")):
            place, kind = _place_of(text)
            if place is not None:
                return self._add(record, place, kind)
        if self._current is not None and record.number - self._last > NEAR:
            self._current = None
        if found := _HEAD.match(text):
            self._heard(record, found)
            return self._current is not None
        return self._current is not None and bool(_MORE.match(text))

    def _heard(self, record: Record, found: re.Match[str]) -> None:
        if found["caused"] and self._current is not None:
            self._current.wraps = True
            chain = self._current.chain
            self._current = self._new(record, found, self._current.kind, chain)
        elif "rror" in found["type"] or "xception" in found["type"] or "." in found["type"]:
            self._head, self._current = (record.number, found), None
            self._failures.listen(record.number, NEAR)

    def _add(self, record: Record, place: Place, kind: Kind) -> bool:
        if self._current is None:
            if self._head is None or record.number - self._head[0] > NEAR:
                return False
            number, found = self._head
            self._current = self._new(record, found, kind, self._failures.new_chain())
            self._current.number, self._head = number, None
            self._current.handled = record.level in ("WARNING", "INFO", "DEBUG", "TRACE")
        if len(self._current.places) < PATIENCE:
            self._current.places.insert(0, place)
        self._last = record.number
        self._failures.listen(record.number, NEAR)
        return True

    def _new(self, record: Record, found: re.Match[str], kind: Kind, chain: int) -> Failure:
        self._last = record.number
        self._failures.listen(record.number, NEAR)
        name = found["type"].rpartition(".")[2]
        message = (found["message"] or "").rstrip(" {")
        return self._failures.add(Failure(kind, name, message, record.number, record.process, [], chain))


def _place_of(text: str) -> tuple[Place | None, Kind]:
    if found := _JVM.match(text):
        folders = [part for part in found["name"].split(".")[:-2] if part[:1].islower()]
        return Place("/".join([*folders, found["file"]]), found["name"].rpartition(".")[2]), Kind.JVM
    if found := _NODE.match(text):
        return Place(found["file"], (found["name"] or "").strip()), Kind.NODE
    return None, Kind.OTHER


class RustReader:
    """Panics, and the chain of causes that anyhow and eyre print."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._current: Failure | None = None
        self._wants = False
        self._name = ""
        self._stack = False
        self._causes = False

    def takes(self, text: str) -> bool:
        return self._current is not None

    def feed(self, record: Record) -> bool:
        if found := _PANIC.match(record.text):
            return self._panicked(record, found)
        if self._current is None:
            return self._erred(record)
        if record.number - self._current.number > PATIENCE:
            self._current = None
            return False
        self._failures.listen(record.number, NEAR)
        return self._goes_on(self._current, record.text)

    def _panicked(self, record: Record, found: re.Match[str]) -> bool:
        failure = Failure(Kind.RUST, "panic", found["old"] or "", record.number, record.process)
        failure.places.append(Place(found["old_file"] or found["file"], ""))
        self._current = self._failures.add(failure)
        self._wants, self._stack, self._causes = not found["old"], False, False
        self._failures.listen(record.number, NEAR)
        return True

    def _erred(self, record: Record) -> bool:
        """`Error: …` may be anyone's; only the causes that follow make it Rust's."""
        if found := _ERROR.match(record.text):
            self._current = Failure(Kind.RUST, "Error", found["message"], record.number, record.process)
            self._wants, self._stack, self._causes = False, False, False
            self._failures.listen(record.number, NEAR)
        return False

    def _goes_on(self, current: Failure, text: str) -> bool:
        if self._wants and text.strip():
            current.message, self._wants = text.strip(), False
            return True
        if text.startswith("Caused by:") and current.type == "Error":
            self._causes = True
            self._failures.add(current)
            return True
        if text.lower().startswith("stack backtrace:"):
            self._stack, self._causes = True, False
            return True
        if self._causes and (found := _CAUSE.match(text)):
            current.message = found["message"]
            return True
        return self._framed(current, text) if self._stack else self._over(text)

    def _framed(self, current: Failure, text: str) -> bool:
        if found := _RUST_NAME.match(text):
            self._name = found["name"]
            return True
        if found := _RUST_FILE.match(text):
            self._placed(current, found["file"])
            return True
        return self._over(text)

    def _placed(self, current: Failure, file: str) -> None:
        """The place of the panic is the innermost frame that is not the library's; the stack knows its function."""
        last = current.places[-1] if current.places else None
        if last and not last.function and last.path.removeprefix("./") == file.removeprefix("./"):
            current.places[-1] = Place(last.path, self._name)
        elif len(current.places) < PATIENCE:
            start = len(current.places)
            current.places.insert(0 if start else start, Place(file, self._name))

    def _over(self, text: str) -> bool:
        if not text.strip() or text.startswith("note: "):
            return bool(text)
        self._current = None
        return False


class GoReader:
    """A panic counts once a goroutine's stack follows it."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._head: tuple[int, str] | None = None
        self._current: Failure | None = None
        self._name = ""

    def takes(self, text: str) -> bool:
        return self._current is not None

    def feed(self, record: Record) -> bool:
        text = record.text
        if found := _GO_HEAD.match(text):
            self._head = self._head or (record.number, found["message"])
            self._failures.listen(record.number, NEAR)
            return True
        if self._current is not None:
            return self._framed(self._current, record)
        if self._head and record.number - self._head[0] > NEAR:
            self._head = None
        if self._head and _GOROUTINE.match(text):
            number, message = self._head
            self._current = self._failures.add(Failure(Kind.GO, "panic", message, number, record.process))
            self._failures.listen(record.number, PATIENCE)
            return True
        return False

    def _framed(self, current: Failure, record: Record) -> bool:
        if not record.text.strip():
            self._current, self._head = None, None
        elif found := _GO_FILE.match(record.text):
            if len(current.places) < PATIENCE:
                current.places.insert(0, Place(found["file"], self._name.rpartition("/")[2]))
        elif found := _GO_NAME.match(record.text):
            self._name = found["name"]
        else:
            return False
        self._failures.listen(record.number, NEAR)
        return True
