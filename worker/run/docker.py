"""The docker sandbox: one container a run, with nothing that it does not need. Only this module knows the engine."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import requests.exceptions
from docker.client import DockerClient, from_env
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import LogConfig, Ulimit

from worker.errors import NodeFault, fault_of
from worker.run import job as jobs
from worker.run.job import Errand, Job
from worker.run.sandbox import GRACE_S, PLACE, Ran, base_env
from worker.run.stop import Stop
from worker.run.view import uv

log = logging.getLogger(__name__)

LABEL = "firstbad."
NETWORK = "firstbad"
SHM_BYTES = 1024**3
CALL_S = 60
ISOLATED = "pid,mount,ipc,uts,net,user,pids,memory"
_ID, _TAG = re.compile(r"sha256:[0-9a-f]{64}"), re.compile(r":[^/:]*$")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class DockerSandbox:
    """`host`: the engine's URL, None for the usual one; its machine must see the job folders under the same paths.

    `worker`: the name by which its containers are found.
    """

    kind = "docker"
    python = None

    def __init__(self, inside: Path, worker: str, uid: int, host: str | None = None) -> None:
        self._inside, self._worker, self._host = inside, worker, host
        self.uid = uid if os.geteuid() == 0 else None

    @cached_property
    def _client(self) -> DockerClient:
        with faults():
            if self._host is not None:
                return DockerClient(base_url=self._host, timeout=CALL_S)
            return from_env(timeout=CALL_S)

    def place(self, job: Job) -> str:
        return PLACE

    def stands_on(self, image: str | None) -> str:
        return str(self._image(image).id)

    def _image(self, name: str | None) -> Any:
        if name is None:
            raise NodeFault("order", "a docker sandbox needs an image", "Name one in the recipe.")
        with faults(name):
            return self._client.images.get(name)

    def facts(self) -> dict[str, str]:
        with faults():
            version = self._client.version()
        return {"sandbox": self.kind, "isolation": ISOLATED, "not_isolated": "none", "engine": version["Version"]}

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        image = self._image(errand.image)
        with faults(errand.image or ""), stop.within(errand.timeout_s + GRACE_S):
            jobs.fill(job, {**errand.order, "env": self._env(image, errand)})
            container = self._client.containers.create(**self._settings(job, errand, image.id))
            try:
                return self._watch(container, errand, stop, {**self.facts(), **_named(errand.image or "", image.attrs)})
            finally:
                remove(container)

    def _watch(self, container: Any, errand: Errand, stop: Stop, facts: dict[str, str]) -> Ran:
        container.start()
        with stop.calling(lambda: kill(container)):
            status = container.wait(timeout=errand.timeout_s + 2 * GRACE_S)["StatusCode"]
        container.reload()
        state = container.attrs["State"]
        if status != 0 and stop.reason is None and not state["OOMKilled"]:
            said = container.logs(tail=20).decode("utf-8", "replace").strip()[-1000:]
            message = (
                f"the container ended with {status} before its work did: {state['Error'] or said or 'it said nothing'}"
            )
            raise NodeFault("sandbox", message, "See the log of the container engine.")
        return Ran(status, bool(state["OOMKilled"]), facts)

    @staticmethod
    def _env(image: Any, errand: Errand) -> dict[str, str]:
        own = dict(entry.split("=", 1) for entry in image.attrs["Config"].get("Env") or [] if "=" in entry)
        # What the image has comes first; our uv stands in where it has none.
        own["PATH"] = f"{own.get('PATH', DEFAULT_PATH)}:{PLACE}/bin"
        return {**own, **base_env(PLACE, cached=errand.cache is not None), **errand.env}

    def _settings(self, job: Job, errand: Errand, image: str) -> dict[str, Any]:
        user = self.uid if self.uid is not None else os.getuid()
        group = self.uid if self.uid is not None else os.getgid()
        settings: dict[str, Any] = {
            # By its id, so that what the outcome says is what ran, also when the name is given away meanwhile.
            "image": image,
            "entrypoint": ["python3"],
            "command": jobs.command(PLACE),
            "labels": {f"{LABEL}{name}": value for name, value in {**errand.labels, "worker": self._worker}.items()},
            "user": f"{user}:{group}",
            "working_dir": f"{PLACE}/work",
            "hostname": "firstbad",
            "network": self._network() if errand.online else "none",
            "volumes": self._mounts(job, errand),
            "read_only": True,
            "tmpfs": {"/run": "rw,nosuid,nodev,size=16m", "/var/tmp": "rw,nosuid,nodev,size=256m,mode=1777"},
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "pids_limit": errand.pids,
            "shm_size": SHM_BYTES,
            "ulimits": [Ulimit(name="core", soft=0, hard=0)],
            "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": "1m", "max-file": "1"}),
            # No init of the engine's: what runs inside is process 1 itself, and so cannot be killed from within.
            "init": False,
        }
        if errand.memory_bytes is not None:
            settings.update(mem_limit=errand.memory_bytes, memswap_limit=errand.memory_bytes)
        return settings

    def _mounts(self, job: Job, errand: Errand) -> dict[str, dict[str, str]]:
        mounts = {
            str(job.inputs): {"bind": f"{PLACE}/in", "mode": "ro"},
            str(self._inside): {"bind": f"{PLACE}/inside", "mode": "ro"},
            str(job.out): {"bind": f"{PLACE}/out", "mode": "rw"},
            str(job.work): {"bind": f"{PLACE}/work", "mode": "rw"},
            str(job.work / "tmp"): {"bind": "/tmp", "mode": "rw"},
        }
        if errand.cache is not None:
            mounts[str(errand.cache)] = {"bind": f"{PLACE}/cache", "mode": "rw"}
        if errand.environment is not None:
            mode = "rw" if errand.prepares else "ro"
            mounts[str(errand.environment)] = {"bind": f"{PLACE}/env", "mode": mode}
        if self._uv is not None:
            mounts[str(self._uv)] = {"bind": f"{PLACE}/bin/uv", "mode": "ro"}
        for path in errand.files if errand.online else ():
            mounts[str(path)] = {"bind": str(path), "mode": "ro"}
        return mounts

    @cached_property
    def _uv(self) -> Path | None:
        """Ours, beside what runs inside: the engine's machine has our work folder, but not always what we are."""
        found, target = uv(), self._inside.parent / "uv"
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

    def _network(self) -> str:
        """A bridge on which containers do not reach each other."""
        if not self._client.networks.list(names=[NETWORK]):
            with contextlib.suppress(APIError):  # another worker was faster
                options = {"com.docker.network.bridge.enable_icc": "false"}
                self._client.networks.create(NETWORK, driver="bridge", options=options, check_duplicate=True)
        return NETWORK

    def remove_orphans(self) -> int:
        """Removes the containers that this worker left when it was killed; how many. Errors: NodeFault."""
        with faults():
            found = self._client.containers.list(all=True, filters={"label": f"{LABEL}worker={self._worker}"})
            for container in found:
                remove(container)
        return len(found)


def _named(name: str, attributes: dict[str, Any]) -> dict[str, str]:
    """How an image can be asked for again: by its id on this node, and by the digest that its registry knows."""
    digests = sorted(attributes.get("RepoDigests") or [])
    repository = _TAG.sub("", name.partition("@")[0])
    same = [digest for digest in digests if digest.partition("@")[0] == repository]
    found = (same or digests)[:1]
    return {"image": name, "image_id": attributes["Id"], **({"image_digest": found[0]} if found else {})}


def kill(container: Any) -> None:
    with contextlib.suppress(DockerException, requests.exceptions.RequestException):
        container.kill()


def remove(container: Any) -> None:
    """Whatever state it is in. What cannot be removed now is removed when the worker starts the next time."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except (DockerException, requests.exceptions.RequestException) as error:
        log.warning("container %s is left: %s", container.id, error)


@contextlib.contextmanager
def faults(image: str = "") -> Iterator[None]:
    """Turns the engine's errors into faults."""
    try:
        yield
    except ImageNotFound as error:
        advice = f"Run `docker pull {image}` on the node, or build the image there."
        if _ID.fullmatch(image):
            advice = "No registry knows it: bring it to the node by `docker save` and `docker load`."
        raise NodeFault("image", f"the image {image} is not on this node", advice) from error
    except APIError as error:
        raise _engine_fault(image, str(error.explanation or error)) from error
    except (DockerException, requests.exceptions.RequestException) as error:
        message = f"the container engine cannot be reached: {error}"
        raise NodeFault(
            "engine", message[:2000], "Start it, or set FIRSTBAD_DOCKER_HOST; check the worker's rights."
        ) from error


def _engine_fault(image: str, said: str) -> NodeFault:
    if "could not select device driver" in said:
        return NodeFault(
            "device", f"the container engine offers no such device: {said}", "Install the vendor's runtime."
        )
    if "executable file not found" in said:
        return NodeFault("image", f"the image {image} has no python3: {said}", "Install python3 and bash in the image.")
    if "no space left on device" in said.lower():
        return NodeFault("disk-full", f"no space left on the node: {said}", "Free space for the container engine.")
    return NodeFault("engine", f"the container engine failed: {said}"[:2000], "See the log of the container engine.")
