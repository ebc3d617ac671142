"""What passes between the control plane and a worker: orders out, outcomes back, and the names of both.

Plain data only. Every message carries `version`; a worker or a service that reads another version refuses it by name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

VERSION = 2


class Task(StrEnum):
    """Celery task names. The first three run on workers, the others on the control worker."""

    BUILD = "firstbad.build"
    PROBE = "firstbad.probe"
    SURVEY = "firstbad.survey"
    PREPARE = "firstbad.prepare"
    STARTED = "firstbad.started"
    BUILT = "firstbad.built"
    PROBED = "firstbad.probed"
    SURVEYED = "firstbad.surveyed"
    NODE = "firstbad.node"


class Queue(StrEnum):
    CONTROL = "control"
    BUILD = "build"
    PROBE = "probe.cpu"


#: Priorities of the broker: 0 goes first. A build that is made ahead waits for all that somebody waits for.
NOW, AHEAD = 0, 9


#: Seconds after which a lease that was not renewed is gone, and how often a worker renews it.
LEASE_S = 30
RENEW_S = 5


def lease_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, kept alive by the worker for as long as it works on that attempt."""
    return f"firstbad:lease:{kind}:{id}:{attempt}"


def sent_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set with the order and removed when a worker takes it: while it lives the order is under way."""
    return f"firstbad:sent:{kind}:{id}:{attempt}"


def cancel_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set by the service; a worker that sees it stops that attempt and reports nothing."""
    return f"firstbad:cancel:{kind}:{id}:{attempt}"


def taken_key(kind: str, id: str, attempt: int) -> str:
    """Redis key, set once by the worker that takes an attempt, so that a second delivery of the order is dropped."""
    return f"firstbad:taken:{kind}:{id}:{attempt}"


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fixup(Message):
    """A change made to a commit's tree before anything is done with it: that of another commit, or a patch.

    `name` is how a person is told about it.
    """

    name: str
    cherry_pick: str | None = None
    patch: str | None = None


class Source(Message):
    """One commit of a repository. `mirror` is a bare repository on a disk that this node may share with the service."""

    repo: str
    sha: str
    mirror: str | None = None
    fixups: tuple[Fixup, ...] = ()


class Sandbox(Message):
    """`python`: the version ("3.11") that all builds and runs of a bisection have; a node with another one refuses."""

    kind: Literal["docker", "process"]
    image: str | None = None
    network: Literal["none", "bridge"] = "none"
    python: str | None = None


class Limits(Message):
    timeout_s: float
    log_cap_bytes: int = 64 * 1024 * 1024
    memory_bytes: int | None = None
    pids: int = 4096


class Serve(Message):
    command: str
    within_s: float
    ready_http: str | None = None
    ready_log: str | None = None
    port: int = 8000


class Reproduction(Message):
    """Either `script`, or `serve` with an optional `check`. `failure`: text to look for in the log."""

    script: str | None = None
    serve: Serve | None = None
    check: str | None = None
    failure: str | None = None


class Base(Message):
    """A wheel of another commit with the same native code; `source` is what that wheel was made from."""

    source: Source
    wheel: str
    wheel_sha256: str


class Dependencies(Message):
    """What a wheel needs besides itself, resolved as of a time (RFC 3339; None: now) by the constraints of a pip file.

    `network`: of the sandbox in which they are installed; without one they are taken from the sandbox as it is.
    """

    as_of: str | None = None
    constraints: str = ""
    network: Literal["none", "bridge"] = "none"


class BuildOrder(Message):
    """Get the wheel of `source`: from the first of `indexes` that has it, else from `base`, else by `command`.

    `command` leaves exactly one `*.whl` in the folder named by $FIRSTBAD_OUT. With a `base`, `overlay_command` is run
    instead, which finds that wheel's path in $FIRSTBAD_BASE; without such a command the wheel is put together from
    `base` and the tree, and nothing is run. `package`: the distribution that the wheel must be of. `indexes`: URLs of a
    wheel, or of a project's page in a simple index. `failure`: text to look for in the log.
    """

    version: int = VERSION
    key: str
    attempt: int
    source: Source
    command: str
    env: dict[str, str] = {}
    sandbox: Sandbox
    limits: Limits
    package: str | None = None
    indexes: tuple[str, ...] = ()
    base: Base | None = None
    overlay_command: str | None = None
    failure: str | None = None


class SurveyOrder(Message):
    """Say what builds and runs in this sandbox find: the image's digest, the Python, the machine."""

    version: int = VERSION
    bisection: str
    attempt: int
    sandbox: Sandbox


class ProbeOrder(Message):
    """Try one commit once. `wheel`, a path in the store, is installed first; without it the source tree is used."""

    version: int = VERSION
    bisection: str
    probe: str
    attempt: int
    source: Source
    wheel: str | None = None
    wheel_sha256: str | None = None
    dependencies: Dependencies | None = None
    reproduction: Reproduction
    env: dict[str, str] = {}
    sandbox: Sandbox
    limits: Limits


class Phase(Message):
    """A part of a run: fetch, environment, install, start, ready, check, script or build.

    Seconds since the order was taken, and how long.
    """

    name: str
    at_s: float
    seconds: float


class Log(Message):
    """Where the log lies in the store; `bytes` is what the run wrote, of which the middle was left out when `cut`."""

    path: str
    bytes: int
    cut: bool = False
    last_lines: tuple[str, ...] = ()


class Fault(Message):
    """What the node or we did wrong, never held against a commit. `kind` is a slug; `advice` is for an operator."""

    kind: str
    message: str
    advice: str = ""


class Outcome(Message):
    """The facts of one run. `ended_in` names the phase that `exit_status` or `signal` belong to.

    `first_error`: of a build, the first of the lines that say most about what is wrong, not always a compiler's; of a
    fix-up, which does not apply. `code_refused`: a compiler or linker said it.
    `dependencies`: versions by distribution, what the wheel was installed with.
    """

    exit_status: int | None = None
    signal: int | None = None
    ready: bool | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    ended_in: str
    first_error: str | None = None
    code_refused: bool = False
    phases: tuple[Phase, ...] = ()
    log: Log | None = None
    failure_seen: str | None = None
    environment: dict[str, str] = {}
    dependencies: dict[str, str] = {}


class Started(Message):
    version: int = VERSION
    kind: Literal["build", "probe", "survey"]
    id: str
    attempt: int
    node: str


class ProbeResult(Message):
    """Exactly one of `outcome` and `fault`."""

    version: int = VERSION
    probe: str
    attempt: int
    node: str
    outcome: Outcome | None = None
    fault: Fault | None = None


class Wheel(Message):
    name: str
    path: str
    bytes: int
    sha256: str


class BuildResult(Message):
    """Exactly one of `wheel`, `failure` (the commit does not build: the run's facts) and `fault`.

    `origin`: how the wheel came about. `notes`: why not by a cheaper way that the order named, one sentence each.
    """

    version: int = VERSION
    key: str
    attempt: int
    node: str
    seconds: float
    wheel: Wheel | None = None
    failure: Outcome | None = None
    fault: Fault | None = None
    log: Log | None = None
    origin: Literal["built", "overlay", "prebuilt"] | None = None
    notes: tuple[str, ...] = ()


class Builder(Message):
    """`image`: by digest where it has one, else by its id. `python`: "3.11". `machine`: "x86_64"."""

    image: str | None = None
    python: str
    machine: str


class SurveyResult(Message):
    """Exactly one of `builder` and `fault`."""

    version: int = VERSION
    bisection: str
    attempt: int
    node: str
    builder: Builder | None = None
    fault: Fault | None = None


class NodeReport(Message):
    """Sent when a worker starts (`booted`), then as a heartbeat, and when it leaves. `roles`: the queues it reads."""

    version: int = VERSION
    node: str
    event: Literal["booted", "alive", "left"]
    slots: int
    roles: tuple[Literal["build", "run"], ...] = ("build", "run")
    facts: dict[str, str] = {}
