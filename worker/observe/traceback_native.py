"""What C, C++ and CUDA leave behind when a process dies: a line that says why, and perhaps a stack."""

from __future__ import annotations

import re

from worker.observe.failures import Failure, Failures, Kind, Place, Record

_TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '(?P<type>[^']{1,300})'|"
    r"(?P<without>without an active exception))"
)
_WHAT = re.compile(r"\s{0,8}what\(\):\s{0,4}(?P<message>.*)$")
_LIBCXX = re.compile(
    r"libc\+\+abi: terminating (?:due to|with) uncaught exception(?: of type "
    r"(?P<type>[^:]{1,200}(?:::[^:]{1,200})*))?(?:: (?P<message>.*))?$"
)
_SIGNALS = {
    "Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT", "Bus error": "SIGBUS", "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE", "Killed": "SIGKILL", "Terminated": "SIGTERM",
    "Trace/breakpoint trap": "SIGTRAP",
}  # fmt: skip
_NAMES = "|".join(_SIGNALS)
#: Each with the groups that it knows: name or signal, message, file, function.
_SIGNALLED = (
    re.compile(r".{0,120}\breceived signal (?P<signal>SIG\w{2,8}), (?P<message>[^.]{0,80})"),
    re.compile(r".{0,160}\bSignal \d+ \((?P<signal>SIG\w{2,8})\) received by PID"),
    re.compile(r"\*\*\* (?P<signal>SIG\w{2,8}) (?:received )?(?:at time=|\(@0x)"),
    re.compile(rf"\s{{0,4}}Signal: (?P<name>{_NAMES}) \(\d+\)$"),
    re.compile(r"!{3,20} Segfault encountered !{3,20}"),
)
_SHELL = re.compile(rf"(?:\S{{1,300}}: line \d+: +\d+ )?(?P<name>{_NAMES})(?: +\(core dumped\))?(?: .*)?$")
_SANITIZER = re.compile(r"(?:=+\d+=+ ?)?(?:ERROR|WARNING): (?P<type>\w{1,40}Sanitizer): (?P<message>.*)$")
_UBSAN = re.compile(r"(?P<file>[^\s:]{1,300}):\d+:\d+: runtime error: (?P<message>.*)$")
_MEMCHECK = re.compile(r"=+ (?P<message>(?:Invalid|Program hit|Race reported|Uninitialized) .*)$")
_HEAP = re.compile(
    r"(?:\*\*\* )?(?P<message>(?:(?:free|malloc|realloc|munmap_chunk|malloc_consolidate|_int_free)\(\): [a-z].*"
    r"|double free or corruption.*|corrupted (?:size|double).*|stack smashing detected.*))$"
)
_ASSERTIONS = (
    re.compile(
        r"(?P<file>[^\s:]{1,400}):\d+: "
        r"(?P<function>.{0,400}?): block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion `(?P<message>.*?)` failed"
    ),
    re.compile(
        r"(?:[^\s:]{1,200}: )?(?P<file>[^\s:]{1,400}):\d+: "
        r"(?P<function>[^`]{0,400}?):? ?Assertion [`'](?P<message>.*?)['`] failed"
    ),
    re.compile(r"(?P<file>[^\s:]{1,400}):\d+: GGML_ASSERT\((?P<message>.*)\) failed"),
    re.compile(r"GGML_ASSERT: (?P<file>[^\s:]{1,400}):\d+: (?P<message>.*)$"),
    re.compile(r"Assertion failed: (?P<message>.*?)(?: \((?P<file>/[^\s:()]{1,400}):\d+\))?$"),
    re.compile(r".{0,200}?\b(?P<message>(?:Internal assert|Assertion|Check) failed: .*)$"),
)
_CUDA = (
    re.compile(
        r"(?:ggml_cuda\w*: |ERROR: |error: )?(?P<message>CUDA (?:driver |runtime )?error(?: ?\(?\d+\)?)?(?::| at) .*)$"
    ),
    re.compile(r".{0,200}?(?P<message>Cuda (?:Runtime|Driver) \(.*\).*)$"),
    re.compile(r".{0,200}?(?P<message>\b(?:[Ee]rror|failed|returned|code)\b.{0,80}?\bcudaError[A-Z]\w{3,60}\b.*)$"),
)
_CUDA_PLACE = re.compile(
    r"\s{1,8}current device: -?\d+, in function (?P<function>\S{1,200}) at (?P<file>[^\s:]{1,400}):\d+"
)
_NCCL = re.compile(r".{0,160}\bNCCL WARN (?P<message>.*)$")
_WATCHDOG = re.compile(
    r".{0,200}?(?P<message>(?:Watchdog caught collective operation timeout"
    r"|Process group watchdog thread terminated).*)$"
)
_FRAMES = (
    re.compile(
        r"\s{0,8}#\d{1,3}\s+(?:0x[0-9a-f]{1,16} in )?(?P<function>[^\s(].{0,400}?) \(.*\) (?:at "
        r"(?P<file>[^\s:]{1,400}):\d+|from (?P<library>\S{1,400}))"
    ),
    re.compile(
        r"\s{0,8}#\d{1,3}\s+0x[0-9a-f]{1,16} in (?P<function>.{1,400}?) (?P<file>[^\s:()]{1,400}):\d+(?::\d+)?$"
    ),
    re.compile(
        r"\s{0,8}(?:\[ ?\d{1,3}\] ?)?(?P<library>/?[^\s()]{1,400}\.so[\d.]*)\("
        r"(?P<function>[^\s()+]{0,400})(?:\+0x[0-9a-f]{1,16})?\) ?\["
    ),
    re.compile(r"=+\s{1,8}(?:at|by) (?:0x[0-9a-f]{1,16} in )?(?P<file>[^\s:]{1,400}):\d+:(?P<function>[^\s(]{1,200})"),
    re.compile(
        r"=+\s{1,8}at (?P<function>[^\s(]{1,300})(?:\([^()]{0,300}\))?(?:\+0x[0-9a-f]{1,8})? in "
        r"(?P<file>[^\s:]{1,400}):\d+"
    ),
)
#: Lines that a stack may come after its failure, and frames of it.
NEAR, FRAMES = 60, 200


class NativeReader:
    """Of one process."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._current: Failure | None = None
        self._last = 0
        self._first_stack = True

    def takes(self, text: str) -> bool:
        return False

    def feed(self, record: Record) -> bool:
        text = record.text
        if self._current is not None:
            if record.number - self._last > NEAR:
                self._current = None
            elif self._goes_on(self._current, record):
                return True
        failure = _failure_in(text) if record.level not in ("INFO", "DEBUG", "TRACE") or "NCCL WARN" in text else None
        if failure is None:
            return False
        failure.number, failure.process = record.number, record.process
        failure.handled = record.level == "WARNING" and failure.kind is not Kind.NCCL
        self._current, self._last, self._first_stack = self._failures.add(failure), record.number, True
        self._failures.listen(record.number, NEAR)
        return True

    def _goes_on(self, current: Failure, record: Record) -> bool:
        text = record.text
        if current.kind is Kind.CPP and not current.message and (found := _WHAT.match(text)):
            current.message = found["message"].strip()
            return True
        if current.kind is Kind.CUDA and (found := _CUDA_PLACE.match(text)):
            current.places.append(Place(found["file"], found["function"]))
            return True
        found = next((found for pattern in _FRAMES if (found := pattern.match(text))), None)
        if found is None:
            if current.places and not text.strip():
                self._first_stack = False
            return False
        if self._first_stack and len(current.places) < FRAMES:
            current.places.insert(0, _place(found))
        self._last = record.number
        self._failures.listen(record.number, NEAR)
        return True


def _place(found: re.Match[str]) -> Place:
    known = found.groupdict()
    return Place(known.get("file") or known.get("library") or "", bare(known.get("function") or ""))


def bare(function: str) -> str:
    """A C++ function without its return type, arguments and template arguments."""
    name = function.replace("(anonymous namespace)::", "").replace("operator()", "operator").split("(")[0]
    depth, kept = 0, []
    for letter in name:
        depth += letter == "<"
        if not depth:
            kept.append(letter)
        depth -= letter == ">" and depth > 0
    return "".join(kept).strip().rpartition(" ")[2].lstrip("*&")


def _failure_in(text: str) -> Failure | None:
    return _terminated(text) or _asserted(text) or _cuda(text) or _signalled(text) or _checked(text)


def _terminated(text: str) -> Failure | None:
    if "terminat" not in text:
        return None
    if found := _TERMINATE.search(text):
        return Failure(Kind.CPP, found["type"] or "terminate", found["without"] or "", 0)
    if found := _LIBCXX.match(text):
        return Failure(Kind.CPP, found["type"] or "terminate", found["message"] or "", 0)
    return None


def _asserted(text: str) -> Failure | None:
    if "ssert" not in text and "ASSERT" not in text and "Check failed" not in text:
        return None
    for pattern in _ASSERTIONS:
        if found := pattern.match(text):
            known = found.groupdict()
            places = [Place(known["file"], bare(known.get("function") or ""))] if known.get("file") else []
            return Failure(Kind.ASSERTION, "Assertion", found["message"], 0, places=places)
    return None


def _cuda(text: str) -> Failure | None:
    if "NCCL WARN" in text and (found := _NCCL.match(text)):
        return Failure(Kind.NCCL, "NCCL", found["message"], 0)
    if "atchdog" in text and (found := _WATCHDOG.match(text)):
        return Failure(Kind.NCCL, "Watchdog", found["message"], 0)
    if "CUDA" not in text and "uda" not in text:
        return None
    found = next((found for pattern in _CUDA if (found := pattern.match(text))), None)
    return Failure(Kind.CUDA, "CUDA error", found["message"], 0) if found else None


def _signalled(text: str) -> Failure | None:
    for pattern in _SIGNALLED:
        if found := pattern.match(text):
            known = found.groupdict()
            name = known.get("signal") or _SIGNALS.get(known.get("name") or "", "SIGSEGV")
            said = next((words for words, signal in _SIGNALS.items() if signal == name), "")
            return Failure(Kind.SIGNAL, name, said, 0)
    if found := _SHELL.match(text):
        return Failure(Kind.SIGNAL, _SIGNALS[found["name"]], found["name"], 0, line_only=True)
    return None


def _checked(text: str) -> Failure | None:
    """By a sanitizer, or by the C library's own checks of the heap."""
    if "Sanitizer" in text and (found := _SANITIZER.match(text)):
        return Failure(Kind.SIGNAL, found["type"], found["message"], 0)
    if "runtime error: " in text and (found := _UBSAN.match(text)):
        return Failure(
            Kind.SIGNAL, "UndefinedBehaviorSanitizer", found["message"], 0, places=[Place(found["file"], "")]
        )
    if text.startswith("====") and (found := _MEMCHECK.match(text)):
        return Failure(Kind.CUDA, "compute-sanitizer", found["message"], 0)
    if found := _HEAP.match(text):
        return Failure(Kind.SIGNAL, "SIGABRT", found["message"], 0)
    return None
