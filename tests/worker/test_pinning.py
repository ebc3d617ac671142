"""CPUs and NUMA nodes that runs are bound to, in all sandboxes, and what else is known of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import SERVER, Background, Bench
from worker.errors import NodeFault
from worker.run import machine
from worker.run.cgroups import Groups
from worker.run.processors import Pinned, listed, parsed, pinned, usable

LAST = max(usable())
LOOK = (
    "python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'; nproc; grep Mems_allowed_list /proc/self/status"
)


def test_a_run_has_the_cpus_that_were_asked_for_and_no_others(bench: Bench) -> None:
    outcome = bench.outcome(LOOK, limits={"cpuset": str(LAST)})
    assert bench.text(outcome)[:2] == [str(LAST), "1"]
    assert outcome.environment["cpus_allowed"] == str(LAST) and "numa" not in outcome.environment
    free = bench.outcome(LOOK)
    assert bench.text(free)[0].split() == [str(cpu) for cpu in sorted(usable())]
    assert free.environment["cpus_allowed"] == listed(usable())


def test_a_server_and_its_check_have_them_too(process_bench: Bench) -> None:
    outcome = process_bench.serve(f"nproc; exec {SERVER}", check="nproc", limits={"cpuset": "0"})
    assert [line for line in process_bench.text(outcome) if line.isdigit()] == ["1", "1"]


def test_a_run_is_bound_to_a_numa_node(bench: Bench) -> None:
    outcome = bench.outcome(LOOK, limits={"numa": 0, "cpuset": "0"})
    assert bench.text(outcome)[:2] == ["0", "1"]
    if bench.sandbox.kind == "docker" or "cpuset" in Groups(f"{os.getpid()}n").parents:
        assert outcome.environment["numa"] == "CPUs and memory"
        assert bench.text(outcome)[2].split() == ["Mems_allowed_list:", "0"]
    else:
        assert outcome.environment["numa"] == "CPUs only"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"cpuset": "0-8000"}, r"CPUs \d+-8000 are asked for, this node has 0"),
        ({"cpuset": "7999"}, "CPU 7999 is asked for, this node has 0"),
        ({"numa": 512}, "NUMA node 512 is asked for, this node has 0"),
        ({"cpuset": "none"}, "'none' names no CPUs"),
    ],
)
def test_cpus_that_the_node_does_not_have_are_a_fault(
    process_bench: Bench, limits: dict[str, object], said: str
) -> None:
    fault = process_bench.probe("true", limits=limits).fault
    assert fault is not None and fault.kind == "cpus" and fault.advice
    with pytest.raises(NodeFault, match=said):
        pinned(limits.get("cpuset"), limits.get("numa"))  # type: ignore[arg-type]


def test_a_group_binds_one_run_and_the_next_one_is_free_again() -> None:
    needs("cpuset-groups")
    groups = Groups(f"{os.getpid()}p")
    seen = []
    for wanted in (Pinned(frozenset({LAST}), 0, numa=True), None):
        with groups.one(10, None, None, wanted) as group:
            assert group is not None
            joined = [Path(entry).parent / "cpuset.cpus" for entry in group.entries]
            seen.append([path.read_text().strip() for path in joined if path.exists() and group.binds])
    groups.close()
    assert seen == [[str(LAST)], []]
    assert not any((parent / f"firstbad-{os.getpid()}p-1").exists() for parent in groups.parents.values())


def test_where_groups_cannot_bind_the_run_is_bound_all_the_same(process_bench: Bench) -> None:
    sandbox = process_bench.pipeline.site.sandboxes["process"]
    sandbox._groups.parents.pop("cpuset", None)  # type: ignore[attr-defined]
    outcome = process_bench.outcome(LOOK, limits={"cpuset": str(LAST), "numa": 0})
    assert process_bench.text(outcome)[:2] == [str(LAST), "1"]
    assert (outcome.environment["cpus_allowed"], outcome.environment["numa"]) == (str(LAST), "CPUs only")


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """As the kernel shows a machine with two nodes, of which the second, with the last CPU here, has no memory."""
    for number, cpus in (("0", listed(usable() - {LAST})), ("1", str(LAST)), ("2", "")):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(f"{cpus}\n")
    (tmp_path / "has_memory").write_text("0,2\n")
    (tmp_path / "online").write_text("0-2\n")
    return tmp_path


def test_a_numa_node_has_its_own_cpus_and_its_memory_where_it_has_any(nodes: Path) -> None:
    assert pinned(None, 1, nodes) == Pinned(frozenset({LAST}), None, numa=True)
    if LAST > 0:
        assert pinned(None, 0, nodes) == Pinned(usable() - {LAST}, 0, numa=True)
        with pytest.raises(NodeFault, match=f"CPUs 0 are none of NUMA node 1, which has {LAST}"):
            pinned("0", 1, nodes)
    with pytest.raises(NodeFault, match="NUMA node 2 has no CPUs"):
        pinned(None, 2, nodes)
    with pytest.raises(NodeFault, match="this node has 0-2"):
        pinned(None, 3, nodes)


@given(st.frozensets(st.integers(min_value=0, max_value=300), min_size=1))
def test_a_list_of_cpus_is_written_as_it_is_read(cpus: frozenset[int]) -> None:
    assert parsed(listed(cpus)) == cpus


@pytest.mark.parametrize("wrong", ["", " ", "a", "1-", "-1", "1,,2", "3-1", "0x1", "99999", "1 2"])
def test_what_is_no_list_of_cpus_is_told(wrong: str) -> None:
    with pytest.raises(NodeFault, match="names no CPUs"):
        parsed(wrong)


def test_each_run_says_on_what_it_ran_and_who_ran_beside_it(process_bench: Bench) -> None:
    order = process_bench.order("touch begun; until test -e go; do sleep 0.05; done")
    tree = process_bench.job(order.probe) / "work" / "tree"
    first = Background(process_bench, order)
    eventually((tree / "begun").exists)
    second = process_bench.outcome("true").environment
    process_bench.outcome("true")
    (tree / "go").touch()
    result = first.finished()
    assert result is not None and result.outcome is not None
    assert (result.outcome.environment["runs_beside"], second["runs_beside"]) == ("1", "1")
    alone = process_bench.outcome("true").environment
    assert alone["runs_beside"] == "0" and float(alone["load"]) >= 0.0
    assert alone["cpu"] == machine.cpu() and machine.hardware().startswith(f"{alone['cpu']}, ")


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("model name\t: AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("model name\t: Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz", "Intel Xeon Platinum 8480C"),
        ("vendor_id: x\nmodel name : Intel(R) Xeon(R) Processor\nmodel name : other", "Intel Xeon"),
        ("processor\t: 0\nBogoMIPS\t: 50.00", ""),
    ],
)
def test_of_a_processors_name_what_tells_it_apart_is_kept(line: str, model: str) -> None:
    assert machine.short(line) == model


def test_a_cpu_that_is_taken_offline_still_counts_to_the_machine(tmp_path: Path) -> None:
    assert machine.present(tmp_path) == psutil.cpu_count()
    for name in ("cpu0", "cpu1", "cpu10", "cpufreq", "cpuidle"):
        (tmp_path / name).mkdir()
    (tmp_path / "online").write_text("0\n")
    assert machine.present(tmp_path) == 3


def test_the_governor_of_all_cpus_is_told_where_there_is_one(tmp_path: Path) -> None:
    assert machine.governor(tmp_path) == ""
    for number, said in enumerate(["performance", "performance", "powersave"]):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{said}\n")
    assert machine.governor(tmp_path) == "performance, powersave"
