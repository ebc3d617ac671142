"""What the command tells of sandboxes that do not keep everything apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.domain.bisection import Node
from tests.cli.conftest import Terminal
from tests.cli.test_submit import REQUEST
from tests.fakes.flow import START, FakeFlow

BARE = {"process.isolation": "pid", "process.not_isolated": "net,mount,gpus", "docker.fault": "no engine. Start it"}
SOUND = {"process.isolation": "pid,net,mount", "process.not_isolated": "none", "docker.not_isolated": "metadata"}


@pytest.fixture(autouse=True)
def nodes(flow: FakeFlow) -> None:
    flow.machines = (
        Node("bare-1", 1, START, "alive", facts=BARE),
        Node("bare-2", 1, START, "alive", facts=BARE),
        Node("sound", 1, START, "alive", facts=SOUND),
        Node("gone", 1, START, "left", facts={**BARE, "docker.fault": ""}),
        Node("builder", 1, START, "alive", roles=("build",), facts={"process.not_isolated": "net"}),
    )


def notes(text: str) -> list[str]:
    return [line.removeprefix("note: ") for line in text.splitlines() if line.startswith("note: ")]


def submitted(terminal: Terminal, folder: Path, more: str) -> list[str]:
    (folder / "request.yaml").write_text(REQUEST + more)
    result = terminal.run("submit", "request.yaml", "--wait", "0")
    assert result.status == 0, result.err
    return notes(result.out)


def test_nodes_are_listed_with_what_they_do_not_isolate(terminal: Terminal) -> None:
    assert notes(terminal.run("nodes").out) == [
        "the docker sandbox of sound does not keep runs from the cloud's metadata service",
        "the process sandbox of bare-1, bare-2 does not keep runs from its network, its files, other GPUs",
        "the docker sandbox of bare-1 does not work: no engine. Start it",
        "the docker sandbox of bare-2 does not work: no engine. Start it",
    ]


def test_nodes_of_another_version_and_with_a_store_that_cannot_be_written_are_told(
    terminal: Terminal, flow: FakeFlow
) -> None:
    facts = {"version.fault": "the service has version 6", "store.fault": "nothing can be stored: it is read-only"}
    flow.machines = (Node("old", 1, START, "alive", facts={**SOUND, "docker.not_isolated": "none", **facts}),)
    assert notes(terminal.run("nodes").out) == [
        "old: the service has version 6",
        "old: nothing can be stored: it is read-only",
    ]


def test_who_submits_is_told_what_his_sandbox_does_not_isolate(terminal: Terminal, tmp_path: Path) -> None:
    assert submitted(terminal, tmp_path, "sandbox: process\n") == [
        "the process sandbox of bare-1, bare-2 does not keep runs from its network, its files, other GPUs"
    ]
    assert submitted(terminal, tmp_path, "sandbox: docker\nimage: python:3.12\n") == [
        "the docker sandbox of sound does not keep runs from the cloud's metadata service"
    ]


def test_a_network_is_the_nodes_own_in_a_process_sandbox(terminal: Terminal, tmp_path: Path) -> None:
    told = submitted(terminal, tmp_path, "sandbox: process\nnetwork: bridge\n")
    assert "the process sandbox of sound does not keep runs from its network" in told
