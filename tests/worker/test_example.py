"""The example repository, built and served by the worker as the service would have it done."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from examples.generate import Example, Options, generate
from examples.request import SERVE
from tests.worker.bench import Bench
from worker.contract import Serve, Source


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return generate(tmp_path_factory.mktemp("example") / "tinyserve", Options(seed=3, commits=8, first_bad=5))


@pytest.fixture
def serving(bench: Bench, example: Example) -> Bench:
    return dataclasses.replace(bench, repository=example.path, shas=tuple(commit.sha for commit in example.commits))


def test_the_first_bad_commit_fails_where_its_parent_serves(serving: Bench) -> None:
    found = []
    for number in (4, 5):
        built = serving.build(number=number)
        assert built.wheel is not None, built
        serve = Serve(command=SERVE, within_s=60.0, ready_http="/health")
        found.append(
            serving.outcome(
                serve=serve,
                check="tinyserve bench --requests 3",
                failure="AssertionError",
                source=serving.source(number),
                wheel=built.wheel.path,
                wheel_sha256=built.wheel.sha256,
            )
        )
    good, bad = found
    assert (good.exit_status, good.ready, good.ended_in) == (0, True, "check"), serving.text(good)
    assert [phase.name for phase in good.phases] == ["fetch", "install", "start", "ready", "check"]
    assert (bad.ready, bad.ended_in) == (False, "start") and bad.exit_status not in (0, None), serving.text(bad)
    assert good.failure_seen is None and bad.failure_seen is not None
    assert any("RuntimeError" in line for line in bad.log.last_lines)


def test_the_same_source_is_told_by_its_mirror_and_by_its_address(serving: Bench, tmp_path: Path) -> None:
    by_address = Source(repo=str(serving.repository), sha=serving.shas[5])
    script = "find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"
    outcomes = [serving.outcome(script, source=source) for source in (serving.source(5), by_address)]
    assert outcomes[0].log.last_lines == outcomes[1].log.last_lines
