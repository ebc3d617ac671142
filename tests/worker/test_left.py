"""Containers that outlive the worker: found, gone on with, or removed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.worker.test_docker import inspect
from worker.errors import NodeFault
from worker.run import job as jobs
from worker.run.docker import DockerSandbox
from worker.run.job import Errand, Job
from worker.run.sandbox import Left
from worker.run.stop import CANCELLED, Stop

#: What a worker does with an errand.
WORKER = """
import json, sys
from pathlib import Path
from worker.run import job as jobs
from worker.run.docker import DockerSandbox
from worker.run.job import Errand
from worker.run.stop import Stop

folder, worker, errand = Path(sys.argv[1]), sys.argv[2], Errand(**json.loads(sys.argv[3]))
sandbox = DockerSandbox(jobs.install_inside(folder), worker, 65534)
sandbox.run(jobs.create(folder / "jobs", "left", sandbox.uid), errand, Stop())
"""


#: Stands before the engine, and can end as that does.
ENGINE = """
import asyncio, sys

async def carry(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def join(reader, writer):
    engine = await asyncio.open_unix_connection("/var/run/docker.sock")
    await asyncio.gather(carry(reader, engine[1]), carry(engine[0], writer))

async def main():
    async with await asyncio.start_unix_server(join, sys.argv[1]) as server:
        await server.serve_forever()

asyncio.run(main())
"""


class Life:
    """A worker that can be killed, and the one that comes after it."""

    def __init__(self, folder: Path, image: str) -> None:
        self.folder, self.image, self.name = folder, image, folder.name
        self.job = Job(folder / "jobs" / "left")
        self.sandbox = DockerSandbox(jobs.install_inside(folder), self.name, 65534)

    def errand(self, script: str, timeout_s: float = 60.0, **more: object) -> Errand:
        order = {"script": script, "offline": True, "timeout_s": timeout_s, "log_cap_bytes": 100_000}
        return Errand(order, timeout_s, image=self.image, labels={"probe": "p1"}, **more)  # type: ignore[arg-type]

    def leave(self, errand: Errand, until: str = "begun") -> Left:
        """Kills the worker once the run has said so."""
        told = json.dumps(
            {name: getattr(errand, name) for name in ("order", "timeout_s", "image", "labels", "secrets")}
        )
        process = subprocess.Popen([sys.executable, "-c", WORKER, self.folder, self.name, told])
        try:
            eventually(lambda: until in self.log())
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        (left,) = self.sandbox.left()
        return left

    def log(self) -> str:
        path = self.job.out / "log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def life(tmp_path: Path, docker_image: str) -> Iterator[Life]:
    made = Life(tmp_path, docker_image)
    yield made
    made.sandbox.remove_orphans()
    made.sandbox.close()


def test_a_run_goes_on_without_its_worker_and_is_taken_up_again(life: Life) -> None:
    script = "echo begun with $TOKEN; until test -e go; do sleep 0.05; done; echo went on with $TOKEN; exit 3"
    errand = life.errand(script, secrets={"TOKEN": "of-great-value"})
    left = life.leave(errand)
    assert left.running and left.labels["probe"] == "p1" and left.labels["worker"] == life.name
    (life.job.work / "tree" / "go").touch()
    ran = life.sandbox.attach(left, life.job, errand, Stop())
    outcome = jobs.read_outcome(life.job)
    assert (ran.status, ran.out_of_memory) == (0, False)
    assert outcome is not None and (outcome.exit_status, outcome.ended_in) == (3, "script")
    assert "begun with [TOKEN]" in life.log() and "went on with [TOKEN]" in life.log()
    assert ran.facts["image"] == life.image and ran.facts["isolation"]
    assert life.sandbox.left() == ()


def test_a_run_that_ended_meanwhile_is_answered_at_once(life: Life) -> None:
    errand = life.errand("echo begun; sleep 0.3; exit 4")
    left = life.leave(errand)
    eventually(lambda: inspect(left.id, "{{.State.Status}}") == "exited")
    (again,) = life.sandbox.left()
    assert not again.running
    assert life.sandbox.attach(again, life.job, errand, Stop()).status == 0
    outcome = jobs.read_outcome(life.job)
    assert outcome is not None and outcome.exit_status == 4


def test_a_container_that_was_not_started_yet_is_started(life: Life) -> None:
    errand = life.errand("echo begun; exit 5")
    left = life.leave(errand)
    # As it was before: the same container, of which nothing has run.
    image, command = inspect(left.id, "{{.Image}}"), json.loads(inspect(left.id, "{{json .Config.Cmd}}"))
    binds = [part for bind in json.loads(inspect(left.id, "{{json .HostConfig.Binds}}")) for part in ("-v", bind)]
    life.sandbox.remove_orphans()
    (life.job.out / "outcome.json").unlink(missing_ok=True)
    label = f"firstbad.worker={life.name}"
    subprocess.run(
        ["docker", "create", "--label", label, "--user", "65534", *binds, "--entrypoint", "python3", image, *command],
        check=True,
        capture_output=True,
    )
    (created,) = life.sandbox.left()
    assert not created.running
    assert life.sandbox.attach(created, life.job, errand, Stop()).status == 0
    outcome = jobs.read_outcome(life.job)
    assert outcome is not None and outcome.exit_status == 5


def test_a_run_that_is_taken_up_again_can_be_cancelled(life: Life) -> None:
    errand, stop = life.errand("echo begun; sleep 600"), Stop()
    left = life.leave(errand)
    stop.press(CANCELLED)
    life.sandbox.attach(left, life.job, errand, stop)
    assert jobs.read_outcome(life.job) is None
    assert life.sandbox.left() == ()


def test_the_time_of_a_run_goes_on_too(life: Life) -> None:
    errand = life.errand("echo begun; sleep 600", timeout_s=2.0)
    left = life.leave(errand)
    assert life.sandbox.attach(left, life.job, errand, Stop()).status == 0
    outcome = jobs.read_outcome(life.job)
    assert outcome is not None and outcome.timed_out


def test_a_container_that_is_gone_is_a_fault(life: Life) -> None:
    errand = life.errand("echo begun; sleep 600")
    left = life.leave(errand)
    assert life.sandbox.remove_orphans(keep=[left]) == 0
    assert life.sandbox.remove_orphans() == 1
    with pytest.raises(NodeFault, match="is gone") as raised:
        life.sandbox.attach(left, life.job, errand, Stop())
    assert raised.value.kind == "sandbox"


def test_what_could_not_be_removed_is_removed_before_the_next_run(life: Life, tmp_path: Path) -> None:
    left, engine = life.leave(life.errand("echo begun; sleep 600")), tmp_path / "engine.sock"
    later = DockerSandbox(jobs.install_inside(life.folder), life.name, 65534, f"unix://{engine}")
    for look in (later.left, later.remove_orphans, later.settle):
        with pytest.raises(NodeFault, match="cannot be reached"):
            look()
    engine.symlink_to("/var/run/docker.sock")
    job = jobs.create(life.folder / "jobs", "next", later.uid)
    assert later.run(job, life.errand(f"echo {left.id}"), Stop()).status == 0
    assert life.sandbox.left() == ()
    later.close()


def test_what_an_engine_that_went_away_did_not_remove_is_removed_when_it_is_back(life: Life, tmp_path: Path) -> None:
    socket = tmp_path / "engine.sock"

    def engine() -> subprocess.Popen[bytes]:
        started = subprocess.Popen([sys.executable, "-c", ENGINE, str(socket)])
        eventually(socket.exists)
        return started

    before, job = engine(), jobs.create(life.folder / "jobs", "left", life.sandbox.uid)
    sandbox = DockerSandbox(jobs.install_inside(life.folder), life.name, 65534, f"unix://{socket}")
    with ThreadPoolExecutor() as thread:
        run = thread.submit(sandbox.run, job, life.errand("echo begun; sleep 600"), Stop())
        eventually(lambda: "begun" in life.log())
        before.kill()
        before.wait()
        socket.unlink()
        with pytest.raises(NodeFault):
            run.result(60)
    assert len(life.sandbox.left()) == 1
    after = engine()
    try:
        eventually(lambda: sandbox.settle() or life.sandbox.left() == ())
    finally:
        after.kill()
        after.wait()
    sandbox.close()
