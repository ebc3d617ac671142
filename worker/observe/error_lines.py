"""Failures that one line tells: a compiler's, a linker's, CMake's, and whatever calls itself an error."""

from __future__ import annotations

import re

from worker.observe.failures import Failure, Failures, Kind, Place, Record

_FILE = r"(?P<file>(?:[A-Za-z]:)?[^\s:()\"']{1,300})"
_COMPILERS = (
    re.compile(rf"{_FILE}:\d+(?::\d+)?: (?:fatal )?error(?: (?P<code>[A-Z]{{1,3}}\d{{3,5}}))?: (?P<message>.*)$"),
    re.compile(
        rf"{_FILE}\(\d+(?:,\d+)?\): (?:fatal |catastrophic )?error(?: #?"
        rf"(?P<code>[A-Z]{{0,3}}\d{{1,5}}(?:-\w)?))?: (?P<message>.*)$"
    ),
    re.compile(rf"\[ERROR\] {_FILE}:\[\d+,\d+\] (?:error: )?(?P<message>.*)$"),
    re.compile(
        r"(?P<file>(?:\./)?[\w./-]{1,300}\.go):\d+:\d+: (?P<message>(?:undefined|cannot|syntax error"
        r"|missing|too many|not enough|declared|invalid).*)$"
    ),
    re.compile(r"(?:.{1,300}: )?(?P<message>undefined reference to [`'].*)$"),
    re.compile(
        r"(?:\S{1,200}/)?ld(?:\.\w+)?: (?:error: )?(?P<message>(?:cannot find|undefined symbol"
        r"|unable to find library|symbol\(s\) not found).*)$"
    ),
    re.compile(r"(?:ptxas|nvcc|nvlink) (?:fatal|error) {0,4}: (?P<message>.*)$"),
)
_IN_FUNCTION = re.compile(
    r"[^\s:]{1,300}: In (?:member |static |lambda )*(?:function|constructor"
    r"|instantiation of) [`'\u2018](?P<name>[^'\u2019]{1,400})"
)
_RUSTC = re.compile(r"error(?:\[(?P<code>E\d{4})\])?: (?P<message>\S.*)$")
_RUSTC_PLACE = re.compile(r"\s{1,8}--> (?P<file>[^\s:]{1,300}):\d+:\d+$")
_CMAKE = re.compile(r"CMake Error(?: at (?P<file>[^\s:]{1,300}):\d+ \((?P<function>\w{1,80})\))?:(?P<message>.*)$")
_WORDS = re.compile(
    r"(?:[\w./ -]{1,80}: )?(?P<type>error|Error|ERROR|fatal|Fatal|FATAL|fatal error|critical|panic): {1,8}"
    r"(?=.{0,200}[A-Za-z]{2})(?P<message>\S.*)$"
)
_TYPED = re.compile(
    r"(?:.{0,200}?[:\s])?(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception)): (?P<message>\S.*)$"
)
_TESTS = (
    re.compile(r"\s{0,8}--- FAIL: (?P<message>\S+)"),
    re.compile(r"\s{0,4}\u25cf (?P<message>.{1,200} \u203a .*)$"),
    re.compile(r"\s{0,4}\d+/\d+ Test +#\d+: (?P<message>\S+) \.+\**(?:Failed|Subprocess aborted|Exception)"),
    re.compile(r"\[  FAILED  \] (?P<message>[\w./]+)(?: \(\d+ ms\))?$"),
)
_TOOLS = (
    re.compile(r"make(?:\[\d+\])?: (?P<message>\*\*\* .*)$"),
    re.compile(r"curl: (?P<message>\(\d+\) .*)$"),
    re.compile(
        r"\S{1,200}: line \d+: "
        r"(?P<message>.{1,400}: (?:command not found|No such file or directory|Permission denied))$"
    ),
    re.compile(r".{0,80}\b(?P<message>(?:Memory cgroup out|Out) of memory: Killed process .*)$"),
    re.compile(r"(?:docker: )?Error response from daemon: (?P<message>.*)$"),
)
NEAR = 8
QUIET = frozenset({"WARNING", "INFO", "DEBUG", "TRACE", "NOTICE"})


class LineReader:
    """Of one process."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._function = ""
        self._rustc: Failure | None = None
        self._cmake: Failure | None = None

    def takes(self, text: str) -> bool:
        return False

    def feed(self, record: Record) -> bool:
        text = record.text
        if self._goes_on(record):
            return True
        if found := _IN_FUNCTION.match(text):
            self._function = found["name"]
            self._failures.listen(record.number, NEAR)
            return False
        return self._compiler(record) or self._worded(record)

    def _goes_on(self, record: Record) -> bool:
        if self._rustc is not None:
            failure, self._rustc = self._rustc, None
            if found := _RUSTC_PLACE.match(record.text):
                failure.kind, failure.line_only = Kind.COMPILER, False
                failure.places.append(Place(found["file"], ""))
                return True
        if self._cmake is not None and record.text.strip():
            failure, self._cmake = self._cmake, None
            failure.message = f"{failure.message} {record.text.strip()}".strip()
            return True
        return False

    def _compiler(self, record: Record) -> bool:
        text = record.text
        found = next((found for pattern in _COMPILERS if (found := pattern.match(text))), None)
        if found is not None:
            known = found.groupdict()
            places = (
                [Place(known["file"], self._function.split("(")[0].rpartition(" ")[2])] if known.get("file") else []
            )
            self._add(record, Kind.COMPILER, known.get("code") or "error", found["message"], places)
            return True
        if found := _CMAKE.match(text):
            places = [Place(found["file"], found["function"])] if found["file"] else []
            self._cmake = self._add(record, Kind.COMPILER, "CMake Error", found["message"].strip(), places)
            self._failures.listen(record.number, NEAR)
            return True
        if record.level not in QUIET and (found := _RUSTC.match(text)):
            self._rustc = self._add(record, Kind.OTHER, found["code"] or "error", found["message"], [])
            self._rustc.line_only = True
            self._failures.listen(record.number, 2)
            return True
        return False

    def _worded(self, record: Record) -> bool:
        for name, patterns in (("failed test", _TESTS), ("error", _TOOLS)):
            if found := next((found for pattern in patterns if (found := pattern.match(record.text))), None):
                self._add(record, Kind.OTHER, name, found["message"], []).line_only = True
                return True
        if record.level in QUIET:
            return False
        if found := _TYPED.match(record.text):
            self._add(record, Kind.PYTHON, found["type"].rpartition(".")[2], found["message"], []).line_only = True
        elif found := _WORDS.match(record.text):
            self._add(record, Kind.OTHER, "error", found["message"], []).line_only = True
        elif record.level in ("ERROR", "FATAL") and record.text.strip():
            self._add(record, Kind.OTHER, "error", record.text.strip(), []).line_only = True
        else:
            return False
        return True

    def _add(self, record: Record, kind: Kind, name: str, message: str, places: list[Place]) -> Failure:
        return self._failures.add(Failure(kind, name, message, record.number, record.process, places))
