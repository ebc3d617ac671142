"""Texts of issues, read for what a request needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from service.adapters import failures, servers
from service.application.parse import Certainty, Draft, Known, parse
from service.domain import refs

REPORTS = yaml.safe_load((Path(__file__).parent / "reports.yaml").read_text(encoding="utf-8"))
SERVERS = servers.load()
KNOWN = Known({"vllm": "vllm"})


def read(text: str, known: Known = KNOWN) -> Draft:
    return parse(text, known, SERVERS, failures.said)


@pytest.mark.parametrize("report", REPORTS, ids=[report["name"] for report in REPORTS])
def test_a_report_is_read_as_a_person_would(report: dict[str, Any]) -> None:
    draft = read(report["text"])
    found = dict(draft.request)
    found["gpus"] = found.get("resources", {}).get("gpus")
    assert {key: found.get(key) for key in report["wanted"]} == report["wanted"]
    _holds(draft, report["text"])


def test_what_may_be_meant_is_told_where_it_is_not_plain() -> None:
    one, other = "a1" * 20, "b2" * 20
    draft = read(f"Either {one} crashes or {other} crashes.")
    missing = {each.name: each for each in draft.missing}
    assert [each.value for each in missing["bad"].candidates] == [one, other]
    assert missing["good"].candidates == () and missing["script"].question


def test_a_named_project_decides_whose_versions_are_meant() -> None:
    text = "With torch 2.7.0 it works, with torch 2.8.0 it fails."
    assert "good" not in read(text).request
    assert dict(read(text, Known({"torch": "torch"}, "torch")).request) == {
        "good": "2.7.0", "bad": "2.8.0", "project": "torch",
    }  # fmt: skip


def test_words_of_doubt_make_it_less_certain() -> None:
    sure, unsure = read("It fails in 0.10.0."), read("It maybe fails in 0.10.0.")
    assert [each.certainty for each in (*sure.fields, *unsure.fields)] == [Certainty.HIGH, Certainty.LOW]


def test_of_a_text_that_is_too_long_the_rest_is_told_to_be_unread() -> None:
    draft = read("It works in 0.9.2.\n" + "x" * 70_000 + "\nIt fails in 0.10.0.\n")
    assert draft.request == {"good": "0.9.2"}
    assert any("were not read" in note for note in draft.notes)


PIECES = st.sampled_from(
    ["works in ", "fails in ", "since ", "v0.9.2", "0.10.0 ", "072d7e53", "f0" * 20, "..", "PR #", "123", "\n", "\n\n"]
    + [
        "```",
        "```bash\n",
        "    ",
        "> ",
        "- ",
        "| ",
        "|---|\n",
        "`",
        "vllm serve x",
        "Traceback (most recent call last):\n",
    ]
    + [
        "https://github.com/a/b/commit/",
        "ValueError: x",
        "<details>\n",
        "</details>\n",
        "# ",
        "\r\n",
        "\r",
        "\0",
        "\x0b",
    ]
    + ["\u2028", "\u274c", "vllm==", "--tensor-parallel-size 4", "git clone https://github.com/a/vllm", "\ud800", "ä"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=300))
def test_any_text_is_read_and_nothing_in_the_answer_is_invented(text: str) -> None:
    _holds(read(text), text)


def _holds(draft: Draft, text: str) -> None:
    for each in draft.fields:
        assert each.origins
        for origin in each.origins:
            assert text[origin.start : origin.end] == origin.quoted
    for name in ("good", "bad"):
        value = draft.request.get(name)
        if value is None:
            continue
        assert str(value) in text
        form = refs.read(str(value)).form
        digits = form.digits if isinstance(form, refs.Sha) else ""
        assert digits in text.lower()
    for each in draft.missing:
        for candidate in each.candidates:
            assert candidate.value in text
    named = re.findall(r"\b[0-9a-f]{40}\b", repr(dict(draft.request)))
    assert all(sha in text for sha in named)
