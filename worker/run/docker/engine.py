"""What the engine says when it fails, as faults; and how a container is ended whatever state it is in."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import requests.exceptions
from docker.errors import APIError, DockerException, NotFound

from worker.errors import NodeFault

log = logging.getLogger(__name__)

LOOK = "See the log of the container engine."


@contextlib.contextmanager
def faults(image: str = "") -> Iterator[None]:
    """Turns the engine's errors into faults. `image`: what it is about."""
    try:
        yield
    except APIError as error:
        raise _fault(image, str(error.explanation or error)) from error
    except (DockerException, requests.exceptions.RequestException) as error:
        message = f"the container engine cannot be reached: {error}"
        raise NodeFault(
            "engine", message[:2000], "Start it, or set FIRSTBAD_DOCKER_HOST; check the worker's rights."
        ) from error


def _fault(image: str, said: str) -> NodeFault:
    if "could not select device driver" in said or "nvidia-container" in said:
        advice = "Install the vendor's container runtime (nvidia-container-toolkit) and restart the engine."
        return NodeFault("device", f"the container engine offers no such device: {said}"[:2000], advice)
    if "executable file not found" in said:
        return NodeFault("image", f"the image {image} has no python3: {said}", "Install python3 and bash in the image.")
    if "no space left on device" in said.lower():
        return full(said)
    return NodeFault("engine", f"the container engine failed: {said}"[:2000], LOOK)


def full(said: str) -> NodeFault:
    return NodeFault("disk-full", f"no space left on the node: {said}"[:2000], "Free space for the container engine.")


def kill(container: Any) -> None:
    with contextlib.suppress(DockerException, requests.exceptions.RequestException):
        container.kill()


def remove(container: Any) -> bool:
    """Whatever state it is in. False, when it cannot be removed now."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except (DockerException, requests.exceptions.RequestException) as error:
        log.warning("container %s is left: %s", container.id, error)
        return False
    return True
