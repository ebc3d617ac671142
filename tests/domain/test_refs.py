"""The forms of refs, read from text alone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.refs import Ago, Named, Pair, Pull, Release, Sha, Until, Useless, deadline, read

PIECES = st.sampled_from(
    ["https://", "github.com/", "a/b/", "commit/", "compare/", "pull/", "072d7e5", "f" * 40, "..", "...", "@{", "}"]
    + [
        "2 weeks ago",
        "2026-07-29",
        "20260729",
        "v1.2",
        ".dev",
        "+g",
        "==",
        ":",
        "PR #",
        "#",
        "12",
        "-",
        "~",
        " ",
        "%2e",
    ]
)
ANY = st.text(max_size=60) | st.lists(PIECES, max_size=7).map("".join)


@given(ANY)
def test_any_text_has_a_form(text: str) -> None:
    assert isinstance(read(text).form, Named | Sha | Release | Until | Pull | Pair | Useless)


@given(ANY)
def test_no_digits_are_named_that_are_not_in_the_text(text: str) -> None:
    form = read(text).form
    if isinstance(form, Sha):
        assert form.digits in text.lower()
    if isinstance(form, Pull):
        assert re.search(rf"0*{form.number}", text)


@given(st.integers(0, 9999), st.sampled_from(["second", "hour", "day", "week", "month", "year"]))
def test_time_ago_is_before_and_never_fails(count: int, unit: str) -> None:
    at = datetime(2026, 3, 31, 12, tzinfo=UTC)
    found = deadline(Until(Ago(count, unit)), at)
    assert found is None or found <= at


@pytest.mark.parametrize(
    ("ago", "found"),
    [
        (Ago(1, "month"), (2026, 2, 28)), (Ago(13, "month"), (2025, 2, 28)), (Ago(1, "year"), (2025, 3, 31)),
        (Ago(2, "week"), (2026, 3, 17)),
    ],
)  # fmt: skip
def test_months_and_years_are_those_of_the_calendar(ago: Ago, found: tuple[int, int, int]) -> None:
    assert deadline(Until(ago), datetime(2026, 3, 31, 12, tzinfo=UTC)) == datetime(*found, 12, tzinfo=UTC)


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.integers(0, 3_000_000_000))
def test_a_day_lasts_to_its_end_or_to_when_it_was_asked_for(day: date, seconds: int) -> None:
    at = datetime.fromtimestamp(seconds, UTC)
    found = deadline(Until(day), at)
    assert found is not None and found <= at
    assert found == at or (found.date() == day and (found + timedelta(seconds=1)).date() > day)
