"""firstbad logs --follow, as the program that a user starts."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from service.cli.status import Status
from service.domain.bisection import Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import LIVE_BISECTIONS, BuildState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow


@pytest.fixture
def probe(flow: FakeFlow) -> Probe:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    return flow.plan(id, 8)


def test_a_log_is_followed_line_by_line_until_the_probe_ends(terminal: Terminal, flow: FakeFlow, probe: Probe) -> None:
    pipe = flow.live.pipe("probe", probe.id)
    process = terminal.start("logs", "-f", f"{probe.bisection_id[:4]}.1")
    assert process.stdout is not None
    for line in (b"one\n", b"two\n"):
        pipe.put(line)
        assert process.stdout.readline() == line
    flow.judge(probe, Verdict.BAD, "it failed")
    assert (process.communicate(timeout=60)[0], process.returncode) == (b"", Status.OK)


def test_ctrl_c_ends_the_following_and_nothing_else(terminal: Terminal, flow: FakeFlow, probe: Probe) -> None:
    build = flow.build(probe, BuildState.RUNNING, None, attempt=1)
    flow.tried[probe.id] = replace(probe, build_key=build.key)
    pipe = flow.live.pipe("build", build.key)
    process = terminal.start("logs", "--follow", "--build", probe.id)
    assert process.stdout is not None
    pipe.put(b"compiling\n")
    assert process.stdout.readline() == b"compiling\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == (b"", b"", Status.INTERRUPTED)
    assert flow.bisection(probe.bisection_id).state in LIVE_BISECTIONS
