"""The networks of containers: ours, in which they do not reach each other, or one that the operator made."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

from docker.client import DockerClient
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from worker.errors import NodeFault

log = logging.getLogger(__name__)
_making = threading.Lock()

NETWORK = "firstbad"
#: Where a cloud's nodes ask for their credentials: link-local addresses lead into this network, in which nothing is.
NOWHERE, LINK_LOCAL = "firstbad-nowhere", "169.254.0.0/16"
_APART = {"com.docker.network.bridge.enable_icc": "false"}
#: Networks of the engine that are none: the node's own, and that of nobody.
_NODES = ("host", "none", "default")


def name_of(client: DockerClient, wanted: str) -> str:
    """Errors: NodeFault, when the engine has no such network; ours is made."""
    if wanted == "none":
        return wanted
    if wanted == "bridge":
        made(client, NETWORK)
        return NETWORK
    advice = f"Make it by `docker network create {wanted}`, or name another one in the recipe."
    if wanted in _NODES:
        raise NodeFault("network", f"a container gets no network {wanted!r}: it would be the node's own", advice)
    try:
        client.networks.get(wanted)
    except NotFound as error:
        raise NodeFault("network", f"the container engine of this node has no network {wanted!r}", advice) from error
    return wanted


def shield(client: DockerClient, container: Any, wanted: str) -> bool:
    """Takes link-local addresses away from one that is on our bridge; whether it has none.

    The second network is on the same link as they are, so that nothing is routed there. The node has no address in it,
    and so keeps its own way to them.
    """
    if wanted != "bridge":
        return wanted == "none"
    try:
        pool = IPAMPool(subnet=LINK_LOCAL, iprange="169.254.0.0/20", gateway="169.254.15.254")
        options = {"com.docker.network.bridge.inhibit_ipv4": "true"}
        made(client, NOWHERE, internal=True, options=options, ipam=IPAMConfig(pool_configs=[pool])).connect(container)
    except APIError as error:
        log.warning("link-local addresses can be reached from the bridge: %s", error)
        return False
    return True


def made(client: DockerClient, name: str, **settings: Any) -> Any:
    """The engine's network of that name; made where there is none.

    An engine lets two of one name be made at once, and starts no container in either from then on: all workers take the
    oldest, and remove the others. Errors: APIError, where it can neither be found nor made.
    """
    found = _all(client, name)
    if not found:
        options = {**_APART, **settings.pop("options", {})}
        with _making:
            try:
                if not _all(client, name):
                    client.networks.create(name, driver="bridge", options=options, check_duplicate=True, **settings)
            except APIError:
                if not _all(client, name):  # or else another worker was faster
                    raise
        found = _all(client, name)
    for other in found[1:]:
        with contextlib.suppress(APIError):  # another worker was faster, or something runs in it
            other.remove()
    return found[0]


def _all(client: DockerClient, name: str) -> list[Any]:
    """Oldest first."""
    return sorted(client.networks.list(names=[f"^{name}$"]), key=lambda found: (found.attrs["Created"], found.id))
