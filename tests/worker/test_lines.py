"""Log lines of a worker: what each is about, in both formats, and nothing that must not be seen."""

from __future__ import annotations

import base64
import json
import logging
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.worker.bench import Bench
from tests.worker.node import Node
from worker.contract import VERSION, Queue, Task
from worker.lines import hiding

PASSWORD, TOKEN = "geheim-and-long", "hf_notforanyonetosee"


def records(node: Node) -> list[dict[str, Any]]:
    return [json.loads(line) for line in node.log.read_text().splitlines()]


def test_lines_in_json_say_what_they_are_about_and_celerys_are_like_them(node: Node, process_bench: Bench) -> None:
    node.broker.client().config_set("requirepass", PASSWORD)
    node.broker.url = node.broker.url.replace("redis://", f"redis://:{PASSWORD}@")
    node.settings.update(FIRSTBAD_LOG_FORMAT="json", FIRSTBAD_SECRETS="HF_TOKEN", HF_TOKEN=TOKEN)
    node.ready()
    order = process_bench.order("true", secrets=("HF_TOKEN",))
    old = {"version": VERSION - 1, "bisection": "b9", "probe": "p-old", "attempt": 2}
    node.app().send_task(Task.PROBE, args=[old], queue=Queue.PROBE, ignore_result=True)
    node.send(order)
    # What Celery cannot make sense of it shows.
    node.app().send_task("firstbad.unknown", args=[TOKEN], queue=Queue.PROBE, ignore_result=True)
    node.result(order.probe)
    node.result("p-old")
    last = process_bench.order("true")
    node.send(last)
    node.result(last.probe)
    assert node.end() == 0
    found = records(node)
    assert all({"event", "level", "logger", "timestamp"} <= line.keys() for line in found)
    assert any(line["logger"].startswith("celery.") for line in found)
    (refused,) = [line for line in found if "an order is refused" in line["event"]]
    assert (refused["bisection"], refused["probe"], refused["attempt"]) == ("b9", "p-old", 2)
    assert PASSWORD not in node.log.read_text() and TOKEN not in node.log.read_text()
    assert "***HF_TOKEN***" in node.log.read_text()


def test_a_line_of_text_has_the_same(node: Node) -> None:
    node.ready()
    old = {"version": VERSION - 1, "key": "k-old", "attempt": 2}
    node.app().send_task(Task.BUILD, args=[old], queue=Queue.BUILD, ignore_result=True)
    node.next(Task.BUILT, key="k-old")
    assert node.end() == 0
    (line,) = [line for line in node.log.read_text().splitlines() if "an order is refused" in line]
    assert "attempt=2" in line and "build=k-old" in line and "worker.tasks" in line and "\x1b" not in line


@pytest.mark.parametrize("shown", ["{}", "{!r}", "url=redis://me:{}@host/0"])
def test_what_must_not_be_seen_is_not_in_whatever_form(shown: str) -> None:
    hide = hiding({"TOKEN": TOKEN})
    coded = base64.b64encode(f"x{TOKEN}x".encode()).decode()
    for value in (TOKEN, json.dumps({"a": TOKEN}), coded):
        line = hide(None, "", f"before {shown.format(value)} after")
        assert TOKEN not in line and base64.b64encode(TOKEN.encode()).decode()[4:20] not in line
        assert line.startswith("before ") and line.endswith(" after")


def test_a_worker_without_a_thread_that_it_needs_ends_and_says_why() -> None:
    code = """
import threading
from worker.lines import set_up
from worker.threads import Vital
set_up("json", {"TOKEN": "hf_abcdefgh"})
class Heart(Vital):
    def run(self):
        raise ValueError("hf_abcdefgh")
Heart("heart").start()
threading.Event().wait(60)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGTERM
    line = json.loads(ended.stderr)
    assert line["event"] == "the thread heart broke" and "ValueError: ***TOKEN***" in line["exception"]


def test_an_exception_is_part_of_its_line() -> None:
    code = """
import logging
from worker.lines import set_up
set_up("json", {"TOKEN": "hf_abcdefgh"})
try:
    raise ValueError("hf_abcdefgh")
except ValueError:
    logging.getLogger("x").exception("it %s", "failed")
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stderr
    line = json.loads(said)
    assert line["event"] == "it failed" and "ValueError: ***TOKEN***" in line["exception"]
    assert logging.getLevelName(line["level"].upper()) == logging.ERROR
