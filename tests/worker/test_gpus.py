"""Leases of GPUs, among real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.waiting import eventually
from worker import contract
from worker.contract import gpu_class
from worker.errors import NodeFault, Stopped
from worker.gpus import Declared, Gpus, Nvml, State
from worker.gpus.cards import reasons_of
from worker.gpus.gauge import Look, summary
from worker.run.shared import shared_folder
from worker.run.stop import CANCELLED, Stop
from worker.settings import Settings, complaints, declared

#: Leases cards, says so, and holds them until its input ends.
HOLDER = """
import sys
from pathlib import Path
from worker.contract import Gpus as Wanted
from worker.gpus import Declared, Gpus
from worker.run.stop import Stop
from worker.settings import declared

folder, said, count, out = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
gpus = Gpus(Declared.of(declared(said), folder), folder)
with gpus.lease(Wanted(count=count, model="fake-80gb"), Stop()) as leased:
    with out.open("a") as file:
        file.write(f"{sys.argv[5]} " + ",".join(str(gpu.index) for gpu in leased) + "\\n")
    sys.stdin.read()
"""


class Node:
    """A node with declared cards, and processes that lease them. Each writes a line when it has got some."""

    def __init__(self, folder: Path, cards: str = "8xFake-80GB") -> None:
        self.folder, self.cards, self.out = folder / "gpus", cards, folder / "got"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.gpus = Gpus(Declared.of(declared(cards) or [], self.folder), self.folder, wait_s=0.0)

    def ask(self, name: str, count: int) -> None:
        """Comes back once it has a ticket, or the cards: so the order in which they come is known."""
        argv = [sys.executable, "-c", HOLDER, str(self.folder), self.cards, str(count), str(self.out), name]
        before = len(self.tickets()) + len(self.got())
        self.processes[name] = subprocess.Popen(argv, stdin=subprocess.PIPE)
        eventually(lambda: len(self.tickets()) + len(self.got()) > before)

    def tickets(self) -> list[Path]:
        return list(self.folder.glob("ticket-*"))

    def got(self) -> dict[str, set[int]]:
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        return {name: set(map(int, cards.split(","))) for name, cards in (line.split() for line in lines)}

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        process.communicate()

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def hold(self, index: int, pid: int) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"held-{index}").write_text(str(pid))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    for name in list(made.processes):
        made.kill(name)


@pytest.fixture
def foreign() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside firstbad."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def wanted(count: int, model: str = "fake-80gb") -> contract.Gpus:
    return contract.Gpus(count=count, model=model)


def test_who_asks_for_none_gets_none_and_waits_for_nobody(node: Node) -> None:
    with node.gpus.lease(None, Stop()) as leased:
        assert leased == ()
    assert not node.folder.exists()


def test_two_leases_of_four_run_side_by_side_on_eight(node: Node) -> None:
    node.ask("first", 4)
    node.ask("second", 4)
    eventually(lambda: len(node.got()) == 2)
    assert node.got()["first"] | node.got()["second"] == set(range(8))


def test_a_lease_ends_with_a_process_that_is_killed(node: Node) -> None:
    node.ask("killed", 8)
    eventually(lambda: "killed" in node.got())
    node.ask("next", 8)
    assert "next" not in node.got()
    node.kill("killed")
    eventually(lambda: "next" in node.got())


def test_who_wants_all_is_not_passed_by_those_who_want_one(node: Node) -> None:
    node.ask("early", 1)
    eventually(lambda: "early" in node.got())
    node.ask("all", 8)
    node.ask("late", 1)
    node.ask("later", 1)
    node.end("early")
    eventually(lambda: "all" in node.got())
    # Seven cards were free all the time.
    assert set(node.got()) == {"early", "all"}
    node.end("all")
    eventually(lambda: len(node.got()) == 4)


def test_cards_are_given_in_the_order_in_which_they_were_asked_for(node: Node) -> None:
    node.ask("holder", 8)
    eventually(lambda: "holder" in node.got())
    names = ["a", "b", "c"]
    for name in names:
        node.ask(name, 8)
    node.end("holder")
    for name in names:
        eventually(lambda name=name: name in node.got())
        node.end(name)
    assert list(node.got()) == ["holder", *names]


def test_who_waits_no_more_keeps_nobody_waiting(node: Node) -> None:
    node.ask("early", 1)
    eventually(lambda: "early" in node.got())
    node.ask("dead", 8)
    node.ask("late", 1)
    node.kill("dead")
    eventually(lambda: "late" in node.got())
    assert node.tickets() == []


def test_a_class_of_cards_has_a_line_of_its_own(tmp_path: Path) -> None:
    node = Node(tmp_path, "2xFake-80GB,1xSmall-24GB")
    with node.gpus.lease(wanted(1), Stop()):
        node.ask("all", 2)
        with node.gpus.lease(wanted(1, "small-24gb"), Stop()) as small:
            assert [(gpu.index, gpu.model, gpu.memory_bytes) for gpu in small] == [(2, "Small-24GB", 24 * 1024**3)]
        assert node.got() == {}
    node.kill("all")


def test_more_cards_than_there_are_is_a_fault(node: Node) -> None:
    with pytest.raises(NodeFault, match="9 GPUs of the class fake-80gb are wanted, this node has 8") as raised:
        node.gpus.lease(wanted(9), Stop()).__enter__()
    assert raised.value.kind == "gpus"
    with pytest.raises(NodeFault, match="this node has 0"):
        node.gpus.lease(wanted(1, "other"), Stop()).__enter__()


def test_who_waits_can_be_cancelled(node: Node) -> None:
    stop = Stop()
    with node.gpus.lease(wanted(8), Stop()):
        stop.press(CANCELLED)
        with pytest.raises(Stopped), node.gpus.lease(wanted(1), stop):
            raise AssertionError("it was leased twice")
    assert node.tickets() == []


def test_a_card_that_another_process_holds_is_a_fault_that_names_it(
    node: Node, foreign: subprocess.Popen[bytes]
) -> None:
    node.hold(2, foreign.pid)
    with pytest.raises(NodeFault) as raised:
        node.gpus.lease(wanted(8), Stop()).__enter__()
    assert raised.value.kind == "gpu-held"
    assert raised.value.message == f"GPU 2 is held by pid {foreign.pid} (sleep) outside firstbad"
    assert "FIRSTBAD_GPU_WAIT_S" in raised.value.advice
    assert node.tickets() == []


def test_a_card_that_another_process_holds_is_left_out(node: Node, foreign: subprocess.Popen[bytes]) -> None:
    node.hold(2, foreign.pid)
    with node.gpus.lease(wanted(7), Stop()) as leased:
        assert [gpu.index for gpu in leased] == [0, 1, 3, 4, 5, 6, 7]


def test_cards_are_awaited_until_the_other_process_ends(node: Node, foreign: subprocess.Popen[bytes]) -> None:
    node.hold(2, foreign.pid)
    node.ask("all", 8)
    # Meanwhile those who can be served are.
    node.ask("one", 1)
    eventually(lambda: "one" in node.got())
    assert "all" not in node.got()
    node.end("one")
    foreign.kill()
    foreign.wait()
    eventually(lambda: "all" in node.got())


def test_who_holds_a_card_now_is_told(node: Node, foreign: subprocess.Popen[bytes]) -> None:
    cards = node.gpus.inventory[:3]
    assert node.gpus.held_by(cards) == ""
    node.hold(1, foreign.pid)
    assert node.gpus.held_by(cards) == f"GPU 1 is held by pid {foreign.pid} (sleep) outside firstbad"
    assert node.gpus.held_by(cards[:1]) == ""


def test_a_run_that_goes_on_gets_its_own_cards_again(node: Node, foreign: subprocess.Popen[bytes]) -> None:
    node.hold(3, foreign.pid)  # what runs there is that run
    with node.gpus.again((1, 3), Stop()) as leased:
        assert [gpu.index for gpu in leased] == [1, 3]
        with node.gpus.lease(wanted(6), Stop()) as others:
            assert {gpu.index for gpu in others} == {0, 2, 4, 5, 6, 7}
    with node.gpus.lease(wanted(7), Stop()) as others:
        assert 1 in {gpu.index for gpu in others}


@pytest.mark.parametrize("index", [1, 8])
def test_a_run_whose_cards_were_leased_again_is_a_fault(node: Node, index: int) -> None:
    with node.gpus.lease(wanted(2), Stop()), pytest.raises(NodeFault, match=f"GPU {index} is gone, or") as raised:
        node.gpus.again((7, index), Stop()).__enter__()
    assert raised.value.kind == "gpu-held"
    with node.gpus.lease(wanted(8), Stop()) as leased:
        assert len(leased) == 8


def test_certain_cards_are_leased_and_no_others(node: Node) -> None:
    with node.gpus.lease(contract.Gpus(count=2, model="fake-80gb", indexes=(5, 2)), Stop()) as leased:
        assert [gpu.index for gpu in leased] == [2, 5]


class Asker(threading.Thread):
    """Leases cards in a thread of its own, and holds them until it is told to end."""

    def __init__(self, node: Node, count: int, *indexes: int) -> None:
        super().__init__(daemon=True)
        self.node, self.wanted = node, contract.Gpus(count=count, model="fake-80gb", indexes=indexes)
        self.got: set[int] = set()
        self.over = threading.Event()
        before = len(node.tickets())
        self.start()
        eventually(lambda: self.got or len(node.tickets()) > before)

    def run(self) -> None:
        with self.node.gpus.lease(self.wanted, Stop()) as leased:
            self.got = {gpu.index for gpu in leased}
            self.over.wait(60.0)

    def end(self) -> None:
        eventually(lambda: self.got)
        self.over.set()
        self.join()


def test_certain_cards_are_awaited_and_who_comes_later_gets_others_meanwhile(node: Node) -> None:
    holder = Asker(node, 1, 0)
    eventually(lambda: holder.got)
    same, others = Asker(node, 1, 0), Asker(node, 6)
    eventually(lambda: others.got == {1, 2, 3, 4, 5, 6})
    # Only now: a ticket that is given back meanwhile would be taken for its own that is missing.
    more = Asker(node, 2)
    others.end()
    eventually(lambda: more.got)
    assert 0 not in more.got and not same.got
    holder.end()
    eventually(lambda: same.got == {0})
    for asker in (same, more):
        asker.end()


def test_who_waits_for_certain_cards_is_not_passed_by_who_comes_later(node: Node) -> None:
    holder = Asker(node, 2, 0, 1)
    eventually(lambda: holder.got)
    pair = Asker(node, 2, 1, 2)
    later = Asker(node, 1, 2)  # free, but waited for
    everything = Asker(node, 8)
    last = Asker(node, 1, 7)  # free, but waited for by who wants all
    holder.end()
    eventually(lambda: pair.got == {1, 2})
    assert not (later.got or everything.got or last.got)
    pair.end()
    eventually(lambda: later.got == {2})
    later.end()
    eventually(lambda: len(everything.got) == 8)
    everything.end()
    eventually(lambda: last.got == {7})
    last.end()


@pytest.mark.parametrize(("indexes", "model"), [((0, 8), "fake-80gb"), ((0,), "other-80gb")])
def test_certain_cards_that_the_node_does_not_have_are_a_fault(
    node: Node, indexes: tuple[int, ...], model: str
) -> None:
    with pytest.raises(NodeFault) as raised:
        node.gpus.lease(contract.Gpus(count=1, model=model, indexes=indexes), Stop()).__enter__()
    assert raised.value.kind == "gpus" and "another node" in raised.value.advice
    assert raised.value.message.startswith(f"the GPUs {indexes[-1]} of the class {model} are wanted, this node has 0:")


def test_clocks_and_what_keeps_them_down_are_those_of_the_time_that_counts() -> None:
    looks = [
        Look(10.0, (State(345, 40), State(345, 41, ("too hot",)))),
        Look(11.0, (State(1980, 60), State(1755, 70, ("power cap",)))),
        Look(12.0, (State(1980, 61), State(1900, 75, ("power cap", "too hot")))),
        Look(13.0, (State(), State(345, 50))),
    ]
    assert summary(looks, 10.5, 12.5) == {
        "gpu_clock_mhz": "1755/1940/1980", "gpu_temperature_c": "60/66/75", "throttled": "power cap, too hot",
    }  # fmt: skip
    assert summary(looks, 13.2, 13.4) == {"gpu_clock_mhz": "345/345/345", "gpu_temperature_c": "50/50/50"}
    assert summary([], 0.0, 1.0) == summary([Look(1.0, (State(),))], 0.0, 2.0) == {}


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, ()),
        (0x1, ()),
        (0x2 | 0x100, ()),
        (0x4, ("power cap",)),
        (0x48, ("hardware slowdown", "too hot for the hardware")),
    ],
)
def test_idle_cards_and_clocks_that_somebody_set_are_not_throttled(bits: int, words: tuple[str, ...]) -> None:
    assert reasons_of(bits) == words


def test_a_node_without_a_driver_has_no_cards() -> None:
    if Path("/dev/nvidiactl").exists():
        assert Nvml().inventory and Nvml().driver
    else:
        assert (Nvml().inventory, Nvml().driver) == ((), "")


def test_all_workers_of_a_user_agree_in_one_folder() -> None:
    assert shared_folder("gpus") == shared_folder("gpus") != shared_folder("ports")
    assert shared_folder("gpus").stat().st_uid == os.geteuid()


def test_cards_can_be_declared() -> None:
    gpus = Declared.of(declared("2xA-80GB, 1xB-24GB") or [], Path()).inventory
    assert [(gpu.index, gpu.model, gpu.memory_bytes >> 30) for gpu in gpus] == [
        (0, "A-80GB", 80),
        (1, "A-80GB", 80),
        (2, "B-24GB", 24),
    ]
    assert {gpu.uuid for gpu in gpus} == {""}
    assert gpu_class(gpus[0].model) == "a-80gb"
    assert (declared(""), declared("none")) == (None, [])


@pytest.mark.parametrize("wrong", ["8", "x", "0xA-80GB", "8xFake", "8 Fake-80GB", "2xA-80GB,", "999xA-80GB", "2xA-0GB"])
def test_cards_that_cannot_be_counted_are_told(wrong: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(gpus=wrong)
    (said,) = complaints(raised.value)
    assert said.startswith(f"FIRSTBAD_GPUS: {wrong!r}: ") and said.endswith("; write it like 8xFake-80GB")
    assert "alue error" not in said
