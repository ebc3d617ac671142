"""Results on their way: kept before they are sent and until they are recorded, and sent again when they got lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from worker.contract import Task
from worker.outgoing import PAUSES_S, Key, Look, Outgoing, Unreachable


class Service:
    """Takes messages, or none; may stand still. `recorded` is what it says to have, `reads` whether it reads at all."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.recorded: set[Key] = set()
        self.away, self.reads, self.time = False, True, 1000.0
        self.moves = threading.Event()
        self.moves.set()

    def send(self, task: str, message: dict[str, Any]) -> None:
        self.moves.wait(60.0)
        if self.away:
            raise Unreachable("it is away")
        self.got.append((task, message))

    def look(self, keys: Sequence[Key]) -> Look:
        if self.away:
            raise Unreachable("it is away")
        return Look(frozenset(self.recorded & set(keys)), self.reads)

    def now(self) -> float:
        self.time += 0.001
        return self.time

    def outgoing(self, folder: Path) -> Outgoing:
        return Outgoing(folder, self.send, self.look, self.now)

    def probes(self) -> list[str]:
        """Those that came, in their order."""
        return [message["probe"] for _, message in self.got]

    def records(self, *probes: str) -> None:
        self.recorded |= {("probe", probe, 1) for probe in probes}


@pytest.fixture
def service() -> Service:
    return Service()


def probed(probe: str, **more: object) -> tuple[str, dict[str, Any]]:
    return str(Task.PROBED), {"probe": probe, "attempt": 1, **more}


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def beats(outgoing: Outgoing, service: Service, seconds: float) -> None:
    """As a worker does, every five seconds."""
    for _ in range(int(seconds / 5)):
        service.time += 5.0
        outgoing.flush()


@pytest.mark.parametrize(
    ("task", "message", "key"),
    [
        (Task.PROBED, {"probe": "b1.1", "attempt": 2}, ("probe", "b1.1", 2)),
        (Task.BUILT, {"key": "k1", "attempt": 1}, ("build", "k1", 1)),
        (Task.SURVEYED, {"bisection": "b1", "attempt": 1}, ("survey", "b1", 1)),
    ],
)
def test_a_result_is_kept_until_it_is_recorded(
    tmp_path: Path, service: Service, task: Task, message: dict[str, Any], key: Key
) -> None:
    outgoing = service.outgoing(tmp_path)
    outgoing.deliver(task, message)
    outgoing.flush()
    assert (outgoing.keys(), files(tmp_path)) == ({key}, [".json"])
    service.recorded = {key}
    outgoing.flush()
    assert (outgoing.keys(), files(tmp_path)) == (set(), [])
    assert service.got == [(task, message)]


def test_what_is_of_no_attempt_is_sent_once(tmp_path: Path, service: Service) -> None:
    outgoing = service.outgoing(tmp_path)
    outgoing.deliver(Task.PROBED, {"probe": "b1.1", "attempt": 0})
    assert (service.probes(), outgoing.keys(), files(tmp_path)) == (["b1.1"], set(), [])


def test_a_result_that_was_read_and_not_recorded_is_sent_again_after_15_s(tmp_path: Path, service: Service) -> None:
    outgoing = service.outgoing(tmp_path)
    outgoing.deliver(*probed("a"))
    beats(outgoing, service, 15)
    assert service.probes() == ["a"]
    beats(outgoing, service, 5)
    assert service.probes() == ["a", "a"]
    service.records("a")
    beats(outgoing, service, 3600)
    assert (service.probes(), files(tmp_path)) == (["a", "a"], [])


def test_what_still_lies_in_the_queue_is_not_sent_again(tmp_path: Path, service: Service) -> None:
    outgoing, service.reads = service.outgoing(tmp_path), False
    outgoing.deliver(*probed("a"))
    beats(outgoing, service, 7200)
    assert (service.probes(), files(tmp_path)) == (["a"], [".json"])
    service.reads = True
    beats(outgoing, service, 20)
    assert service.probes() == ["a", "a"]


def test_what_was_sent_before_a_result_that_is_recorded_was_read(tmp_path: Path, service: Service) -> None:
    """Also where the queue is never empty."""
    outgoing, service.reads = service.outgoing(tmp_path), False
    for probe in ("a", "b", "c"):
        outgoing.deliver(*probed(probe))
    service.records("b")
    beats(outgoing, service, 3600)
    assert service.probes() == ["a", "b", "c", "a"]


def test_what_the_service_reads_and_never_records_is_given_up_after_an_hour(
    tmp_path: Path, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    assert 3600 <= sum(PAUSES_S) < 4000
    outgoing = service.outgoing(tmp_path)
    outgoing.deliver(*probed("poison"))
    beats(outgoing, service, 3600)
    assert outgoing.keys() == {("probe", "poison", 1)}
    beats(outgoing, service, 3600)
    assert service.probes() == ["poison"] * len(PAUSES_S)
    assert (outgoing.keys(), files(tmp_path)) == (set(), [".broken"])
    assert f"sent {len(PAUSES_S)} times and never recorded" in caplog.text


def test_a_result_is_on_disk_before_it_is_sent_and_no_flush_sends_it_meanwhile(
    tmp_path: Path, service: Service
) -> None:
    outgoing = service.outgoing(tmp_path)
    service.moves.clear()
    sending = threading.Thread(target=outgoing.deliver, args=probed("a"))
    sending.start()
    while files(tmp_path) != [".json"]:
        pass
    assert outgoing.keys() == {("probe", "a", 1)}
    outgoing.flush()
    service.moves.set()
    sending.join(60.0)
    assert service.probes() == ["a"]


def test_the_next_life_of_the_worker_sends_what_was_kept_in_order(tmp_path: Path, service: Service) -> None:
    service.away = True
    outgoing = service.outgoing(tmp_path)
    for probe in ("a", "b", "c"):
        outgoing.deliver(*probed(probe))
    again = service.outgoing(tmp_path)
    again.flush()
    assert again.keys() == {("probe", probe, 1) for probe in ("a", "b", "c")}
    service.away = False
    again.flush()
    assert service.probes() == ["a", "b", "c"]
    service.records("a", "b", "c")
    again.flush()
    assert files(tmp_path) == []


def test_the_next_life_of_the_worker_sends_nothing_that_was_recorded_meanwhile(
    tmp_path: Path, service: Service
) -> None:
    outgoing = service.outgoing(tmp_path)
    for probe in ("a", "b"):
        outgoing.deliver(*probed(probe))
    service.records("a")
    service.outgoing(tmp_path).flush()
    assert service.probes() == ["a", "b", "b"]


def test_a_full_disk_loses_nothing_while_the_worker_lives(small_disk: Path, service: Service) -> None:
    outgoing = service.outgoing(small_disk / "outgoing")
    with (small_disk / "rest").open("wb") as rest, pytest.raises(OSError, match="No space"):
        while True:
            rest.write(b"x" * 65536)
            rest.flush()
    outgoing.deliver(*probed("a"))
    service.away = True
    outgoing.deliver(*probed("b", text="x" * 100_000))
    service.away = False
    outgoing.flush()
    assert service.probes() == ["a", "b"]
    beats(outgoing, service, 20)
    assert service.probes() == ["a", "b", "a", "b"]
    service.records("a", "b")
    outgoing.flush()
    assert outgoing.keys() == set()
    assert list((small_disk / "outgoing").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"task": "x"}), "null"])
def test_what_is_no_message_is_set_aside_and_keeps_nothing_back(tmp_path: Path, service: Service, text: str) -> None:
    (tmp_path / "0.json").write_text(text)
    task, message = probed("a")
    (tmp_path / "1.json").write_text(json.dumps({"task": task, "message": message}))
    service.outgoing(tmp_path).flush()
    assert service.probes() == ["a"] and files(tmp_path) == [".broken", ".json"]


def test_what_cannot_be_set_aside_is_not_thrown_away(tmp_path: Path, service: Service) -> None:
    (tmp_path / "0.json").write_text("{")
    (tmp_path / "0.broken").mkdir()
    outgoing = service.outgoing(tmp_path)
    outgoing.flush()
    assert (tmp_path / "0.json").read_text() == "{" and service.got == []


def test_what_was_only_half_written_when_the_worker_died_is_gone_in_its_next_life(
    tmp_path: Path, service: Service
) -> None:
    (tmp_path / "0001.new").write_text('{"task": "firstbad.pro')
    service.outgoing(tmp_path).flush()
    assert not list(tmp_path.iterdir()) and not service.got
