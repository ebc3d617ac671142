"""Results on their way: kept before they are sent, sent once the broker is back."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from worker.outgoing import Outgoing, Unreachable


class Broker:
    """Takes messages, or none; may stand still."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.away = False
        self.moves = threading.Event()
        self.moves.set()

    def send(self, task: str, message: dict[str, Any]) -> None:
        self.moves.wait(60.0)
        if self.away:
            raise Unreachable("it is away")
        self.got.append((task, message))


@pytest.fixture
def broker() -> Broker:
    return Broker()


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def test_what_is_sent_at_once_leaves_nothing(tmp_path: Path, broker: Broker) -> None:
    Outgoing(tmp_path, broker.send).deliver("probed", {"n": 1})
    assert broker.got == [("probed", {"n": 1})] and files(tmp_path) == []


def test_a_result_is_on_disk_before_it_is_sent_and_no_flush_sends_it_meanwhile(tmp_path: Path, broker: Broker) -> None:
    outgoing = Outgoing(tmp_path, broker.send)
    broker.moves.clear()
    sending = threading.Thread(target=outgoing.deliver, args=("probed", {"n": 1}))
    sending.start()
    while files(tmp_path) != [".json"]:
        pass
    outgoing.flush()
    broker.moves.set()
    sending.join(60.0)
    assert broker.got == [("probed", {"n": 1})] and files(tmp_path) == []


def test_the_next_life_of_the_worker_sends_what_was_kept_in_order(tmp_path: Path, broker: Broker) -> None:
    broker.away = True
    for number in range(3):
        Outgoing(tmp_path, broker.send).deliver("probed", {"n": number})
    again = Outgoing(tmp_path, broker.send)
    again.flush()
    assert files(tmp_path) == [".json"] * 3
    broker.away = False
    again.flush()
    assert [message["n"] for _, message in broker.got] == [0, 1, 2] and files(tmp_path) == []


def test_a_full_disk_loses_nothing_while_the_worker_lives(small_disk: Path, broker: Broker) -> None:
    outgoing = Outgoing(small_disk / "outgoing", broker.send)
    with (small_disk / "rest").open("wb") as rest, pytest.raises(OSError, match="No space"):
        while True:
            rest.write(b"x" * 65536)
            rest.flush()
    outgoing.deliver("probed", {"n": 0})
    assert broker.got == [("probed", {"n": 0})]
    broker.away = True
    outgoing.deliver("probed", {"n": 1, "text": "x" * 100_000})
    broker.away = False
    outgoing.flush()
    outgoing.flush()
    assert [message["n"] for _, message in broker.got] == [0, 1]
    assert list((small_disk / "outgoing").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"task": "x"}), "null"])
def test_what_is_no_message_is_set_aside_and_keeps_nothing_back(tmp_path: Path, broker: Broker, text: str) -> None:
    (tmp_path / "0.json").write_text(text)
    (tmp_path / "1.json").write_text(json.dumps({"task": "probed", "message": {"n": 1}}))
    Outgoing(tmp_path, broker.send).flush()
    assert broker.got == [("probed", {"n": 1})] and files(tmp_path) == [".broken"]
