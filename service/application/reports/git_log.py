"""A bisection in the words of `git bisect log`: `git bisect replay` takes it, and names the same commit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.application.by_hand import is_end, standing
from service.application.reports.findings import Findings
from service.application.wording import CONTRADICTION
from service.domain.bisection import Commit
from service.domain.evidence import Verdict
from service.search.graph import Range

_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def git_log(found: Findings, range_: Range | None) -> str:
    """`range_`: None before the commits are looked up.

    Git takes one verdict for a commit, each at its word, of bad commits the last, and wants every good one below that:
    what is not so is a comment, and where there is an answer, it and its parents come last.
    """
    return "\n".join(_lines(found, range_)) + "\n"


def _lines(found: Findings, range_: Range | None) -> Iterator[str]:
    yield _comment(found.report.headline)
    if range_ is None:
        return
    bisection, first = found.bisection, found.first_bad
    goods = bisection.good_shas if first is None or range_.is_line else ()
    flags = ("--first-parent",) if found.request.first_parent else ()
    yield " ".join(("git bisect start", *flags, bisection.bad_sha or "", *goods))
    yield _comment(f"bad: {_named(found, bisection.bad_sha or '')}")
    yield from (_comment(f"good: {_named(found, sha)}") for sha in bisection.good_shas)
    yield from _told(found, range_)
    if first is not None:
        yield from _answer(found, first)
    yield from (
        _comment(f"possible first bad commit: {_named(found, c.sha)}") for c in found.report.answer if not first
    )


def _told(found: Findings, range_: Range) -> Iterator[str]:
    silent = _silent(found, range_)
    for sha in _order(found):
        told = found.told(sha)
        yield _comment(f"{' and '.join(sorted(told))}: {_named(found, sha)}")
        if len(told) == 1 and sha not in silent:
            yield f"git bisect {next(iter(told))} {sha}"


def _silent(found: Findings, range_: Range) -> frozenset[str]:
    """Of which git is not told: all, where the runs of all commits together gave the answer; those that contradict each
    other; and good ones beside the line of the answer."""
    first, answer = found.first_bad, found.bisection.answer
    if found.request.flaky or found.request.metric is not None:
        return frozenset(range_.shas)
    if first is None:
        clash = answer is not None and answer.why.startswith(CONTRADICTION)
        return frozenset(answer.shas) if answer is not None and clash else frozenset()
    index = range_.find(first.sha)
    below = range_.ancestors(index) if index is not None else ()
    beside = (sha for sha, is_below in zip(range_.shas, below, strict=False) if not is_below)
    # Of the answer and its parents git is told at the end.
    return frozenset((first.sha, *first.parents, *(sha for sha in beside if found.told(sha) == {Verdict.GOOD})))


def _order(found: Findings) -> list[str]:
    """What was told of but for the ends. Skips come last, and of bad commits the one with most of them above it."""
    shas = dict.fromkeys((*(probe.sha for probe in found.over), *standing(found.bisection)))
    named = {commit.sha for commit in found.report.answer}
    places = {Verdict.SKIP: 2, Verdict.BAD: 1}

    def place(sha: str) -> tuple[int, bool]:
        return max((places.get(verdict, 0) for verdict in found.told(sha)), default=0), sha in named

    return sorted((sha for sha in shas if found.told(sha) and not is_end(found.bisection, sha)), key=place)


def _answer(found: Findings, first: Commit) -> Iterator[str]:
    yield f"git bisect bad {first.sha}"
    parents = first.parents[:1] if found.request.first_parent else first.parents
    yield from (f"git bisect good {parent}" for parent in parents)
    yield _comment(f"first bad commit: {_named(found, first.sha)}")


def _named(found: Findings, sha: str) -> str:
    return f"[{sha}] {found.subject(sha)}"


def _comment(said: str) -> str:
    return f"# {_LINE_ENDS.sub(' ', said).strip()}"
