"""What workers send back: facts, and faults of their own."""

from __future__ import annotations

from typing import Literal

from worker.contract.message import VERSION, Message


class Phase(Message):
    """A part of a run: fetch, environment, install, start, ready, warmup, check, script or build.

    Seconds since the order was taken, and how long.
    """

    name: str
    at_s: float
    seconds: float


class Log(Message):
    """Where the log lies in the store, as zstd. `bytes`: what the run wrote; the middle of it is missing when `cut`."""

    path: str
    bytes: int
    cut: bool = False
    last_lines: tuple[str, ...] = ()


class Fault(Message):
    """What the node or we did wrong, never held against a commit. `kind` is a slug; `advice` is for an operator."""

    kind: str
    message: str
    advice: str = ""


class Frame(Message):
    file: str
    function: str = ""


class Signature(Message):
    """The root failure that a log shows, in a form that another run of the same failure has too (docs/signatures.md).

    `kind`: as in worker.observe.failures. `frames`: the project's, innermost first; `outer`: those that only lead
    there. `line`: of the kept log, from 1; `said`: how it was put there.
    """

    kind: str
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    outer: tuple[Frame, ...] = ()
    line: int = 0
    said: str = ""


class Sign(Message):
    """Something in a log that may be the node's doing. `rule`: of worker.observe.signs; `said`: the line.

    `root`: the signature's own failure says it, and not just any line.
    """

    rule: str
    said: str
    line: int = 0
    root: bool = False


class Told(Message):
    """What the check, or the script, said itself, by a line `firstbad: bad wrong answer`; the last one counts."""

    verdict: Literal["good", "bad", "skip"]
    reason: str = ""


class Replaced(Message):
    """The package under test was another one after the run: `was` and `now`, each "name version" or "". `by`: the line
    of the script or of the log that tells how."""

    was: str
    now: str
    by: str = ""


class Measurement(Message):
    """One metric in one run. `value`: None where there is none, and `problem` says why. `unit`: as it was printed,
    else as the order says. `found`: how many numbers were there."""

    name: str
    value: float | None = None
    unit: str = ""
    found: int = 0
    problem: str = ""


class Outcome(Message):
    """The facts of one run. `ended_in` names the phase that `exit_status` or `signal` belong to.

    `first_error`: of a build, the first of the lines that say most about what is wrong, not always a compiler's; of a
    fix-up, which does not apply. `code_refused`: a compiler or linker said it.
    `dependencies`: versions by distribution, what the wheel was installed with. `signature`: None when nothing in the
    log says that it failed. `signs`: each rule once, at its first line. `measurements`: of
    each metric of the order, in its order. `control`: of the control, when it was run.
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
    signature: Signature | None = None
    signs: tuple[Sign, ...] = ()
    told: Told | None = None
    measurements: tuple[Measurement, ...] = ()
    replaced: Replaced | None = None
    control: Outcome | None = None


class Started(Message):
    version: int = VERSION
    kind: Literal["build", "probe", "survey"]
    id: str
    attempt: int
    node: str


class ProbeResult(Message):
    """Exactly one of `outcome` and `fault`. `gpu_leased_s`: cards times seconds that it held; `gpu_used_s`: of these,
    while a run was under way."""

    version: int = VERSION
    probe: str
    attempt: int
    node: str
    outcome: Outcome | None = None
    fault: Fault | None = None
    gpu_leased_s: float = 0.0
    gpu_used_s: float = 0.0


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


class Gpu(Message):
    """`model`: as the driver names it. `uuid`: empty where it was declared (FIRSTBAD_GPUS)."""

    index: int
    model: str
    memory_bytes: int
    uuid: str = ""


class Held(Message):
    """An attempt that a worker goes on with after its restart."""

    kind: Literal["build", "probe"]
    id: str
    attempt: int


class NodeReport(Message):
    """Sent when a worker starts (`booted`), then as a heartbeat, and when it leaves. `roles`: the queues it reads.

    `adopted`: with `booted`, the runs of its former life that went on without it. `labels`: what its operator says
    of it. `models`: those that its folder of models holds, as in "Qwen/Qwen3-0.6B".
    """

    version: int = VERSION
    node: str
    event: Literal["booted", "alive", "left"]
    slots: int
    roles: tuple[Literal["build", "run"], ...] = ("build", "run")
    facts: dict[str, str] = {}
    gpus: tuple[Gpu, ...] = ()
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    adopted: tuple[Held, ...] = ()
