"""Scripts that do their worst, in every sandbox: contained, and told. Those that do less are in the contract's tests.

FIRSTBAD_LONG=1 makes the flood 10 GB long.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.worker.bench import Background, Bench, running
from tests.worker.conftest import METADATA

FLOOD = 10 * 10**9 if os.environ.get("FIRSTBAD_LONG") else 200 * 10**6


def test_a_fork_bomb_ends_with_its_run_and_takes_nothing_with_it(bench: Bench) -> None:
    marker = f"bomb-{os.getpid()}"
    script = f"echo begun; bash -c 'bomb() {{ bomb | bomb & }}; bomb; wait; sleep 600' {marker}; sleep 600"
    outcome = bench.outcome(script, limits={"pids": 100, "timeout_s": 4.0})
    assert outcome.timed_out
    text = bench.text(outcome)
    assert text[0] == "begun" and any("Resource temporarily unavailable" in line for line in text)
    assert running(marker) == []
    assert bench.outcome("echo the node lives").exit_status == 0


def test_a_bomb_within_its_limit_does_not_outgrow_it(bench: Bench) -> None:
    script = """
        for number in $(seq 200); do sleep 600 & done
        ls -d /proc/[0-9]* | wc -l
    """
    result = bench.probe(script, limits={"pids": 64, "timeout_s": 3.0})
    assert result.outcome is not None
    counted = [int(line) for line in bench.text(result.outcome) if line.isdigit()]
    assert all(number <= 64 for number in counted), counted


def test_a_huge_log_is_counted_whole_and_kept_in_part(bench: Bench) -> None:
    cap = 1024 * 1024
    script = f"set +o pipefail; yes 'a line of a flood that never ends' | head -c {FLOOD}; exit 3"
    order = bench.order(script, limits={"log_cap_bytes": cap, "timeout_s": 1200.0})
    probe = Background(bench, order)
    most = 0
    while probe.is_alive():
        files = list((bench.job(order.probe) / "out").glob("log*"))
        most = max(most, sum(size_of(file) for file in files))
        probe.join(0.05)
    result = probe.finished()
    assert result is not None and result.outcome is not None and result.outcome.log is not None
    outcome, log = result.outcome, result.outcome.log
    assert (outcome.exit_status, log.bytes, log.cut) == (3, FLOOD, True)
    assert len(bench.log(outcome)) <= cap + 200
    assert 0 < most <= 3 * cap


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_script_that_kills_its_parent_again_and_again_is_judged_by_its_exit(bench: Bench) -> None:
    script = "for n in $(seq 1 31) $(seq 1 31); do kill -$n $PPID 2>/dev/null || true; done; echo alive; exit 7"
    assert bench.outcome(script).exit_status == 7


def test_what_ignores_every_signal_it_can_is_killed_when_its_time_is_over(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}9"
    script = f"trap '' $(seq 1 31) 2>/dev/null; (trap '' TERM INT HUP; setsid sleep {marker}) & sleep {marker}"
    outcome = bench.outcome(script, limits={"timeout_s": 2.0})
    assert outcome.timed_out
    assert running(marker) == []


def test_links_out_of_the_job_lead_nowhere(bench: Bench) -> None:
    target = bench.pipeline.site.work_dir.parent / "target"
    target.write_text("untouched")
    script = f"""
        for link in ../tree/link /tmp/link ~/link /firstbad/out/link; do
            ln -s {target} $link && echo written > $link || true
        done 2>/dev/null
        mkdir -p /firstbad/out/wheels && ln -s {target} /firstbad/out/wheels/x.whl
    """
    assert bench.outcome(script).exit_status == 0
    assert target.read_text() == "untouched"
    assert bench.left() == []
    assert target.read_text() == "untouched"


@pytest.mark.parametrize("network", ["none", "bridge"])
def test_the_engine_is_not_reached(bench: Bench, network: str) -> None:
    script = """
        for place in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do
            test ! -e $place || echo saw $place
        done
        for port in 2375 2376; do
            (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && echo reached $port || true
        done
        python3 - <<'END'
import socket
for place in ("/var/run/docker.sock", "/run/docker.sock", "\\0docker"):
    with socket.socket(socket.AF_UNIX) as attempt:
        if attempt.connect_ex(place) == 0:
            print("spoke to", place)
END
    """
    outcome = bench.outcome(script, network=network)
    assert (outcome.exit_status, bench.text(outcome)) == (0, [])


def test_the_clouds_metadata_service_is_not_reached_without_a_network(bench: Bench, metadata: int) -> None:
    outcome = bench.outcome(f"timeout 2 bash -c 'exec 3<>/dev/tcp/{METADATA}/{metadata}' && echo reached || echo no")
    assert bench.text(outcome)[-1] == "no"


def test_a_process_on_the_nodes_network_reaches_it_and_that_is_said(process_bench: Bench, metadata: int) -> None:
    script = f"timeout 2 bash -c 'exec 3<>/dev/tcp/{METADATA}/{metadata}' && echo reached || echo no"
    outcome = process_bench.outcome(script, network="bridge")
    assert process_bench.text(outcome) == ["reached"]
    assert "net" in outcome.environment["not_isolated"].split(",")
