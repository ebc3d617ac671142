"""The doctor, on what is really wrong: each kind of trouble is caused here, and told with what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.settings import OF_WORKERS
from service.settings import Settings as ServiceSettings
from tests.conftest import needs
from tests.redis_server import Broker
from tests.worker.bench import Bench
from tests.worker.node import Node
from worker.contract import SERVICE_KEY, VERSION
from worker.doctor import examine
from worker.doctor.finding import Finding
from worker.gpus.health import xids
from worker.settings import OF_SERVICES, Settings


def settings(folder: Path, **changed: object) -> Settings:
    """Of a node on which nothing is looked at that takes long, but for what a test wants."""
    values: dict[str, object] = {
        "work_dir": folder / "work",
        "gpu_dir": folder / "gpus",
        "redis_url": "redis://127.0.0.1:1/0",
        "sandboxes": (),
        "gpus": "none",
        **changed,
    }
    return Settings(**values)  # type: ignore[arg-type]


def found(told: Settings, check: str) -> Finding:
    """The first that is not well of this check, else the first."""
    of_it = [each for each in examine(told) if each.check == check]
    assert of_it, check
    return next((each for each in of_it if each.state != "ok"), of_it[0])


@pytest.fixture(scope="module")
def redis() -> Iterator[Broker]:
    needs("redis")
    made = Broker()
    yield made
    made.stop()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "worker", "doctor", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_a_node_that_is_well_is_told_so_and_nothing_is_left_behind(redis: Broker, tmp_path: Path) -> None:
    redis.client().set(SERVICE_KEY, str(VERSION))
    environment = {
        "FIRSTBAD_REDIS_URL": redis.url,
        "FIRSTBAD_WORK_DIR": str(tmp_path / "work"),
        "FIRSTBAD_GPU_DIR": str(tmp_path / "gpus"),
        "FIRSTBAD_SANDBOXES": "process",
        "FIRSTBAD_LABELS": "nvlink",
        "FIRSTBAD_STORE_URL": str(tmp_path / "store"),
    }
    keys = sorted(redis.client().keys())
    ended = run("--json", **environment)
    told = json.loads(ended.stdout)
    assert ended.returncode == 0 and told["problem"] == 0, told
    states = {each["check"]: each["state"] for each in told["findings"]}
    wanted = {"settings", "redis", "redis.memory", "clock", "service", "work_dir", "store", "git", "process", "gpus"}
    assert wanted <= states.keys()
    assert list(tmp_path.iterdir()) == [] and sorted(redis.client().keys()) == keys
    assert run(**environment).stdout.splitlines()[-1].startswith("This node can work: 0 problems")


def test_a_reader_who_has_had_enough_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "worker", "doctor"]
    environment = {**os.environ, "FIRSTBAD_WORK_DIR": str(tmp_path / "work")}
    ended = subprocess.run(command, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert ended.stderr == ""


def test_each_wrong_setting_is_told(tmp_path: Path) -> None:
    ended = run("--json", FIRSTBAD_SLOTS="many", FIRSTBAD_ROLES="built", FIRSTBAD_WORK_DIR=str(tmp_path))
    told = json.loads(ended.stdout)
    assert ended.returncode == 1 and told["problem"] == 2
    assert {each["found"].partition(":")[0] for each in told["findings"]} == {"FIRSTBAD_SLOTS", "FIRSTBAD_ROLES"}


def test_a_setting_that_is_none_and_folders_that_are_none_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTBAD_SLOTTS", "4")
    monkeypatch.setenv("FIRSTBAD_KEEP_LOG", "30d")
    monkeypatch.setenv("FIRSTBAD_HOME", str(tmp_path))
    said = [each for each in examine(settings(tmp_path, visible=(tmp_path / "none",))) if each.check == "settings"]
    assert any("FIRSTBAD_SLOTTS" in each.found and "FIRSTBAD_SLOTS?" in each.advice for each in said)
    assert any("FIRSTBAD_KEEP_LOG " in each.found and "FIRSTBAD_KEEP_LOGS?" in each.advice for each in said)
    assert any(str(tmp_path / "none") in each.found for each in said)
    assert len([each for each in said if "is no setting" in each.found]) == 2


def test_each_side_knows_the_settings_of_the_other_so_that_it_does_not_take_them_for_misspelt() -> None:
    ours, theirs = set(Settings.model_fields), set(ServiceSettings.model_fields)
    assert theirs - ours == OF_SERVICES
    assert ours - theirs == OF_WORKERS


def test_a_worker_names_what_it_takes_for_misspelt_as_it_starts(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "FIRSTBAD_LOG_FROMAT": "json",
        "FIRSTBAD_HOME": "/x",
        "FIRSTBAD_WORK_DIR": "/dev/null/x",
    }
    command = [sys.executable, "-m", "worker"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "FIRSTBAD_LOG_FROMAT is no setting; did you mean FIRSTBAD_LOG_FORMAT?" in ended.stderr
    assert ended.stderr.count("is no setting") == 1


def test_a_redis_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    told = found(settings(tmp_path, redis_url="redis://:geheim@127.0.0.1:1/0"), "redis")
    assert told.state == "problem" and "127.0.0.1:1" in told.found and "geheim" not in told.found
    assert "FIRSTBAD_REDIS_URL" in told.advice


def test_a_redis_that_stands_still_is_a_problem(broker: Broker, tmp_path: Path) -> None:
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    told = found(settings(tmp_path, redis_url=broker.url), "redis")
    broker.process.send_signal(signal.SIGCONT)
    assert told.state == "problem" and "does not answer in time" in told.found


def test_a_redis_that_wants_a_password_is_a_problem(broker: Broker, tmp_path: Path) -> None:
    broker.client().config_set("requirepass", "geheim")
    told = found(settings(tmp_path, redis_url=broker.url), "redis")
    assert told.state == "problem" and "password" in told.found and "redis://:PASSWORD@" in told.advice


def test_a_redis_that_forgets_when_it_is_full_is_a_problem_and_one_that_could_a_warning(
    redis: Broker, tmp_path: Path
) -> None:
    client, told = redis.client(), settings(tmp_path, redis_url=redis.url)
    assert found(told, "redis.memory").state == "ok"
    client.config_set("maxmemory-policy", "allkeys-lru")
    assert found(told, "redis.memory").state == "warning"
    client.config_set("maxmemory", "100mb")
    wrong = found(told, "redis.memory")
    assert wrong.state == "problem" and "allkeys-lru" in wrong.found and "noeviction" in wrong.advice
    client.config_set("maxmemory", "0")
    client.config_set("maxmemory-policy", "noeviction")


def test_a_redis_that_is_a_replica_is_a_problem(broker: Broker, tmp_path: Path) -> None:
    broker.client().replicaof("127.0.0.1", "1")
    told = found(settings(tmp_path, redis_url=broker.url), "redis.role")
    assert told.state == "problem" and "primary" in told.advice


def test_a_service_of_another_version_is_a_problem_and_none_a_warning(redis: Broker, tmp_path: Path) -> None:
    client, told = redis.client(), settings(tmp_path, redis_url=redis.url)
    client.set(SERVICE_KEY, str(VERSION + 1))
    wrong = found(told, "service")
    assert wrong.state == "problem" and str(VERSION + 1) in wrong.found and "Upgrade" in wrong.advice
    client.delete(SERVICE_KEY)
    assert found(told, "service").state == "warning"


def test_a_clock_that_is_off_is_told(redis: Broker, tmp_path: Path) -> None:
    # The machine's clock is everybody's; the one that Python asks is not.
    code = (
        "import json, time, sys\nreal = time.time\ntime.time = lambda: real() + 30\n"
        "from worker.doctor.broker import broker\n"
        "print(json.dumps([(e.state, e.found) for e in broker(sys.argv[1], 'n') if e.check == 'clock']))"
    )
    said = subprocess.run([sys.executable, "-c", code, redis.url], capture_output=True, text=True, check=True).stdout
    ((state, text),) = json.loads(said)
    assert state == "warning" and ("30." in text or "29." in text) and "ahead of" in text


def test_a_disk_that_is_full_and_one_that_is_closed_are_problems(small_disk: Path, tmp_path: Path) -> None:
    told = settings(tmp_path, work_dir=small_disk / "work", store_url=str(small_disk / "store"))
    for check in ("work_dir.disk", "store.disk"):
        assert found(told, check).state == "problem"
    assert "in memory" in found(told, "work_dir.mount").found
    with (small_disk / "rest").open("wb") as rest, pytest.raises(OSError, match="No space"):
        while True:
            rest.write(b"x" * 65536)
            rest.flush()
    assert "no space left" in found(told, "work_dir").found
    (small_disk / "rest").unlink()
    subprocess.run(["mount", "-o", "remount,noexec", small_disk], check=True)
    assert found(told, "work_dir.mount").state == "problem"
    subprocess.run(["mount", "-o", "remount,ro,exec", small_disk], check=True)
    for check in ("work_dir", "store"):
        closed = found(told, check)
        assert closed.state == "problem" and "read-only" in closed.found and "writ" in closed.advice


def test_a_folder_that_this_user_may_not_write_is_a_problem(tmp_path: Path) -> None:
    needs("root")
    # How many of these there are depends on how the tests are run.
    for folder in (tmp_path, *(each for each in tmp_path.parents if each.name.startswith(("pytest-", "popen-")))):
        folder.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o755)
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom worker.doctor import places\nos.setuid(65534)\n"
        "print([(e.state, e.found) for e in places.work_dir(Path(sys.argv[1])) if e.check == 'work_dir'])"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(closed)], capture_output=True, text=True, check=True)
    assert "('problem'," in ended.stdout and "permission denied" in ended.stdout


def test_a_file_in_the_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "work").touch()
    assert found(settings(tmp_path), "work_dir").state == "problem"


def test_a_store_that_is_not_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_DEFAULT_REGION": "x"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "abcdefgh")
    told = found(settings(tmp_path, store_url="s3://bucket/x"), "store")
    assert told.state == "problem" and "AWS_ENDPOINT_URL" in told.advice


def test_certificates_that_do_not_exist_and_proxies_that_are_none_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "none.pem"))
    monkeypatch.setenv("https_proxy", "proxy.inside:3128")
    said = [each for each in examine(settings(tmp_path)) if each.check == "passed" and each.state == "problem"]
    assert any("PIP_CERT" in each.found for each in said) and any("https_proxy" in each.found for each in said)


def test_a_secret_without_a_value_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERE", "value-of-it")
    told = found(settings(tmp_path, secrets=("THERE", "NOT_THERE")), "secrets")
    assert told.state == "warning" and "NOT_THERE" in told.found and "value-of-it" not in str(told)


def test_a_path_without_tools_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = settings(tmp_path, sandboxes=("process",))
    assert "apt-get install git" in found(told, "git").advice
    weak = found(told, "process")
    assert weak.state == "warning" and "bwrap is not installed" in weak.found and "bubblewrap" in weak.advice
    assert "no C compiler" in found(told, "compilers").found


def test_an_engine_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    told = found(settings(tmp_path, sandboxes=("docker",), docker_host=f"unix://{tmp_path}/none.sock"), "docker")
    assert told.state == "problem" and "cannot be reached" in told.found
    assert "FIRSTBAD_SANDBOXES=process" in told.advice


def test_an_engine_that_works_runs_a_container_and_keeps_none(docker_image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)
    checks = {each.check: each for each in examine(settings(tmp_path, sandboxes=("docker",)))}
    assert checks["docker"].state == "ok" and "API" in checks["docker"].found
    assert checks["docker.container"].state == "ok", checks["docker.container"]
    kept = ["docker", "ps", "--all", "--quiet", "--filter", "label=firstbad.doctor"]
    assert subprocess.run(kept, capture_output=True, text=True, check=True).stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_models_with_a_login_or_without_one_is_a_problem(tmp_path: Path) -> None:
    cache = tmp_path / "models"
    assert found(settings(tmp_path, model_cache=cache), "models").state == "problem"
    (cache / "hub" / "models--A--b" / "snapshots" / "1").mkdir(parents=True)
    assert "A/b" in found(settings(tmp_path, model_cache=cache), "models").found
    (cache / "token").touch()
    assert "login" in found(settings(tmp_path, model_cache=cache), "models").found


def test_few_open_files_are_a_warning(tmp_path: Path) -> None:
    shell = f'ulimit -n 512 && exec "{sys.executable}" -m worker doctor --json'
    environment = {**os.environ, "FIRSTBAD_WORK_DIR": str(tmp_path / "work"), "FIRSTBAD_SANDBOXES": "process"}
    ended = subprocess.run(["/bin/sh", "-c", shell], env=environment, capture_output=True, text=True, check=False)
    said: list[dict[str, Any]] = json.loads(ended.stdout)["findings"]
    (files,) = [each for each in said if each["check"] == "limits.files"]
    assert files["state"] == "warning" and "512" in files["found"]


def test_who_works_here_and_what_waits_is_told(node: Node, process_bench: Bench, tmp_path: Path) -> None:
    node.ready()
    assert node.process is not None
    told = settings(tmp_path, work_dir=node.work_dir)
    assert f"pid {node.process.pid}" in found(told, "left").found
    outgoing = node.work_dir / "outgoing"
    (outgoing / "1.broken").touch()
    assert str(outgoing) in found(told, "left.broken").found
    (outgoing / "2.json").touch()
    assert not [each for each in examine(told) if each.check == "left.results"]
    os.utime(outgoing / "2.json", (0, 0))
    assert "1 results wait" in found(told, "left.results").found
    node.end(signal.SIGKILL)
    (outgoing / "2.json").touch()
    assert "1 results wait" in found(told, "left.results").found
    assert "nothing" in found(told, "left").found


def test_declared_cards_are_not_taken_for_real_ones(tmp_path: Path) -> None:
    told = found(settings(tmp_path, gpus="2xFake-80GB"), "gpus")
    assert told.state == "warning" and "2 × Fake-80GB" in told.found


def test_errors_of_cards_are_found_in_the_kernels_log(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    line = (
        "4,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    )
    log.write_text("6,1,2,-;usb 1-1: new device\n" + line + line.replace("79", "48"))
    assert [each.partition(" on ")[0] for each in xids(log)] == ["Xid 79", "Xid 48"]
    assert xids(tmp_path / "none") == ()


def test_the_command_of_the_service_asks_the_workers_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from service.cli import main; main()", "doctor", "--json"]
    environment = {**os.environ, "FIRSTBAD_WORK_DIR": str(tmp_path), "FIRSTBAD_SLOTS": "many"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "FIRSTBAD_SLOTS" in json.loads(ended.stdout)["findings"][0]["found"]
