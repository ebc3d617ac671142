"""What was found, as `git bisect log` would print it: `git bisect replay` takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from service.domain.evidence import Verdict
from service.local.asked import Judged, Terms
from service.local.history import Title
from service.search import Range


def replay(
    range_: Range,
    judged: Sequence[Judged],
    titles: Mapping[str, Title],
    terms: Terms,
    *,
    first_parent: bool = False,
    found: str | None = None,
) -> str:
    return "".join(f"{line}\n" for line in _lines(range_, judged, titles, terms, first_parent, found))


def _lines(
    range_: Range,
    judged: Sequence[Judged],
    titles: Mapping[str, Title],
    terms: Terms,
    first_parent: bool,
    found: str | None,
) -> Iterator[str]:
    # git takes good for the older one in any case, so that a fix needs words of its own.
    old, new = (terms.old, terms.new) if terms.new == "bad" else ("broken", "fixed")
    named = "" if terms.new == "bad" else f" '--term-old={old}' '--term-new={new}'"
    line = " '--first-parent'" if first_parent else ""
    yield f"git bisect start{line}{named}"
    lowest = range_.shas[-1]
    for sha, verdict in _verdicts(judged, terms):
        word = {Verdict.GOOD: old, Verdict.BAD: new, Verdict.SKIP: "skip"}[verdict]
        title = f"[{sha}] {titles[sha].subject if sha in titles else ''}".rstrip()
        index = range_.find(sha)
        if verdict is Verdict.BAD and index is not None and not range_.ancestors(range_.find(lowest) or 0)[index]:
            # git remembers the last one alone, and this one says less than the one before.
            yield f"# {word}, as was known by then: {title}"
            continue
        lowest = sha if verdict is Verdict.BAD else lowest
        yield f"# {word}: {title}"
        yield f"git bisect {word} {sha}"
    if found is not None:
        yield f"# {terms.answer}: [{found}] {titles[found].subject if found in titles else ''}".rstrip()


def _verdicts(judged: Sequence[Judged], terms: Terms) -> Iterator[tuple[str, Verdict]]:
    """Of each commit once: what most of its trials were, skips aside."""
    trials: dict[str, Counter[Verdict]] = {}
    for one in judged:
        trials.setdefault(one.seen.sha, Counter())[one.counts_as(terms)] += 1
    for sha, counted in trials.items():
        told = Counter({verdict: times for verdict, times in counted.items() if verdict is not Verdict.SKIP}) or counted
        yield sha, told.most_common(1)[0][0]
