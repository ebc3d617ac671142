"""What a failure says about where it comes from: files and functions of its traceback, words of what it printed, and
the options of the command that shows it. The search looks there first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from service.application.cases import Wanted
from service.domain.bisection import Reproduction, Request
from service.domain.evidence import Signature
from service.search.priors import Clues

#: So many names are taken from each text, the first ones.
MOST = 200
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w-]{2,})")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
_OWN = re.compile(r"\$\{?FIRSTBAD_\w+\}?")


def clues_of(request: Request, wanted: Wanted | None) -> Clues | None:
    """`wanted`: the failure looked for, None until the bad end was judged.

    None where nothing says what fails: then the options alone would point to whoever touched these features last. So
    for a number that got worse, too. None also for a flaky failure: the confidence in its answer must stand on runs
    alone, since clues may mislead, and then they save no runs (docs/search.md has the figures).
    """
    if wanted is None or request.metric is not None or request.flaky:
        return None
    signature, said = wanted.signature, request.reproduction.failure
    if signature is None and said is None:
        return None
    return Clues(*_frames(signature), words=_first([*_said(signature, said), *_named(request.reproduction)]))


def _frames(signature: Signature | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Files, those of frames that only lead there, and functions."""
    if signature is None:
        return (), (), ()
    files = _first(frame.file for frame in signature.frames)
    outer = _first(frame.file for frame in signature.outer if frame.file not in files)
    frames = (*signature.frames, *signature.outer)
    return files, outer, _first(frame.function for frame in frames if _NAME.fullmatch(frame.function.strip("_")))


def _said(signature: Signature | None, said: str | None) -> Iterator[str]:
    texts = [said or ""] if signature is None else [said or "", signature.type, signature.message, signature.said]
    for text in texts:
        yield from _NAME.findall(text)[:MOST]


def _named(reproduction: Reproduction) -> Iterator[str]:
    """Of the server's command every word, as it is what is under test; of scripts, which hold much else, options and
    names with underscores."""
    command = reproduction.serve.command if reproduction.serve else ""
    yield from _options(command)
    yield from _NAME.findall(_OWN.sub(" ", command))[:MOST]
    for script in (reproduction.check, reproduction.script):
        text = _OWN.sub(" ", script or "")
        yield from _options(text)
        yield from [name for name in _NAME.findall(text) if "_" in name.strip("_")][:MOST]


def _options(text: str) -> Iterator[str]:
    """As they are called in the code that reads them."""
    yield from (name.replace("-", "_") for name in _OPTION.findall(text)[:MOST])


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
