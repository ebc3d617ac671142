"""What a probe cost in GPU seconds, whatever came of it. The cards are declared ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import Background, Bench, running
from tests.worker.conftest import pipeline
from worker.contract import Gpus, Reproduction, Sandbox
from worker.pipeline.meter import Meter
from worker.run.stop import CANCELLED, STOPPED, Stop

TWO = Gpus(count=2, model="fake-80gb")


@pytest.fixture
def gpu_bench(tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    needs("bwrap")
    made = pipeline(tmp_path, gpus="2xFake-80GB", gpu_dir=tmp_path, gpu_wait_s=0.0)
    yield Bench(made, *repository, Sandbox(kind="process"))
    for each in made.site.sandboxes.values():
        each.close()


def test_each_card_counts_for_as_long_as_it_was_held(gpu_bench: Bench) -> None:
    result = gpu_bench.probe("sleep 1", gpus=TWO)
    assert result.outcome is not None
    assert 2.0 <= result.gpu_used_s <= result.gpu_leased_s
    assert gpu_bench.probe("sleep 1", gpus=Gpus(count=1, model="fake-80gb")).gpu_used_s >= 1.0


def test_a_probe_without_cards_costs_none(gpu_bench: Bench) -> None:
    result = gpu_bench.probe("true")
    assert (result.gpu_leased_s, result.gpu_used_s) == (0.0, 0.0)


def test_a_control_counts_too(gpu_bench: Bench) -> None:
    result = gpu_bench.probe("sleep 1; exit 1", control=Reproduction(script="sleep 1"), gpus=TWO)
    assert result.outcome is not None and result.outcome.control is not None
    assert 4.0 <= result.gpu_used_s <= result.gpu_leased_s


def test_a_fault_costs_what_was_held_until_then(gpu_bench: Bench) -> None:
    marker = f"3600.{os.getpid()}11"
    under_way = Background(gpu_bench, gpu_bench.order(f"sleep {marker}", gpus=TWO))
    eventually(lambda: running(marker))
    begun = time.monotonic()
    time.sleep(0.5)
    held = time.monotonic() - begun
    under_way.stop.press(STOPPED)
    result = under_way.finished()
    assert result is not None and result.fault is not None and result.fault.kind == "stopped"
    assert 2 * held <= result.gpu_used_s <= result.gpu_leased_s


def test_who_only_waited_for_cards_pays_nothing(gpu_bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "held-0").write_text(str(os.getpid()))
    order, told = gpu_bench.order("true", gpus=TWO), []
    result = gpu_bench.pipeline.probe(order, Stop(), lambda: told.append("leased"))
    assert result is not None and result.fault is not None and result.fault.kind == "gpu-held"
    assert (result.gpu_leased_s, told) == (0.0, [])


@pytest.mark.parametrize(("gpus", "times"), [(TWO, 1), (None, 0)])
def test_it_is_told_once_that_cards_are_held(gpu_bench: Bench, gpus: Gpus | None, times: int) -> None:
    order, told = gpu_bench.order("true", gpus=gpus), []
    result = gpu_bench.pipeline.probe(order, Stop(), lambda: told.append("leased"))
    assert result is not None and result.outcome is not None
    assert len(told) == times


def test_a_cancel_that_comes_when_the_run_is_over_takes_nothing_from_the_bill(gpu_bench: Bench) -> None:
    under_way = Background(gpu_bench, gpu_bench.order("sleep 1", gpus=TWO))
    under_way.join(60.0)
    under_way.stop.press(CANCELLED)
    result = under_way.finished()
    assert result is not None and result.outcome is not None and result.gpu_used_s >= 2.0


def test_a_run_that_is_taken_up_again_costs_from_its_beginning() -> None:
    meter, now = Meter(used_s=6.0), time.time()
    with meter.leasing(2, now - 100.0), meter.running(now - 50.0):
        pass
    assert 200.0 <= meter.leased_s < 210.0
    assert 106.0 <= meter.used_s < 116.0


def test_a_clock_that_went_back_makes_no_time_that_is_less_than_none() -> None:
    meter = Meter()
    with meter.leasing(2, time.time() + 1000.0), meter.running(time.time() + 1000.0):
        pass
    assert 0.0 <= meter.used_s <= meter.leased_s < 10.0
