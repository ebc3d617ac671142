"""The form of a message in which two runs of the same failure are equal."""

from __future__ import annotations

import re
from collections.abc import Callable

from worker.observe.records import plain

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": "'", "\u201d": "'", '"': "'", "`": "'"})
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")

_UUID = re.compile(r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])")
_HOST = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}|localhost|\[::[\da-f:.]{0,40}\])(?::\d{1,5})?(?![\w.]*\w)"
    r"|(?<=://)[A-Za-z0-9.-]{1,120}:\d{1,5}(?!\w)"
)
_ADDRESS = re.compile(r"(?<!\w)0[xX][0-9a-fA-F]+(?!\w)")
#: A hash: letters and digits mixed, nothing else.
_HEX = re.compile(r"(?<![\w-])(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{12,64}(?![\w-])")
_TIME = re.compile(
    r"(?<![\w.:])(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)[T\- ])?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?(?![\w:])"
    r"|(?<![\w.:-])\d{4}[-/]\d\d[-/]\d\d(?![\w:-])|(?<![\w.:])\d\d:\d\d(?:<(?:\d\d:\d\d|\?))?(?![\w:])"
)
_DURATION = re.compile(
    r"(?<![\w.])-?\d[\d,]{0,40}(?:\.\d{1,40})? ?"
    r"(?:ns|us|\u00b5s|ms|milliseconds?|microseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![\w/])"
)
_SIZE = re.compile(r"(?<![\w.])\d[\d,]{0,40}(?:\.\d{1,40})? ?(?:[KMGT]i?B|[Bb]ytes?|B)(?!\w)")
#: A folder for temporary files, and all below it but a package's own path.
_TEMPORARY = re.compile(
    r"(?<![\w./])(?:/private)?(?:/var)?/(?:tmp|dev/shm)(?:/[^\s'<>:,;()\[\]{}|]*)?|(?<![\w/])tmp[a-z0-9_]{8}(?!\w)"
)
_PATH = re.compile(r"(?<![\w./<>~-])(?:[A-Za-z]:\\|~?/(?!/))[^\s'<>:,;()\[\]{}|]+")
_LINE = re.compile(
    r"(?<=\.)(?P<ext>py|pyx|cc|cpp|cxx|cu|cuh|c|h|hpp|rs|go|js|ts|mjs|java|kt|scala)(?::\d+(?::\d+)?|\(\d+\))(?!\w)"
)
_NAMED = re.compile(
    r"\b(?P<name>(?:VllmWorker|WorkerProc|Worker|EngineCore|Engine|Thread|Process|ForkProcess"
    r"|SpawnProcess|rank|TP|PP|DP|EP|GPU"
    r"|gpu|core|worker|node|device|stage|thread|proc|process)(?:[_-]?(?:TP|DP|PP|EP))*[_-]?)\d+\b"
)
#: Numbers that mean something stay: what stands before, or behind, says so.
_KEPT = (
    r"(?:[Ee]xit(?:ed)?(?: with)?(?: (?:status|code))?|exit_?code|return_?code|[Rr]eturned"
    r"|[Ss]tatus(?:[ _]code)?|[Ss]ignal"
    r"|[Ee]rrno|[Ee]rror(?: [Cc]ode)?|[Cc]ode|HTTP(?:/\d(?:\.\d)?)?|capability|driver|opset|arch)"
    r"(?:[ =]{1,3}|: {0,2}(?<!rror: )(?<!rror:)| ?\()-?\d{1,6}(?:\.\d)?(?![\w.,]*\d)"
    r"|(?<![\w.])[1-5]\d\d(?= (?:Client|Server) Error| Internal| Not Found| Forbidden| Unauthorized"
    r"| Too Many| Bad| Service)"
)
_NUMBER = (
    r"(?<!\w)[-+]?(?!(?<=[A-Za-z]-)\d{1,2}(?!\d))\d+(?:[,_]\d+)*(?:\.\d+)*(?:[eE][-+]?\d+)?(?:%|(?!\w))"
    r"|(?<!\w)\d+(?:\.\d+)+\w*(?:[+.-]\w+)*|(?<!\w)\d+(?:x\d+)+(?!\w)"
)
_NUMBERS = re.compile(rf"(?P<kept>{_KEPT})|(?:{_NUMBER})")
_LISTS = re.compile(r"<n>(?:(?:, ?|x| )<n>){1,400}")
_BAR = re.compile(r"\|[ #\u2580-\u259f]*\|")

_PACKAGES = ("/site-packages/", "/dist-packages/")


def normal(message: str, project: tuple[str, ...] = ()) -> str:
    """Idempotent. `project`: names of folders from which on a path is kept."""
    text = _CONTROLS.sub(" ", plain(message)).strip().translate(_QUOTES)
    for _ in range(4):
        again = _once(text, project)
        if again == text:
            break
        text = again
    return text


def _once(text: str, project: tuple[str, ...]) -> str:
    steps: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
        (_UUID, "<uuid>"),
        (_LINE, r"\g<ext>"),
        (_TEMPORARY, lambda found: _kept_of(found[0], project) or "<tmp>"),
        (_HOST, "<host>"),
        (_PATH, lambda found: _kept_of(found[0], project) or _last(found[0])),
        (_ADDRESS, "<addr>"),
        (_HEX, "<hex>"),
        (_TIME, "<time>"),
        (_SIZE, "<size>"),
        (_DURATION, "<time>"),
        (_NAMED, r"\g<name><n>"),
        (_NUMBERS, lambda found: found["kept"] or "<n>"),
        (_LISTS, "<n>"),
        (_BAR, "<bar>"),
    )
    for pattern, form in steps:
        text = pattern.sub(form, text)
    return " ".join(text.split())


def _kept_of(path: str, project: tuple[str, ...]) -> str:
    """From the package on, whatever holds the packages."""
    path = path.replace("\\", "/")
    for folder in _PACKAGES:
        if folder in path:
            return path.rpartition(folder)[2]
    parts = path.split("/")
    places = [place for place, part in enumerate(parts[:-1]) if part in project]
    return "/".join(parts[places[-1] :]) if places else ""


def _last(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or "/"
