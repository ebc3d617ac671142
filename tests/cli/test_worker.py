"""firstbad worker: the worker itself, with what the options say."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Terminal
from tests.redis_server import Broker
from tests.waiting import eventually
from worker.contract import Queue


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.stop()


def test_it_comes_with_what_the_options_say_and_ends_by_a_signal(terminal: Terminal, broker: Broker) -> None:
    options = ("--redis", broker.url, "--work-dir", "work", "--node", "node-7", "--labels", "nvlink", "--slots", "3")
    alone = terminal.with_env(FIRSTBAD_SANDBOXES="process", FIRSTBAD_GPUS="none", FIRSTBAD_SLOTS="2")
    with alone.start("worker", *options) as process:
        heard: list[dict[str, object]] = []

        def booted() -> bool:
            got = broker.client().brpop([Queue.CONTROL], timeout=1)
            if got is not None:
                heard.append(json.loads(base64.b64decode(json.loads(got[1])["body"]))[0][0])
            return any(message.get("event") == "booted" for message in heard)

        eventually(booted)
        (said,) = [message for message in heard if message.get("event") == "booted"]
        assert (said["node"], said["slots"]) == ("node-7", 3)
        assert (terminal.folder / "work").is_dir()
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_what_it_cannot_use_is_told_in_a_line(terminal: Terminal) -> None:
    for arguments in (("--redis", "nonsense"), ("--roles", "eat")):
        done = terminal.run("worker", *arguments)
        assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert arguments[1] in done.err
    assert terminal.run("worker", "--slots", "0").status == 2
