"""Logs of real runs for those who watch, over a real Redis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.adapters.live_logs import RedisLiveLogs
from tests.conftest import needs
from tests.redis_server import Broker
from tests.waiting import eventually
from tests.worker.bench import Bench, stored_log
from worker.assembly import make_pipeline
from worker.contract import ProbeOrder, ProbeResult, Sandbox, lease_key, watched_key
from worker.live import Live
from worker.node import connect
from worker.run.stop import Stop
from worker.settings import Settings

#: Goes on when the test says so, by a file in its working folder.
WAIT = "wait() { while [ ! -e $1 ]; do sleep 0.02; done; }\n"


@dataclass
class Stage:
    """A worker's pipeline with its thread that shows logs, and a service's way to watch them."""

    broker: Broker
    bench: Bench
    live: Live
    logs: RedisLiveLogs
    pool: ThreadPoolExecutor

    def run(self, script: str, **changed: object) -> tuple[ProbeOrder, Future[ProbeResult | None]]:
        order = self.bench.order(WAIT + script, **changed)
        self.broker.client().set(lease_key("probe", order.probe, order.attempt), "me")
        return order, self.pool.submit(self.bench.pipeline.probe, order, Stop())

    def let(self, order: ProbeOrder, name: str) -> None:
        eventually(lambda: (self.tree(order)).is_dir())
        (self.tree(order) / name).touch()

    def tree(self, order: ProbeOrder) -> Path:
        return self.bench.job(order.probe) / "work" / "tree"

    def follow(self, order: ProbeOrder) -> Iterator[bytes]:
        return self.logs.follow("probe", order.probe, order.attempt)


@pytest.fixture
def stage(tmp_path: Path, broker: Broker, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Stage]:
    needs("bwrap")
    live = Live(connect(broker.url))
    settings = Settings(work_dir=tmp_path / "work", allow_file_repos=True, node=f"test-{os.getpid()}")
    made = make_pipeline(settings, live.showing)
    live.start()
    with ThreadPoolExecutor(8) as pool:
        yield Stage(broker, Bench(made, *repository, Sandbox(kind="process")), live, RedisLiveLogs(broker.url), pool)
    live.close()
    live.join()
    for each in made.site.sandboxes.values():
        each.close()


def read_until(pieces: Iterator[bytes], text: bytes, turns: int = 200) -> bytes:
    """What comes until the text has; a turn without anything takes half a second."""
    seen = b""
    while text not in seen:
        seen += next(pieces)
        turns -= 1
        assert turns, seen
    return seen


def test_a_line_is_seen_while_the_run_goes_on(stage: Stage) -> None:
    order, result = stage.run("echo first; wait second; echo second; wait end; echo third; exit 3")
    pieces = stage.follow(order)
    read_until(pieces, b" first\n")
    stage.let(order, "second")
    read_until(pieces, b" second\n")
    assert not result.done()
    stage.let(order, "end")
    seen = read_until(pieces, b" third\n")
    assert seen.count(b"third") == 1
    assert result.result().outcome.exit_status == 3
    pieces.close()


def test_what_a_short_run_says_is_seen_whole(stage: Stage) -> None:
    order = stage.bench.order("echo one; echo two; exit 1")
    pieces = stage.follow(order)
    assert next(pieces) == b""
    stage.bench.pipeline.probe(order, Stop())
    assert [line[25:] for line in read_until(pieces, b"two\n").splitlines()] == [b"one", b"two"]


def test_nothing_is_sent_or_read_while_nobody_watches(stage: Stage) -> None:
    channel = stage.broker.client().pubsub()
    channel.psubscribe("firstbad:live:*")
    assert channel.get_message(timeout=10.0)["type"] == "psubscribe"
    order, result = stage.run("seq 1000; wait end")
    stage.let(order, "end")
    assert result.result().outcome.exit_status == 0
    assert channel.get_message(timeout=0.1) is None


def test_who_comes_late_begins_shortly_before_the_end(stage: Stage) -> None:
    order, result = stage.run("seq 200000; touch written; wait end")
    eventually(lambda: (stage.tree(order) / "written").exists())
    pieces = stage.follow(order)
    seen = read_until(pieces, b" 200000\n")
    assert 60_000 < len(seen) < 70_000
    stage.let(order, "end")
    result.result()


def test_a_flood_is_shown_in_part_and_what_is_left_out_is_counted(stage: Stage) -> None:
    order, result = stage.run("touch began; wait go; head -c 20000000 /dev/zero | tr '\\0' x | fold -w 99; wait end")
    pieces = stage.follow(order)
    assert next(pieces) == b""
    stage.let(order, "go")
    seen = read_until(pieces, b"bytes left out here]")
    stage.let(order, "end")
    assert result.result().outcome.log.bytes > 20_000_000
    seen += b"".join(iter(lambda: next(pieces), b""))
    assert len(seen) < 8_000_000


@pytest.mark.parametrize(
    "script",
    [
        "head -c 3000000 /dev/urandom; echo; echo THE END; wait end",
        "head -c 100000000 /dev/zero | tr '\\0' y; echo; echo THE END; wait end",
        "printf 'no line end: THE END\\n\\r\\0\\033[2J'; printf 'THE END\\n'; wait end",
    ],
    ids=["garbage", "a line of 100 MB", "controls"],
)
def test_whatever_is_written_can_be_followed(stage: Stage, script: str) -> None:
    order, result = stage.run(script, limits={"log_cap_bytes": 4 * 1024 * 1024})
    pieces = stage.follow(order)
    read_until(pieces, b"THE END\n")
    stage.let(order, "end")
    found = result.result()
    assert stored_log(stage.bench.pipeline, found.outcome.log).endswith(b"THE END\n")


def test_five_watch_at_once_and_each_sees_all(stage: Stage) -> None:
    order, result = stage.run("echo first; wait second; echo second; wait third; echo third; wait end")
    early = [stage.follow(order) for _ in range(3)]
    seen = [read_until(pieces, b" first\n") for pieces in early]
    stage.let(order, "second")
    late = [stage.follow(order) for _ in range(2)]
    seen = [text + read_until(pieces, b" second\n") for text, pieces in zip(seen, early, strict=True)]
    seen += [read_until(pieces, b" second\n") for pieces in late]
    stage.let(order, "third")
    seen = [text + read_until(pieces, b" third\n") for text, pieces in zip(seen, [*early, *late], strict=True)]
    assert {tuple(line[25:] for line in text.splitlines()) for text in seen} == {(b"first", b"second", b"third")}
    stage.let(order, "end")
    result.result()


def test_who_goes_away_is_forgotten_and_the_run_is_not_touched(stage: Stage) -> None:
    order, result = stage.run("echo first; wait end; exit 5")
    pieces = stage.follow(order)
    read_until(pieces, b" first\n")
    pieces.close()
    assert 0 < stage.broker.client().ttl(watched_key("probe", order.probe, order.attempt)) <= 5
    stage.let(order, "end")
    assert result.result().outcome.exit_status == 5


def test_a_redis_that_comes_back_empty_is_followed_again(stage: Stage) -> None:
    order, result = stage.run("echo first; wait second; echo second; wait third; echo third; wait end")
    pieces = stage.follow(order)
    seen = read_until(pieces, b" first\n")
    stage.broker.stop()
    stage.let(order, "second")
    seen += b"".join(next(pieces) for _ in range(2))
    stage.broker.start()
    stage.broker.client().set(lease_key("probe", order.probe, order.attempt), "me")
    seen += read_until(pieces, b" second\n")
    stage.let(order, "third")
    seen += read_until(pieces, b" third\n")
    assert [line[25:] for line in seen.splitlines()] == [b"first", b"second", b"third"]
    stage.let(order, "end")
    result.result()


def test_a_run_that_makes_its_log_huge_holds_up_neither_others_nor_itself(stage: Stage) -> None:
    limits = {"log_cap_bytes": 1024 * 1024}
    grown = "echo begun; wait grow; python3 -c 'import os; os.truncate(\"/firstbad/out/log\", 1 << 42)'; wait end"
    order, result = stage.run(grown, limits=limits)
    other, its = stage.run("echo up; wait end; echo told", limits=limits)
    pieces, others = stage.follow(order), stage.follow(other)
    read_until(pieces, b" begun\n")
    read_until(others, b" up\n")
    stage.let(order, "grow")
    read_until(pieces, b"bytes left out here]")
    stage.let(other, "end")
    read_until(others, b" told\n")
    stage.let(order, "end")
    assert result.result(60.0).outcome.exit_status == its.result(60.0).outcome.exit_status == 0


def test_an_answer_of_redis_that_cannot_be_read_ends_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    order, result = stage.run("echo first; wait second; echo second; wait end")
    key = watched_key("probe", order.probe, order.attempt)
    stage.broker.client().set(key, b"\xff")
    eventually(lambda: "does not answer as it should" in caplog.text)
    stage.broker.client().delete(key)
    stage.let(order, "second")
    read_until(stage.follow(order), b" second\n")
    stage.let(order, "end")
    assert result.result().outcome.exit_status == 0
