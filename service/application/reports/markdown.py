"""A report that can be pasted into an issue: nothing in it that a repository, a log or a person wrote can be anything
but text there, or call anybody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.application.reports.findings import Findings, facts, seconds, steps
from service.domain.bisection import Probe
from service.domain.duration import spoken

#: An issue holds 65,536 characters.
MOST_ROWS, LONGEST, LONGEST_CODE = 60, 300, 8000
_ROW = 160
#: Of what cannot be seen, and of what turns the writing round.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
#: Anywhere; of a word between colons a site makes a picture.
_MEANS = re.compile(r"([\\`*_\[\]|~$]|:(?=[\w+-]+:))")
#: Where a line begins: a list, a heading, a rule.
_BEGINS = re.compile(r"^(\d{0,9})([-+=#.)])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
#: Where a site makes a mention, a reference or a link of plain text: with nothing visible between, it makes none.
_CALLS = re.compile(r"(@|#|\bGH-|://|\bwww)(?=\S)", re.IGNORECASE)
_APART = "\u200b"


def text(written: str, most: int = LONGEST) -> str:
    """One line that reads as it was written and means nothing."""
    line = " ".join(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", written[: 4 * most].replace("\n", " ")).split())
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    harmless = _CALLS.sub(lambda found: f"{found[1]}{_APART}", line)
    escaped = _BEGINS.sub(r"\1\\\2", _MEANS.sub(r"\\\1", harmless))
    return re.sub("[&<>]", lambda found: _ENTITIES[found[0]], escaped)


def code(written: str) -> str:
    """A block whose fence is longer than any in it."""
    body = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", written.replace("\r\n", "\n")).strip("\n")
    body = body if len(body) <= LONGEST_CODE else f"{body[: LONGEST_CODE - 1]}…"
    fence = "`" * max(3, max((len(ticks) for ticks in re.findall("`+", body)), default=0) + 1)
    return f"{fence}\n{body}\n{fence}"


def markdown(found: Findings, repo: str) -> str:
    """`repo`: as it may be shown."""
    return "\n\n".join(part for part in _parts(found, repo) if part) + "\n"


def _parts(found: Findings, repo: str) -> Iterator[str]:
    report, first = found.report, found.first_bad
    yield f"## {text(report.headline)}"
    if first is not None:
        by = f"{text(first.author, 80)}, {first.committed_at:%Y-%m-%d}"
        yield f"First bad commit: {first.sha} {text(first.subject)} ({by})"
    yield "\n".join(f"- {name}: {text(said)}" for name, said in facts(found, repo))
    yield "\n\n".join(code(line) if "\n" in line else text(line, 1000) for line in report.explanation)
    if report.evidence:
        yield "### Evidence"
        yield _table(found, [proof.probe for proof in report.evidence])
    if pieces := list(steps(found)):
        yield "### How to reproduce"
        yield "\n\n".join(f"{text(name)}:\n\n{code(piece)}" for name, piece in pieces)
    if found.over:
        yield f"### All {len(found.over)} probes" if len(found.over) > 1 else "### The probe"
        yield _table(found, found.over)
    yield "A bisection by firstbad."


def _table(found: Findings, probes: Sequence[Probe]) -> str:
    rows = ["| # | commit | verdict | why | node | time |", "|--:|---|---|---|---|--:|"]
    rows += [_row(found, probe) for probe in probes[:MOST_ROWS]]
    more = len(probes) - MOST_ROWS
    return "\n".join(rows) + (f"\n\n… and {more} more" if more > 0 else "")


def _row(found: Findings, probe: Probe) -> str:
    took = seconds(probe)
    cells = (
        str(probe.number),
        f"{probe.sha[:10]} {text(found.subject(probe.sha), _ROW // 2)}".strip(),
        str(probe.verdict or ""),
        text(probe.reason, _ROW),
        text(probe.node or "", 60),
        spoken(took) if took is not None else "",
    )
    return f"| {' | '.join(cells)} |"
