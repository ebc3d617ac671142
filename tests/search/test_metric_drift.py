"""A bench that measures otherwise than before."""

from __future__ import annotations

import numpy as np
import pytest

from service.search.metric import Reading, Sample, Steady, steady


def readings(seed: int, drift, turns: int = 60, bench: str = "node-a", answered: bool = True) -> list[Reading]:
    """Eight of each end, then commits, an end after every sixth, and again when that was off."""
    random = np.random.default_rng(seed)
    found: list[Reading] = []

    def measure(end: str, sha: str) -> None:
        level = 106.0 if end == "bad" else 100.0
        found.append(Reading(Sample(sha, level * (1 + drift(len(found))) + random.normal(), bench), end))

    for turn in range(16):
        measure(*(("bad", "b") if turn % 4 in (0, 3) else ("good", "a")))
    for turn in range(turns):
        again = steady(found).again.get(bench)
        if again and answered:
            measure("bad" if again == "b" else "good", again)
        elif turn % 6 == 5:
            measure(*(("bad", "b") if turn % 12 == 5 else ("good", "a")))
        else:
            measure("", f"c{len(found)}")
    return found


def test_a_bench_that_stays_as_it_is_keeps_every_reading() -> None:
    changed = 0
    for seed in range(15):
        found = readings(seed, lambda turn: 0.0)
        said = steady(found)
        changed += said.epoch_of("node-a") != "node-a"
        if not said.dropped:
            assert said.kept == tuple(one.sample for one in found)
    assert changed <= 1


def test_one_reading_that_is_off_asks_for_the_same_end_again_and_alone_changes_nothing() -> None:
    found = readings(1, lambda turn: 0.0, turns=5)
    off = [*found, Reading(Sample("a", 120.0, "node-a"), "good")]
    assert steady(off).again == {"node-a": "a"}
    assert steady(off).dropped == {}
    said = steady([*off, Reading(Sample("a", 100.2, "node-a"), "good")])
    assert said.again == {}
    assert said.epoch_of("node-a") == "node-a"


def test_a_bench_that_jumped_goes_on_under_another_name_without_what_lies_between() -> None:
    found = readings(2, lambda turn: 0.08 if turn > 30 else 0.0)
    said = steady(found)
    assert said.epoch_of("node-a") == "node-a#2"
    first = next(at for at, one in enumerate(found) if at > 30 and one.end)
    last = max(at for at, one in enumerate(found) if at <= 30 and one.end)
    assert set(said.dropped) == {at for at in range(last + 1, first) if not found[at].end}
    assert "the bench node-a changed meanwhile" in next(iter(said.dropped.values()))
    kept = [at for at in range(len(found)) if at not in said.dropped]
    assert all((sample.bench == "node-a#2") == (at >= first) for at, sample in zip(kept, said.kept, strict=True))


def test_a_bench_that_slides_slowly_is_seen_too() -> None:
    seen = sum(
        steady(readings(seed, lambda turn: turn * 0.0012, 90)).epoch_of("node-a") != "node-a" for seed in range(8)
    )
    assert seen >= 6


def test_one_bench_that_drifts_leaves_the_others_alone() -> None:
    here, there = readings(2, lambda turn: 0.08 if turn > 30 else 0.0), readings(3, lambda turn: 0.0, bench="node-b")
    said = steady([one for both in zip(here, there, strict=False) for one in both])
    assert said.epoch_of("node-a") == "node-a#2"
    assert said.epoch_of("node-b") == "node-b"


def test_a_number_that_never_varied_and_does_so_now_has_drifted_when_it_does_twice() -> None:
    ends = [Reading(Sample(sha, value, "n"), end) for sha, value, end in (("a", 1.0, "good"), ("b", 2.0, "bad")) * 3]
    off = Reading(Sample("a", 1.5, "n"), "good")
    assert steady([*ends, off]).again == {"n": "a"}
    assert steady([*ends, off, off]).epoch_of("n") == "n#2"


def test_nothing_measured_is_steady_and_a_number_that_is_none_is_refused() -> None:
    assert steady([]) == Steady(())
    with pytest.raises(ValueError, match="no finite number"):
        steady([Reading(Sample("a", float("nan")), "good")])
