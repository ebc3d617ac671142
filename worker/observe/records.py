"""From lines to records: who wrote it, at which level, and what is left without prefixes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from worker.observe.failures import Record

#: Of each line at most this much is read.
LONGEST = 4000
#: What a terminal shows as one line may hold many states of a progress bar; more of them are not read.
STATES = 400

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
#: What our own log puts before each line.
_OURS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
#: Processes' marks: (Name pid=1), [rank1]:, [1,0]<stderr>:, [host:123], name-1 |, 0: (srun -l), the journal's, a pod's.
_PROCESS = re.compile(
    r"\((?=[^()]{0,120}\bpid=\d)[^()]{1,200}\) ?"
    r"|\[\d{1,5},\d{1,5}\](?:<std(?:out|err)>)?: ?"
    r"|\[[A-Za-z_]{1,20}\d{1,4}\]: ?"
    r"|\[(?![^\]:]{0,80}\.(?:py|cc?|cpp|cu|rs|go|h):)[\w.-]{1,80}:\d{2,8}\] ?"
    r"|[\w.-]{1,60}-\d{1,3} {1,20}\| "
    r"|\d{1,4}: (?=\S| {2}\S)"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} [\w./-]{1,80}\[\d{1,8}\]: ?"
    r"|(?:stdout|stderr) [FP] "
)
_LEVEL = r"TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SEVERE"
_STAMP = (
    r"(?:\d{2,4}[-/]\d\d(?:[-/]\d{2,4})?[T\- ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"(?P<ranks>(?: [A-Z]{2,4}\d{1,4}){1,4})?"
)
_HEAD = re.compile(
    rf"(?:(?P<before>{_LEVEL})[ :]{{1,8}})?(?:\[{_STAMP}\]|{_STAMP.replace('<ranks>', '<ranks_>')}(?![\w\]]))"
    rf"(?: {{0,2}}[-|]? {{0,2}}(?:[\w.]{{1,80}} - )?\[?(?P<after>{_LEVEL})\b\]? {{0,8}}[-|:]?)?"
    r"(?P<source> ?\[?[\w./-]{1,80}:\d{1,6}\])? ?"
)
_GLOG = re.compile(r"\[?(?P<level>[EWIF])\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})? +(?:\d{1,8} )?[\w./-]{1,80}:\d{1,6}\] ?")
_TENSORRT = re.compile(
    r"(?:\[TRT-LLM\] ?|\[TensorRT-LLM\] ?|\[TRT\] ?)(?:\[RANK (?P<rank>\d{1,4})\] ?)?(?:\[(?P<level>[A-Z]{1,7})\] ?)?"
)
_NAMED = re.compile(rf"(?P<level>{_LEVEL}):[\w.]{{1,80}}:(?=\S)")
_WORDED = re.compile(r"(?P<level>WARNING|ERROR|CRITICAL|FATAL|INFO|DEBUG)(?=:)")
_LEVELS = {
    "E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL", "WARN": "WARNING", "SEVERE": "ERROR",
    "CRITICAL": "FATAL",
}  # fmt: skip
#: A bar that was not ended, with another process' line right after it.
_AFTER_BAR = re.compile(r"(?:it/s|s/it)\](?=[(\[])")


def plain(line: str) -> str:
    """Without colours and control characters."""
    if "\x1b" in line:
        line = _COLOURS.sub("", line)
    return line.replace("\0", "\N{REPLACEMENT CHARACTER}")


def records_of(line: str, number: int) -> Iterator[Record]:
    """More than one when a progress bar wrote over itself, since another process may have written in between."""
    line = line.rstrip("\r\n")
    if "\r" not in line:
        yield _record(line, number)
        return
    for state in line.split("\r")[-STATES:]:
        if state:
            yield _record(state, number)


def _record(line: str, number: int) -> Record:
    text = plain(line[: 2 * LONGEST])
    if found := _OURS.match(text):
        text = text[found.end() :]
    if ("it/s]" in text or "s/it]" in text) and (bar := _AFTER_BAR.search(text)):
        text = text[bar.end() :]
    return _without_prefixes(text[:LONGEST], number)


def _without_prefixes(text: str, number: int) -> Record:
    process, level, opens, source = "", "", False, False
    for _ in range(6):
        if not text or text[0] in " \t":
            break
        if found := _PROCESS.match(text):
            process += found[0].strip()
        elif found := _HEAD.match(text):
            process += found["ranks"] or found["ranks_"] or ""
            level = found["before"] or found["after"] or level
            opens, source = True, bool(found["source"]) or source
        elif found := _GLOG.match(text) or _TENSORRT.match(text) or _NAMED.match(text):
            process += found.groupdict().get("rank") or ""
            level, opens = found["level"] or level, True
            source = source or found.re is not _NAMED
        else:
            break
        text = text[found.end() :]
    if not level and (found := _WORDED.match(text)):
        level = found["level"]
    return Record(number, process, _LEVELS.get(level, level), text, opens, source)
