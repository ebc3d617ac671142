"""What the service asks of workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from worker.contract.bounds import Count, Name, Size, Within
from worker.contract.message import VERSION, Message

Network = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]


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
    """`python`: the version ("3.11") that all builds and runs of a bisection have; a node with another one refuses.

    `network`: "none", "bridge", or the name of a network that the node's container engine has.
    """

    kind: Literal["docker", "process"]
    image: str | None = None
    network: Network = "none"
    python: str | None = None


#: Processes and threads at once, where an order says nothing.
PIDS = 4096


class Limits(Message):
    """`cpuset`: the CPUs that it may use, as in "0-3,8". `numa`: the node whose CPUs and memory it is bound to."""

    timeout_s: Within
    log_cap_bytes: Size = 64 * 1024 * 1024
    memory_bytes: Size | None = None
    shm_bytes: Size | None = None
    cpus: float | None = Field(None, gt=0, le=100_000)
    pids: Count = PIDS
    cpuset: str | None = None
    numa: Count | None = None


class Serve(Message):
    command: str
    within_s: Within
    ready_http: str | None = None
    ready_log: str | None = None
    port: int = Field(8000, ge=1, le=65535)


class Reproduction(Message):
    """Either `script`, or `serve` with an optional `check`. `failure`: text to look for in the log."""

    script: str | None = None
    serve: Serve | None = None
    check: str | None = None
    failure: str | None = None


class Column(Message):
    """Of the last CSV table that was printed: the column `name`, in rows whose other columns have these values."""

    name: str
    where: dict[str, str] = {}


class Metric(Message):
    """A number in the output of the check, or of the script, by exactly one of `pattern`, a regular expression whose
    group is the number (or the one named `value`, beside one named `unit`), `json_path`, a JSONPath into the last JSON
    document that was printed, and `csv`.

    `unit_path`: of the unit, beside `json_path`. `aggregate`: what is made of several numbers; None: there may be one
    alone.
    """

    name: str = "metric"
    pattern: str | None = None
    json_path: str | None = None
    csv: Column | None = None
    unit: str = ""
    unit_path: str | None = None
    aggregate: Literal["median", "mean", "min", "max", "last"] | None = None


class Gpus(Message):
    """`model`: the class of the GPUs (`gpu_class`). `indexes`: these cards and no others; any, when empty."""

    count: Count
    model: str
    indexes: tuple[Count, ...] = ()


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
    network: Network = "none"


class BuildOrder(Message):
    """Get the wheel of `source`: from the first of `indexes` that has it, else from `base`, else by `command`.

    `command` leaves exactly one `*.whl` in the folder named by $FIRSTBAD_OUT. With a `base`, `overlay_command` is run
    instead, which finds that wheel's path in $FIRSTBAD_BASE; without such a command the wheel is put together from
    `base` and the tree, and nothing is run. `package`: the distribution that the wheel must be of. `indexes`: URLs of a
    wheel, or of a project's page in a simple index. `failure`: text to look for in the log.
    """

    version: int = VERSION
    key: Name
    attempt: Count
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
    project: tuple[str, ...] = ()
    trace: str = ""


class SurveyOrder(Message):
    """Say what builds and runs in this sandbox find: the image's digest, the Python, the machine."""

    version: int = VERSION
    bisection: Name
    attempt: Count
    sandbox: Sandbox
    trace: str = ""


class ProbeOrder(Message):
    """Try one commit once. `wheel`, a path in the store, is installed first; without it the source tree is used.

    `control`: run in the same way when the reproduction did not end well. `secrets`: variables that the node has the
    values of. `model_cache`: how the run sees the node's folder of models. `project`: names of the packages under test,
    by which a traceback's frames are told from a library's; the wheel's own count beside them. `metrics`: numbers to
    find; `warmup`: how often the script or the check is run before the run that counts.
    """

    version: int = VERSION
    bisection: Name
    probe: Name
    attempt: Count
    source: Source
    wheel: str | None = None
    wheel_sha256: str | None = None
    dependencies: Dependencies | None = None
    reproduction: Reproduction
    env: dict[str, str] = {}
    sandbox: Sandbox
    limits: Limits
    wheel_key: str | None = None
    control: Reproduction | None = None
    metrics: tuple[Metric, ...] = ()
    warmup: Count = 0
    gpus: Gpus | None = None
    secrets: tuple[str, ...] = ()
    model_cache: Literal["none", "read-only", "shared"] = "none"
    project: tuple[str, ...] = ()
    trace: str = ""
