"""Cards, shared memory and processors, as an order asks for them, in both sandboxes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import Background, Bench, running, said_to_hold
from tests.worker.conftest import pipeline
from worker import contract
from worker.run.bubblewrap import devices
from worker.run.cgroups import Groups
from worker.run.stop import CANCELLED, Stop


@pytest.fixture
def gpu_bench(bench: Bench, tmp_path: Path) -> Bench:
    bench.pipeline = pipeline(tmp_path / "node", gpus="4xFake-80GB", gpu_wait_s=0.0)
    return bench


def wanted(count: int) -> contract.Gpus:
    return contract.Gpus(count=count, model="fake-80gb")


def test_two_runs_side_by_side_have_cards_of_their_own(gpu_bench: Bench) -> None:
    """In containers all start from 0: each has its own cards alone."""
    waiting = "echo $CUDA_VISIBLE_DEVICES; touch begun; until test -e go; do sleep 0.05; done"
    probes = [Background(gpu_bench, gpu_bench.order(waiting, gpus=wanted(2))) for _ in range(2)]
    trees = [gpu_bench.job(probe.order.probe) / "work" / "tree" for probe in probes]
    eventually(lambda: all((tree / "begun").exists() for tree in trees))
    third = Background(gpu_bench, gpu_bench.order("echo $CUDA_VISIBLE_DEVICES", gpus=wanted(4)))
    for tree in trees:
        (tree / "go").touch()
    told = [gpu_bench.text(probe.finished().outcome)[0] for probe in (*probes, third)]  # type: ignore[union-attr]
    if gpu_bench.sandbox.kind == "docker":
        assert told == ["0,1", "0,1", "0,1,2,3"]
    else:
        assert sorted(told) == ["0,1", "0,1,2,3", "2,3"]


def test_an_order_cannot_name_other_cards_than_its_lease(gpu_bench: Bench) -> None:
    outcome = gpu_bench.outcome("echo $CUDA_VISIBLE_DEVICES", gpus=wanted(1), env={"CUDA_VISIBLE_DEVICES": "3"})
    assert gpu_bench.text(outcome) == ["0"]


def test_a_card_that_is_held_outside_is_a_fault_of_the_probe(gpu_bench: Bench) -> None:
    folder = gpu_bench.pipeline.site.gpus.folder
    folder.mkdir(parents=True)
    (folder / "held-2").write_text(str(os.getpid()))
    fault = gpu_bench.probe("true", gpus=wanted(4)).fault
    assert fault is not None and fault.kind == "gpu-held"
    assert re.fullmatch(rf"GPU 2 is held by pid {os.getpid()} \(.+\) outside firstbad", fault.message)
    assert gpu_bench.left() == []


def test_who_holds_a_card_during_the_run_is_told_though_he_ended_first_and_the_run_itself_is_not(
    gpu_bench: Bench,
) -> None:
    marker = f"600.{os.getpid()}7"
    order = gpu_bench.order(f"sleep {marker} & until test -e go; do sleep 0.05; done; exit 3", gpus=wanted(2))
    probe = Background(gpu_bench, order)
    eventually(lambda: running(marker))
    folder = gpu_bench.pipeline.site.gpus.folder
    own = running(marker)[0].pid
    said_to_hold(folder / "held-0", own)
    with subprocess.Popen(["sleep", "600"]) as foreign:
        said_to_hold(folder / "held-1", foreign.pid)
        said_to_hold(folder / "held-0", own)  # the next look, so that the one before is over
        foreign.kill()
    (gpu_bench.job(order.probe) / "work" / "tree" / "go").touch()
    result = probe.finished()
    assert result is not None and result.outcome is not None and result.outcome.exit_status == 3
    held = f"GPU 1 was held by pid {foreign.pid} (sleep) outside firstbad during the run"
    assert result.outcome.environment["gpu_held_by"] == held


def test_how_fast_hot_and_throttled_cards_were_is_told(gpu_bench: Bench) -> None:
    folder = gpu_bench.pipeline.site.gpus.folder
    folder.mkdir(parents=True)
    (folder / "throttled-2").write_text("power cap, too hot\n")
    for index, said in enumerate(("1980 61", "1755 70", "1900 80", "0 0")):
        (folder / f"clock-{index}").write_text(said)
    same = contract.Gpus(count=2, model="fake-80gb", indexes=(1, 2))
    facts = gpu_bench.outcome("true", gpus=same).environment
    assert (facts["gpu_indexes"], facts["throttled"]) == ("1,2", "power cap, too hot")
    assert (facts["gpu_clock_mhz"], facts["gpu_temperature_c"]) == ("1755/1828/1900", "70/75/80")
    other = gpu_bench.outcome("true", gpus=wanted(2)).environment
    assert other["gpu_indexes"] == "0,1" and "throttled" not in other


def test_who_waits_for_cards_can_be_cancelled(gpu_bench: Bench) -> None:
    first = Background(gpu_bench, gpu_bench.order("touch begun; sleep 600", gpus=wanted(4)))
    eventually(lambda: (gpu_bench.job(first.order.probe) / "work" / "tree" / "begun").exists())
    second = Background(gpu_bench, gpu_bench.order("true", gpus=wanted(1)))
    eventually(lambda: len(list(gpu_bench.pipeline.site.gpus.folder.glob("ticket-*"))) == 1)
    for probe in (second, first):
        probe.stop.press(CANCELLED)
        assert probe.finished() is None
    with gpu_bench.pipeline.site.gpus.lease(wanted(4), Stop()) as leased:
        assert len(leased) == 4


def test_shared_memory_has_the_size_that_was_asked_for(bench: Bench) -> None:
    script = "df --output=size -k /dev/shm | tail -1"
    assert bench.text(bench.outcome(script, limits={"shm_bytes": 64 * 1024**2}))[0].strip() == str(64 * 1024)
    assert bench.text(bench.outcome(script))[0].strip() == str(1024**2)


def test_a_limit_on_processors_is_kept_or_said_not_to_be(bench: Bench) -> None:
    script = """python3 -c '
import os, sys, time
for _ in range(3):
    if os.fork() == 0: break
wall, used = time.monotonic(), time.process_time()
while time.monotonic() - wall < 1.5: pass
# At once, as four write it.
sys.stdout.write(f"{time.process_time() - used}\\n")
'; wait"""
    outcome = bench.outcome(script, limits={"cpus": 0.25})
    if "cpus" not in outcome.environment["not_isolated"].split(","):
        # Four of them together, in 1.5 s and what the kernel is late by.
        assert sum(map(float, bench.text(outcome))) < 1.5 * 0.25 + 0.4
    else:
        assert bench.sandbox.kind == "process"


def test_a_group_limits_processors_and_the_next_run_in_it_is_free_again() -> None:
    needs("cpu-groups")
    groups = Groups(f"{os.getpid()}c")
    seen = []
    for cpus in (0.5, None):
        with groups.one(10, None, cpus) as group:
            assert group is not None
            folder = group.folders["cpu"]
            name = "cpu.max" if (folder / "cpu.max").exists() else "cpu.cfs_quota_us"
            seen.append((folder / name).read_text().split()[0])
    groups.close()
    assert seen[0] == "50000" and seen[1] in ("max", "-1")


def test_a_run_without_cards_sees_no_device_of_one(process_bench: Bench) -> None:
    assert process_bench.text(process_bench.outcome("ls -d /dev/nvidia* /sys 2>/dev/null || true")) == []
    shown = devices()
    assert shown[-2:] == ["/sys", "/sys"] and shown.count("--dev-bind") == len(list(Path("/dev").glob("nvidia*")))
