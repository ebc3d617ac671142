"""The two ends as they are written, from a submission to the commits that are looked between."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from service.application.ends import check_package, ends
from service.application.submission import Submission
from service.application.wording import short
from service.domain.errors import BadRequest
from service.domain.lifecycle import BisectionState
from service.domain.recipe import Recipe
from tests.application.conftest import World
from tests.repositories import git

PLAIN = Submission(good=("v1",), bad="main")


@pytest.mark.parametrize(
    ("written", "good", "bad"),
    [
        ("v1.0.0..main", "v1.0.0", "main"), ("072d7e5...755ed7b", "072d7e5", "755ed7b"),
        ("https://example.org/team/engine/compare/v1.0.0...072d7e5", "v1.0.0", "072d7e5"),
    ],
)  # fmt: skip
def test_a_range_is_both_ends(written: str, good: str, bad: str) -> None:
    found = ends(replace(PLAIN, good=(written,), bad=written))
    assert (found.good, found.bad) == ((good,), bad)
    assert found.notes == (f"{written} is both ends: good {good}, bad {bad}.",)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"good": ("a..b",)}, "good"), ({"bad": "a..b"}, "bad"), ({"good": ("v1", "a..b"), "bad": "a..b"}, "good")],
)
def test_a_range_beside_another_end_is_refused(change: dict, field: str) -> None:
    with pytest.raises(BadRequest, match="is both ends, and another end") as caught:
        ends(replace(PLAIN, **change))
    assert (caught.value.field, caught.value.value) == (field, "a..b")


def test_an_address_tells_the_repository_where_all_are_of_the_same() -> None:
    address = "https://example.org/team/engine"
    both = replace(PLAIN, good=(f"{address}/commit/{'a' * 40}",), bad=f"{address}/pull/7")
    assert ends(both).site == address
    assert ends(replace(both, bad="main")).site == address
    assert ends(replace(both, bad="https://example.org/team/fork/pull/7")).site is None
    assert ends(PLAIN).site is None


@pytest.mark.parametrize("ref", ["torch==2.8.0", "torch 2.8.0.dev20260729", "Torch 2.8.0"])
def test_a_version_of_another_package_is_refused(ref: str) -> None:
    engine = Recipe("engine", package="engine")
    for found, field in ((ends(replace(PLAIN, bad=ref)), "bad"), (ends(replace(PLAIN, good=(ref,))), "good")):
        with pytest.raises(BadRequest, match="commits of engine are looked at") as caught:
            check_package(found, engine)
        assert (caught.value.field, caught.value.value) == (field, ref)
        check_package(found, Recipe("any"))
        check_package(found, Recipe("t", package="torch"))


def test_what_an_end_was_taken_for_stands_in_the_notes(world: World) -> None:
    git(world.repository, "tag", "v1.2.0", world.shas[3])
    made = world.submit(good=("1.2.0",), bad=f"https://example.org/team/x/commit/{world.shas[9]}")
    world.flow.prepare(made.id)
    found = world.flow.bisection(made.id)
    assert (found.good_shas, found.bad_sha) == ((world.shas[3],), world.shas[9])
    day = "2023-11-14"
    assert f"good 1.2.0 is taken for the tag v1.2.0: {short(world.shas[3])} of {day}, 'commit 3'." in found.notes
    assert any("the commit that an address names" in note and short(world.shas[9]) in note for note in found.notes)


def test_times_are_counted_from_when_it_was_submitted_however_late_it_is_prepared(world: World) -> None:
    first = datetime.fromtimestamp(1_700_000_000, UTC)
    world.clock.time = first.replace(hour=23, minute=30, second=0)
    made = world.submit(good=(world.shas[0],), bad=f"{first:%Y-%m-%d}")
    ago = world.submit(good=(world.shas[0],), bad="main@{1 hour ago}")
    world.clock.pass_(30 * 86_400)
    for id in (made.id, ago.id):
        world.flow.prepare(id)
    assert world.flow.bisection(made.id).bad_sha == world.shas[19]
    assert world.flow.bisection(ago.id).bad_sha == world.shas[16]


def test_a_ref_that_is_ambiguous_ends_the_bisection_with_the_candidates(world: World) -> None:
    git(world.repository, "tag", "a-v1.4.0", world.shas[3])
    git(world.repository, "tag", "b-v1.4.0", world.shas[5])
    made = world.submit(good=("1.4.0",))
    world.flow.prepare(made.id)
    found = world.flow.bisection(made.id)
    assert found.state is BisectionState.REFUSED
    assert found.problem is not None and found.problem.slug == "ambiguous-ref"
    assert "a-v1.4.0" in found.problem.detail and "b-v1.4.0" in found.problem.detail
