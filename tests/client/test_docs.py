"""The examples of docs/client.md, one after the other as they stand there."""

from __future__ import annotations

import inspect
import re
import threading
from pathlib import Path

import pytest

from firstbad import Client
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow, sha

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()


def test_the_examples_do_what_they_say(flow: FakeFlow, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    flow.find(flow.submit(SUBMISSION, TESTER).id, 5)
    done = threading.Event()

    def bisect() -> None:
        while not done.wait(0.05):
            for id in [id for id, each in flow.kept.items() if each.state == "queued"]:
                flow.find(id, 5)

    service = threading.Thread(target=bisect)
    service.start()
    space: dict[str, object] = {}
    try:
        for example in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            text = example.replace("http://127.0.0.1:8377", url).replace('token="…"', 'token="fb_x"')
            exec(compile(text, "docs/client.md", "exec"), space)
    finally:
        done.set()
        service.join()
    said = capsys.readouterr().out
    assert f"found {sha(5)[:10]} is the first bad commit" in said
    assert "'god' is no key of a request did you mean good?" in said


def test_every_method_is_told() -> None:
    told = set(re.findall(r"`(\w+)\(", PAGE))
    assert {name for name in vars(Client) if not name.startswith("_")} <= told


def test_every_method_says_no_other_parameter() -> None:
    for name, given in re.findall(r"`(\w+)\(([^)`]*)\)`", PAGE):
        found = getattr(Client, name, None)
        words = {word.partition("=")[0].strip() for word in given.split(",")} - {"", "…"}
        if found is not None and "…" not in given:
            assert words <= set(inspect.signature(found).parameters) | {"probe"}, name
