"""What workers send back: facts, and faults of their own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from worker.contract.bounds import (
    MANY,
    MOST_SLOTS,
    Count,
    Facts,
    Lasted,
    Name,
    Number,
    Path,
    Size,
    Status,
    Text,
    Word,
)
from worker.contract.message import VERSION, Message

Lines = Annotated[tuple[Text, ...], Field(max_length=1000)]
Names = Annotated[tuple[Name, ...], Field(max_length=MANY)]


class Phase(Message):
    """A part of a run: fetch, environment, install, start, ready, warmup, check, script or build.

    Seconds since the order was taken, and how long.
    """

    name: Word
    at_s: Lasted
    seconds: Lasted


class Log(Message):
    """Where the log lies in the store, as zstd. `bytes`: what the run wrote; the middle of it is missing when `cut`."""

    path: Path
    bytes: Size
    cut: bool = False
    last_lines: Lines = ()


class Fault(Message):
    """What the node or we did wrong, never held against a commit. `kind` is a slug; `advice` is for an operator."""

    kind: Word
    message: Text
    advice: Text = ""


class Frame(Message):
    file: Text
    function: Text = ""


class Signature(Message):
    """The root failure that a log shows, in a form that another run of the same failure has too (docs/signatures.md).

    `kind`: as in worker.observe.failures. `frames`: the project's, innermost first; `outer`: those that only lead
    there. `line`: of the kept log, from 1; `said`: how it was put there.
    """

    kind: Word
    type: Text
    message: Text
    frames: tuple[Frame, ...] = Field((), max_length=MANY)
    outer: tuple[Frame, ...] = Field((), max_length=MANY)
    line: Size = 0
    said: Text = ""


class Sign(Message):
    """Something in a log that may be the node's doing. `rule`: of worker.observe.signs; `said`: the line.

    `root`: the signature's own failure says it, and not just any line.
    """

    rule: Word
    said: Text
    line: Size = 0
    root: bool = False


class Told(Message):
    """What the check, or the script, said itself, by a line `firstbad: bad wrong answer`; the last one counts."""

    verdict: Literal["good", "bad", "skip"]
    reason: Text = ""


class Replaced(Message):
    """The package under test was another one after the run: `was` and `now`, each "name version" or "". `by`: the line
    of the script or of the log that tells how."""

    was: Text
    now: Text
    by: Text = ""


class Measurement(Message):
    """One metric in one run. `value`: None where there is none, and `problem` says why. `unit`: as it was printed,
    else as the order says. `found`: how many numbers were there."""

    name: Text
    value: Number | None = None
    unit: Word = ""
    found: Size = 0
    problem: Text = ""


class Outcome(Message):
    """The facts of one run. `ended_in` names the phase that `exit_status` or `signal` belong to.

    `first_error`: of a build, the first of the lines that say most about what is wrong, not always a compiler's; of a
    fix-up, which does not apply. `code_refused`: a compiler or linker said it.
    `dependencies`: versions by distribution, what the wheel was installed with. `signature`: None when nothing in the
    log says that it failed. `signs`: each rule once, at its first line. `measurements`: of
    each metric of the order, in its order. `control`: of the control, when it was run.
    """

    exit_status: Status | None = None
    signal: Status | None = None
    ready: bool | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    ended_in: Word
    first_error: Text | None = None
    code_refused: bool = False
    phases: tuple[Phase, ...] = Field((), max_length=1000)
    log: Log | None = None
    failure_seen: Text | None = None
    environment: Facts = {}
    dependencies: Facts = {}
    signature: Signature | None = None
    signs: tuple[Sign, ...] = Field((), max_length=1000)
    told: Told | None = None
    measurements: tuple[Measurement, ...] = Field((), max_length=1000)
    replaced: Replaced | None = None
    control: Outcome | None = None

    @field_validator("control")
    @classmethod
    def _alone(cls, value: Outcome | None) -> Outcome | None:
        if value is not None and value.control is not None:
            raise ValueError("a control has no control of its own")
        return value


class Started(Message):
    """Sent when an attempt is begun, and with `leased` once more when its GPUs are held, if it wants any."""

    version: int = VERSION
    kind: Literal["build", "probe", "survey"]
    id: Name
    attempt: Count
    node: Name
    leased: bool = False


class ProbeResult(Message):
    """Exactly one of `outcome` and `fault`. `gpu_leased_s`: cards times seconds that it held; `gpu_used_s`: of these,
    while a run was under way."""

    version: int = VERSION
    probe: Name
    attempt: Count
    node: Name
    outcome: Outcome | None = None
    fault: Fault | None = None
    gpu_leased_s: Lasted = 0.0
    gpu_used_s: Lasted = 0.0


class Wheel(Message):
    name: Path
    path: Path
    bytes: Size
    sha256: Name


class BuildResult(Message):
    """Exactly one of `wheel`, `failure` (the commit does not build: the run's facts) and `fault`.

    `origin`: how the wheel came about. `notes`: why not by a cheaper way that the order named, one sentence each.
    """

    version: int = VERSION
    key: Name
    attempt: Count
    node: Name
    seconds: Lasted
    wheel: Wheel | None = None
    failure: Outcome | None = None
    fault: Fault | None = None
    log: Log | None = None
    origin: Literal["built", "overlay", "prebuilt"] | None = None
    notes: Lines = ()


class Builder(Message):
    """`image`: by digest where it has one, else by its id. `python`: "3.11". `machine`: "x86_64"."""

    image: Path | None = None
    python: Word
    machine: Word


class SurveyResult(Message):
    """Exactly one of `builder` and `fault`."""

    version: int = VERSION
    bisection: Name
    attempt: Count
    node: Name
    builder: Builder | None = None
    fault: Fault | None = None


class Gpu(Message):
    """`model`: as the driver names it. `uuid`: empty where it was declared (FIRSTBAD_GPUS)."""

    index: Count
    model: Word
    memory_bytes: Size
    uuid: Word = ""


class Held(Message):
    """An attempt that a worker goes on with after its restart."""

    kind: Literal["build", "probe"]
    id: Name
    attempt: Count


class NodeReport(Message):
    """Sent when a worker starts (`booted`), then as a heartbeat, and when it leaves. `roles`: the queues it reads.

    `adopted`: with `booted`, the runs of its former life that went on without it. `labels`: what its operator says
    of it. `models`: those that its folder of models holds, as in "Qwen/Qwen3-0.6B".
    """

    version: int = VERSION
    node: Name
    event: Literal["booted", "alive", "left"]
    slots: int = Field(ge=0, le=MOST_SLOTS)
    roles: tuple[Literal["build", "run"], ...] = Field(("build", "run"), max_length=2)
    facts: Facts = {}
    gpus: tuple[Gpu, ...] = Field((), max_length=1024)
    labels: Names = ()
    models: Names = ()
    adopted: tuple[Held, ...] = Field((), max_length=MANY)
