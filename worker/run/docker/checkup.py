"""A container engine looked over: what it is, and whether it runs a container that sees this node's folders."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.client import DockerClient, from_env
from docker.types import DeviceRequest, LogConfig

from worker.errors import NodeFault
from worker.run.docker.container import LABEL
from worker.run.docker.engine import faults, remove

#: Whoever asks waits.
TIMEOUT_S = 10
#: Images that are tried until one has what runs need.
TRIED = 3
PLACE = "/firstbad-doctor"


@dataclass(frozen=True)
class Engine:
    version: str
    api: str
    driver: str
    root: Path
    runtimes: tuple[str, ...]
    rootless: bool
    #: Of workers: how many containers there are, by the name that the worker has.
    workers: dict[str, int]


class Checkup:
    """Errors of all: NodeFault."""

    def __init__(self, host: str | None) -> None:
        self._host = host

    @contextlib.contextmanager
    def _client(self) -> Iterator[DockerClient]:
        with faults():
            client = DockerClient(base_url=self._host, timeout=TIMEOUT_S) if self._host else from_env(timeout=TIMEOUT_S)
            try:
                yield client
            finally:
                client.close()

    def engine(self) -> Engine:
        with self._client() as client:
            version, info = client.version(), client.info()
            filters = {"label": f"{LABEL}worker"}
            workers: dict[str, int] = {}
            for each in client.containers.list(all=True, filters=filters, ignore_removed=True):
                name = each.labels.get(f"{LABEL}worker", "")
                workers[name] = workers.get(name, 0) + 1
        return Engine(
            version=version["Version"],
            api=version["ApiVersion"],
            driver=info.get("Driver", "unknown"),
            root=Path(info.get("DockerRootDir", "/var/lib/docker")),
            runtimes=tuple(sorted(info.get("Runtimes") or {})),
            rootless=any("rootless" in option for option in info.get("SecurityOptions") or ()),
            workers=workers,
        )

    def images(self) -> tuple[str, ...]:
        """Names of those that are here, such as call themselves a Python first, then the smallest."""
        with self._client() as client:
            found = [(image.tags[0], image.attrs.get("Size", 0)) for image in client.images.list() if image.tags]
        return tuple(name for name, _ in sorted(found, key=lambda each: ("python" not in each[0], each[1])))

    def run(self, image: str, folder: Path, gpus: int = 0) -> str:
        """What a Python in a container reads in a file of this folder, as a run would its job."""
        name = f"doctor-{uuid.uuid4().hex}"
        written = folder / name
        written.write_text(name, encoding="ascii")
        written.chmod(0o644)
        try:
            with self._client() as client, faults(image):
                return _said(client, image, written, gpus)
        finally:
            written.unlink(missing_ok=True)


def _said(client: DockerClient, image: str, written: Path, gpus: int) -> str:
    more: dict[str, Any] = {"device_requests": [DeviceRequest(count=gpus, capabilities=[["gpu"]])]} if gpus else {}
    made = client.containers.create(
        image=image,
        entrypoint=["python3"],
        command=["-c", f"print(open({f'{PLACE}/{written.name}'!r}).read())"],
        network="none",
        read_only=True,
        user="65534:65534",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        log_config=LogConfig(type=LogConfig.types.JSON),
        labels={f"{LABEL}doctor": "1"},
        volumes={str(written.parent): {"bind": PLACE, "mode": "ro"}},
        **more,
    )
    try:
        made.start()
        status = made.wait(timeout=TIMEOUT_S)["StatusCode"]
        said: str = made.logs().decode("utf-8", "replace").strip()
    finally:
        remove(made)
    if status != 0 or written.name not in said:
        message = f"a container of {image} does not see {written.parent} as this worker does: {said[-300:] or status}"
        advice = "The engine must run on this node and see FIRSTBAD_WORK_DIR under the same path."
        raise NodeFault("mount", message, advice)
    return said
