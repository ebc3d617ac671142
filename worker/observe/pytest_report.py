"""What pytest prints about tests that failed: its sections, and the short summary where there are none."""

from __future__ import annotations

import re

from worker.observe.failures import Failure, Failures, Kind, Place, Record, add_place

_SECTION = re.compile(r"={3,} (?P<name>FAILURES|ERRORS|[a-z][\w ,.:;-]{1,200}|.{1,120} in \d.{0,40}) ={3,}$")
_TEST = re.compile(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.{0,300}?) _{3,}$")
_CAPTURED = re.compile(r"-{3,} (?:Captured|live) .{1,60} -{3,}$")
_SAID = re.compile(r"E {2,8}(?P<text>\S.*)$")
_TYPED = re.compile(
    r"(?P<type>[A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Failed|Timeout|Empty"
    r"|\w\.[A-Z]\w{0,80}))(?:: ?(?P<message>.*))?$"
)
_PLACE = re.compile(
    r"(?P<file>[^\s:]{1,300}\.pyx?):\d+: ?(?:in (?P<function>\S.{0,200})|(?P<type>[A-Za-z_][\w.]{0,120}))?$"
)
_DEF = re.compile(r"[> ] {0,12}(?:async )?def (?P<name>\w{1,120})\(")
_SUMMARY = re.compile(
    r"(?:FAILED|ERROR) (?P<file>[^\s:]{1,300}\.py)(?:::"
    r"(?P<test>[^\s\[]{1,300})(?:\[.{0,300}?\])?)?(?: - (?P<text>.*))?$"
)
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
PATIENCE = 20_000


class PytestReader:
    """Of one process."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._inside = False
        self._close()

    def takes(self, text: str) -> bool:
        return False

    def feed(self, record: Record) -> bool:
        text = record.text
        if found := _SECTION.match(text):
            self._inside = found["name"] in ("FAILURES", "ERRORS")
            self._close()
            return self._listen(record)
        if text.startswith(("FAILED ", "ERROR ")) and (found := _SUMMARY.match(text)):
            return self._summary(record, found)
        if not self._inside:
            return False
        self._listen(record)
        if found := _TEST.match(text):
            self._close()
            self._test = found["name"].partition("[")[0].rpartition(".")[2]
            return True
        if _CAPTURED.match(text):
            self._quiet = True
            return True
        return not self._quiet and self._reported(record)

    def _listen(self, record: Record) -> bool:
        self._failures.listen(record.number, PATIENCE if self._inside else 50)
        return True

    def _close(self) -> None:
        self._quiet = False
        self._test = self._function = ""
        self._places: list[Place] = []
        self._current: Failure | None = None
        self._assumed = self._chained = False

    def _reported(self, record: Record) -> bool:
        text = record.text
        if any(words in text for words in _CHAINED):
            self._chained = True
        if found := _DEF.match(text):
            self._function = found["name"]
        if found := _SAID.match(text):
            self._said(record, found["text"])
        elif (found := _PLACE.match(text)) and not self._chained:
            self._placed(found)
        return text[:1] in (" ", ">", "E", "") or bool(found)

    def _said(self, record: Record, text: str) -> None:
        if self._current is not None:
            if not self._current.message and not self._chained:
                self._current.message = text.strip()
            return
        found = _TYPED.match(text)
        self._assumed = found is None
        name = found["type"].rpartition(".")[2] if found else "AssertionError"
        message = (found["message"] or "") if found else text
        self._current = self._failures.add(
            Failure(Kind.PYTEST, name, message, record.number, record.process, self._places, self._failures.new_chain())
        )

    def _placed(self, found: re.Match[str]) -> None:
        function = found["function"] or self._function or (self._test if not self._places else "")
        add_place(self._places, Place(found["file"], function.strip()))
        if found["type"] and self._current is not None and self._assumed:
            self._current.type = found["type"].rpartition(".")[2]
        self._function = ""

    def _summary(self, record: Record, found: re.Match[str]) -> bool:
        text = found["text"] or ""
        typed = _TYPED.match(text)
        name = (
            typed["type"].rpartition(".")[2] if typed else "AssertionError" if text.startswith("assert") else "FAILED"
        )
        message = (typed["message"] or "") if typed else text
        places = [Place(found["file"], (found["test"] or "").rpartition("::")[2])]
        self._failures.add(
            Failure(Kind.PYTEST, name, message or (found["test"] or ""), record.number, record.process, places)
        )
        return True
