"""Images: found on the node, else pulled with the credentials that the worker's user has for the engine."""

from __future__ import annotations

import queue
import re
import threading
from typing import Any

import requests.exceptions
from docker.client import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound

from worker.errors import NodeFault
from worker.run.docker.engine import faults, full
from worker.run.stop import Stop

BAD_REQUEST = 400
_ID, _TAG = re.compile(r"sha256:[0-9a-f]{64}"), re.compile(r":[^/:]*$")

#: What registries and the engine say, in lower case. The first rule that fits counts; what none does is the registry's.
LIMITED = ("toomanyrequests", "too many requests", "rate limit", " 429")
ABSENT = (
    "manifest unknown", "name unknown", "not found", "no matching manifest", "invalid reference", "manifest for",
    "repository name must", "does not exist", "access denied", "denied:", "unauthorized", "no basic auth", "forbidden",
)  # fmt: skip


def found(client: DockerClient, name: str | None, stop: Stop, within_s: float) -> tuple[Any, bool]:
    """The image, and whether it was pulled, since the node had none of that name. Errors: NodeFault, Stopped."""
    if name is None:
        raise NodeFault("order", "a docker sandbox needs an image", "Name one in the recipe.")
    with faults(name):
        try:
            return client.images.get(name), False
        except ImageNotFound:
            pass
        except APIError as error:
            if error.status_code != BAD_REQUEST:
                raise
            raise fault(name, str(error.explanation)) from error
        if _ID.fullmatch(name):
            advice = "No registry knows it: bring it to the node by `docker save` and `docker load`."
            raise NodeFault("image", f"the image {name} is not on this node", advice)
    _pull(client, name, stop, within_s)
    with faults(name):
        try:
            return client.images.get(name), True
        except ImageNotFound as error:
            raise fault(name, "not found after it was pulled") from error


def _pull(client: DockerClient, name: str, stop: Stop, within_s: float) -> None:
    """Errors: NodeFault, Stopped."""
    ended: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    overdue = f"it took longer than {within_s:.0f} s"
    with stop.apart() as own, own.within(within_s), own.calling(lambda: ended.put(overdue)):
        threading.Thread(target=_listen, args=(client, name, own, ended), name="pull", daemon=True).start()
        said = ended.get()
    stop.check()
    if said is not None:
        raise fault(name, said)


def _listen(client: DockerClient, name: str, stop: Stop, ended: queue.SimpleQueue[str | None]) -> None:
    """Tells how it ended: None when all is well. An engine may say nothing for long, which others need not wait for.

    When nobody wants the image any more, the engine's work ends with the first that it says: it works for who listens.
    """
    try:
        for told in client.api.pull(*_parts(name), stream=True, decode=True):
            if "error" in told or stop.reason is not None:
                ended.put(str(told.get("error", "given up")))
                return
    except APIError as error:
        ended.put(str(error.explanation or error))
    except (DockerException, requests.exceptions.RequestException, ValueError) as error:
        ended.put(f"the container engine broke off: {error}")
    else:
        ended.put(None)


def _parts(name: str) -> tuple[str, str]:
    """Repository, and tag or digest: without one the engine would pull all that there are."""
    repository, _, digest = name.partition("@")
    if digest:
        return _TAG.sub("", repository), digest
    tag = _TAG.search(name)
    return (name[: tag.start()], tag.group()[1:]) if tag else (name, "latest")


def fault(name: str, said: str) -> NodeFault:
    """Of a pull that failed: no retry helps, later, or elsewhere and later."""
    low = said.lower()
    if "no space left" in low:
        return full(said)
    if any(sign in low for sign in LIMITED):
        advice = "Let the worker's user `docker login`, use a mirror of the registry, or pull the image before."
        return NodeFault("image-limited", f"the registry limits pulls of {name}: {said}"[:2000], advice)
    if any(sign in low for sign in ABSENT):
        advice = f"Correct its name, or build it there, or let the worker's user `docker login`: docker pull {name}"
        return NodeFault("image", f"the image {name} is not on this node and cannot be had: {said}"[:2000], advice)
    advice = f"See whether the registry is up and the node reaches it: docker pull {name}"
    return NodeFault("registry", f"the image {name} could not be pulled: {said}"[:2000], advice)


def named(name: str, attributes: dict[str, Any]) -> dict[str, str]:
    """How an image can be asked for again: by its id on this node, and by the digest that its registry knows."""
    digests = sorted(attributes.get("RepoDigests") or [])
    repository = _TAG.sub("", name.partition("@")[0])
    same = [digest for digest in digests if digest.partition("@")[0] == repository]
    first = (same or digests)[:1]
    return {"image": name, "image_id": attributes["Id"], **({"image_digest": first[0]} if first else {})}
