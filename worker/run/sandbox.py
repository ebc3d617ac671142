"""What every sandbox offers: run one job, say what it could isolate; and what all of them set inside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from worker.kept import Item
from worker.run.job import Errand, Job
from worker.run.stop import Stop

#: Seconds beyond the run's own time-out after which the worker ends a sandbox that did not end itself.
GRACE_S = 15.0
#: Of /dev/shm, where the order says nothing.
SHM_BYTES = 1024**3


@dataclass(frozen=True)
class Ran:
    """What the sandbox knows of a run that is over; the run's own facts lie in the job folder.

    `status` is that of what ran inside. `facts`: how it was isolated, and in what it ran.
    """

    status: int | None = None
    out_of_memory: bool = False
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Left:
    """A run that this worker began in a former life. `labels`: those of its errand, and "gpus": indexes like "0,1"."""

    id: str
    labels: Mapping[str, str]
    running: bool


class Sandbox(Protocol):
    kind: str

    @property
    def uid(self) -> int | None:
        """Who works inside, when that is another user than the worker's."""

    @property
    def python(self) -> str | None:
        """The version inside, "3.11.9", where it is the same for all orders. Errors: NodeFault."""

    def place(self, job: Job) -> str:
        """Where the job folder is seen inside."""

    def stands_on(self, image: str | None, stop: Stop) -> str:
        """What is installed here has this below it, and works nowhere else. Errors: NodeFault, Stopped."""

    def facts(self) -> dict[str, str]:
        """What works on this node. Errors: NodeFault, when this sandbox does not work here at all."""

    def left(self) -> tuple[Left, ...]:
        """What goes on, or ended meanwhile, since this worker was killed. Errors: NodeFault."""

    def attach(self, left: Left, job: Job, errand: Errand, stop: Stop) -> Ran:
        """As `run`, for one that was left: of the errand its times, network and image count. Errors: NodeFault."""

    def remove_orphans(self, keep: Collection[Left] = ()) -> int:
        """Ends and removes what this worker left when it was killed, but for `keep`; how many.

        Errors: NodeFault; then this is owed (see `settle`), and done before the next run.
        """

    def settle(self) -> None:
        """Removes what is owed to be. Errors: NodeFault, when it cannot be yet."""

    def kept(self) -> Iterator[Item]:
        """What it brought to the node and may take away again. Errors: NodeFault."""

    def close(self) -> None:
        """Nothing runs any more, and nothing will."""

    def run(self, job: Job, errand: Errand, stop: Stop) -> Ran:
        """Does the job's order until it ends or `stop` is pressed, which it does itself after the run's time and
        GRACE_S. Nothing of it is left running.

        Errors: NodeFault.
        """


def base_env(place: str, *, cached: bool) -> dict[str, str]:
    """The variables of every run, before the order's own. `place`: the job folder as seen inside."""
    return {
        "HOME": f"{place}/work/home",
        "TMPDIR": "/tmp" if place == PLACE else f"{place}/work/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "UV_CACHE_DIR": f"{place}/cache" if cached else f"{place}/work/home/.cache/uv",
        "UV_LINK_MODE": "copy",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }


#: Where the job folder lies in sandboxes that have their own view of the file system.
PLACE = "/firstbad"
