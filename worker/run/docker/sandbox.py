"""The docker sandbox itself: one container a run, which may outlive the worker and be taken up by it again."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import requests.exceptions
from docker.client import DockerClient, from_env
from docker.errors import DockerException, NotFound

from worker.errors import NodeFault, fault_of
from worker.kept import Item
from worker.run import job as jobs
from worker.run import models
from worker.run.docker import container as containers
from worker.run.docker import images, networks
from worker.run.docker.container import LABEL
from worker.run.docker.engine import LOOK, faults, kill, remove
from worker.run.docker.pulled import Pulled
from worker.run.job import Errand, Job
from worker.run.processors import bound
from worker.run.sandbox import GRACE_S, PLACE, Left, Ran, base_env
from worker.run.stop import Stop
from worker.run.view import uv

log = logging.getLogger(__name__)

CALL_S, PULL_S = 60, 3600.0
ISOLATED = ("pid", "mount", "ipc", "uts", "net", "user", "pids", "memory", "cpus", "shm")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class DockerSandbox:
    """`host`: the engine's URL, None for the usual one; its machine must see the job folders under the same paths.

    `worker`: the name by which its containers are found. `other`: who works inside when we are root. `models`: the
    node's folder of models. `pull_s`: the longest time that pulling an image may take.
    `pulled`: where it notes which images it pulled.
    """

    inside: Path
    worker: str
    other: int
    host: str | None = None
    models: Path | None = None
    pull_s: float = PULL_S
    pulled: Path | None = None
    kind: str = field(default="docker", init=False)
    python: None = field(default=None, init=False)
    #: While orphans are still to be removed: the ids of those that go on.
    _owed: frozenset[str] | None = field(default=None, init=False)
    #: Jobs that left a container, or may have, since the engine was away.
    _lost: set[str] = field(default_factory=set, init=False)
    _settling: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def uid(self) -> int | None:
        return self.other if os.geteuid() == 0 else None

    @cached_property
    def _client(self) -> DockerClient:
        with faults():
            if self.host is not None:
                return DockerClient(base_url=self.host, timeout=CALL_S)
            return from_env(timeout=CALL_S)

    def place(self, job: Job) -> str:
        return PLACE

    def stands_on(self, image: str | None, stop: Stop) -> str:
        return str(self._image(image, stop).id)

    def _image(self, name: str | None, stop: Stop) -> Any:
        image, fresh = images.found(self._client, name, stop, self.pull_s)
        if name is not None and self._pulled is not None:
            (self._pulled.note if fresh else self._pulled.use)(name)
        return image

    @cached_property
    def _pulled(self) -> Pulled | None:
        return Pulled(self.pulled) if self.pulled is not None else None

    def kept(self) -> Iterator[Item]:
        return self._pulled.items(self._client) if self._pulled is not None else iter(())

    def facts(self) -> dict[str, str]:
        with faults():
            version = self._client.version()
        return {"sandbox": self.kind, **_isolation(), "engine": version["Version"]}

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        # What was left is found by its labels, which those of this run are like.
        self.settle()
        # Neither the pull nor a network that is missing counts as the run's own time.
        image = self._image(errand.image, stop)
        with (
            faults(errand.image or ""),
            stop.within(errand.timeout_s + GRACE_S),
            self._made(job, errand, image) as made,
        ):
            shielded = networks.shield(self._client, made, errand.network)
            made.start()
            facts = self._of_run(errand, image, shielded)
            return _watched(made, errand.timeout_s + GRACE_S, stop, facts)

    def _of_run(self, errand: Errand, image: Any, shielded: bool) -> dict[str, str]:
        named = images.named(errand.image or "", image.attrs)
        return {**self.facts(), **_isolation(metadata=shielded), **named, **bound(errand.pinned, memory=True)}

    @contextlib.contextmanager
    def _made(self, job: Job, errand: Errand, image: Any) -> Iterator[Any]:
        folder = models.folder(self.models, errand.model_cache, self.uid)
        network = networks.name_of(self._client, errand.network)
        jobs.fill(job, {**errand.order, "env": self._env(image, errand)})
        jobs.hand_over(job, errand.secrets, self.uid)
        try:
            job.container.touch()
        except OSError as error:
            raise fault_of(error, f"writing {job.container}") from error
        labels = {
            **errand.labels,
            "job": job.root.name,
            "worker": self.worker,
            "gpus": ",".join(str(gpu.index) for gpu in errand.gpus),
        }
        user = (self.uid, self.uid) if self.uid is not None else (os.getuid(), os.getgid())
        try:
            made = self._client.containers.create(
                **containers.settings(errand, image.id, user, labels),
                network=network,
                volumes=containers.mounts(job, errand, self.inside, self._uv, folder),
            )
        except (DockerException, requests.exceptions.RequestException):
            self._lost.add(job.root.name)  # the engine may have ended in the midst of it
            raise
        try:
            yield made
        finally:
            self._removed(made, job)

    def _removed(self, made: Any, job: Job) -> None:
        if not remove(made):
            self._lost.add(job.root.name)

    @staticmethod
    def _env(image: Any, errand: Errand) -> dict[str, str]:
        own = dict(entry.split("=", 1) for entry in image.attrs["Config"].get("Env") or [] if "=" in entry)
        # What the image has comes first; our uv stands in where it has none.
        own["PATH"] = f"{own.get('PATH', DEFAULT_PATH)}:{PLACE}/bin"
        cached = base_env(PLACE, cached=errand.cache is not None)
        env = {**cached, **models.variables(errand.model_cache, PLACE, online=errand.online), **errand.env}
        return {**own, **env, **containers.gpu_env(errand.gpus)}

    @cached_property
    def _uv(self) -> Path | None:
        """Ours, beside what runs inside: the engine's machine has our work folder, but not always what we are."""
        found, target = uv(), self.inside.parent / "uv"
        if found is None:
            return None
        try:
            target.unlink(missing_ok=True)
            try:
                target.hardlink_to(found)
            except OSError:  # on another disk
                shutil.copy2(found, target)
        except OSError as error:
            raise fault_of(error, f"copying {found}") from error
        return target

    def left(self) -> tuple[Left, ...]:
        return tuple(
            Left(each.id, {n.removeprefix(LABEL): v for n, v in each.labels.items() if n.startswith(LABEL)},
                 running=each.status == "running")
            for each in self._left()
        )  # fmt: skip

    def _left(self) -> list[Any]:
        with faults():
            # Without their details, which are asked for one by one: any of them may be gone by then.
            found = self._client.containers.list(
                all=True, filters={"label": f"{LABEL}worker={self.worker}"}, sparse=True
            )
            return [each for each in map(self._again, found) if each is not None]

    def _again(self, sparse: Any) -> Any:
        with contextlib.suppress(NotFound):
            return self._client.containers.get(sparse.id)
        return None

    def attach(self, left: Left, job: Job, errand: Errand, stop: Stop) -> Ran:
        with faults(errand.image or ""):
            try:
                made = self._client.containers.get(left.id)
            except NotFound as error:
                raise NodeFault("sandbox", f"the container {left.id[:12]} is gone", LOOK) from error
            try:
                if made.status == "created":
                    # The worker was killed between the two; all that the run needs was in its place by then.
                    networks.shield(self._client, made, errand.network)
                    made.start()
                    made.reload()
                image = self._client.images.get(made.attrs["Image"])
                shielded = errand.network == "none" or networks.NOWHERE in made.attrs["NetworkSettings"]["Networks"]
                facts = self._of_run(errand, image, shielded)
                rest = errand.timeout_s + GRACE_S - _age_s(made.attrs["State"]["StartedAt"])
                with stop.within(max(rest, 0.0) if made.status == "running" else GRACE_S):
                    return _watched(made, max(rest, 0.0) + GRACE_S, stop, facts)
            finally:
                self._removed(made, job)

    def remove_orphans(self, keep: Collection[Left] = ()) -> int:
        with self._settling:
            self._owed = frozenset(left.id for left in keep)
            return self._settled(self._owed)

    def settle(self) -> None:
        with self._settling:
            if self._owed is not None:
                log.info("%d containers of an earlier worker were removed", self._settled(self._owed))
            lost = set(self._lost)
            if lost:
                found = [each for each in self._left() if each.labels.get(f"{LABEL}job") in lost]
                self._lost -= lost - {each.labels[f"{LABEL}job"] for each in found if not remove(each)}

    def _settled(self, kept: frozenset[str]) -> int:
        found = [each for each in self._left() if each.id not in kept]
        for each in found:
            remove(each)
        self._owed = None
        return len(found)


def _isolation(*, metadata: bool = True) -> dict[str, str]:
    """`metadata`: whether the cloud's metadata service is out of reach."""
    return {"isolation": ",".join(ISOLATED), "not_isolated": "none" if metadata else "metadata"}


def _watched(container: Any, within_s: float, stop: Stop, facts: dict[str, str]) -> Ran:
    with stop.calling(lambda: kill(container)):
        status = container.wait(timeout=within_s + GRACE_S)["StatusCode"]
    container.reload()
    state = container.attrs["State"]
    if status != 0 and stop.reason is None and not state["OOMKilled"]:
        said = container.logs(tail=20).decode("utf-8", "replace").strip()[-1000:]
        why = state["Error"] or said or "it said nothing"
        raise NodeFault("sandbox", f"the container ended with {status} before its work did: {why}", LOOK)
    return Ran(status, bool(state["OOMKilled"]), facts)


def _age_s(started: str) -> float:
    """The engine writes nanoseconds, which no reader of times here knows."""
    return (datetime.now(UTC) - datetime.fromisoformat(f"{started[:19]}+00:00")).total_seconds()
