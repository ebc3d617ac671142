"""What a container is made from: as little as the run needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest, LogConfig, Ulimit

from worker import contract
from worker.run import job as jobs
from worker.run.job import Errand, Job
from worker.run.sandbox import PLACE, SHM_BYTES

LABEL = "firstbad."


def settings(errand: Errand, image: str, user: tuple[int, int], labels: dict[str, str]) -> dict[str, Any]:
    """Of the container, but for its network and mounts."""
    made: dict[str, Any] = {
        # By its id, so that what the outcome says is what ran, also when the name is given away meanwhile.
        "image": image,
        "entrypoint": ["python3"],
        "command": jobs.command(PLACE),
        "labels": {f"{LABEL}{name}": value for name, value in labels.items()},
        "user": f"{user[0]}:{user[1]}",
        "working_dir": f"{PLACE}/work",
        "hostname": "firstbad",
        "read_only": True,
        "tmpfs": {"/run": "rw,nosuid,nodev,size=16m", "/var/tmp": "rw,nosuid,nodev,size=256m,mode=1777"},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": errand.pids,
        "shm_size": errand.shm_bytes or SHM_BYTES,
        "ulimits": [Ulimit(name="core", soft=0, hard=0)],
        "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": "1m", "max-file": "1"}),
        # No init of the engine's: what runs inside is process 1 itself, and so cannot be killed from within.
        "init": False,
        **_gpus(errand.gpus),
    }
    if errand.memory_bytes is not None:
        made.update(mem_limit=errand.memory_bytes, memswap_limit=errand.memory_bytes)
    if errand.cpus is not None:
        # The engine refuses more than there are.
        made.update(nano_cpus=int(min(errand.cpus, os.cpu_count() or errand.cpus) * 1e9))
    if errand.pinned is not None:
        made.update(cpuset_cpus=errand.pinned.listed)
        if errand.pinned.memory is not None:
            made.update(cpuset_mems=str(errand.pinned.memory))
    return made


def _gpus(leased: tuple[contract.Gpu, ...]) -> dict[str, Any]:
    """Declared GPUs are none that the engine could give. An image may ask for all; without a lease it gets none."""
    real = [gpu.uuid for gpu in leased if gpu.uuid]
    if not real:
        return {"environment": {"NVIDIA_VISIBLE_DEVICES": "void"}}
    return {"device_requests": [DeviceRequest(device_ids=real, capabilities=[["gpu"]])]}


def gpu_env(leased: tuple[contract.Gpu, ...]) -> dict[str, str]:
    """Inside the leased ones are all there are, and are counted from 0."""
    if not leased:
        return {"NVIDIA_VISIBLE_DEVICES": "void"}
    seen = ",".join(str(number) for number in range(len(leased)))
    return {
        "NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid or str(gpu.index) for gpu in leased),
        "CUDA_VISIBLE_DEVICES": seen,
    }


def mounts(job: Job, errand: Errand, inside: Path, uv: Path | None, models: Path | None) -> dict[str, dict[str, str]]:
    made = {
        str(job.inputs): {"bind": f"{PLACE}/in", "mode": "ro"},
        str(inside): {"bind": f"{PLACE}/inside", "mode": "ro"},
        str(job.out): {"bind": f"{PLACE}/out", "mode": "rw"},
        str(job.work): {"bind": f"{PLACE}/work", "mode": "rw"},
        str(job.work / "tmp"): {"bind": "/tmp", "mode": "rw"},
    }
    if errand.cache is not None:
        made[str(errand.cache)] = {"bind": f"{PLACE}/cache", "mode": "rw"}
    if errand.environment is not None:
        made[str(errand.environment)] = {"bind": f"{PLACE}/env", "mode": "rw" if errand.prepares else "ro"}
    if models is not None:
        made[str(models)] = {"bind": f"{PLACE}/models", "mode": "rw" if errand.model_cache == "shared" else "ro"}
    if uv is not None:
        made[str(uv)] = {"bind": f"{PLACE}/bin/uv", "mode": "ro"}
    for path in errand.files if errand.online else ():
        made[str(path)] = {"bind": str(path), "mode": "ro"}
    return made
