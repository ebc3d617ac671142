"""What was observed (outcomes, faults: facts) and what is made of it (verdicts: derived)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.metric import Measurement


class Verdict(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Override:
    """What a person says of a commit within a bisection, whatever its probes say. `verdict`: None takes back what was
    said before."""

    sha: str
    verdict: Verdict | None
    by: str
    why: str
    at: datetime


@dataclass(frozen=True)
class Judgement:
    """`verdict`: None as long as a number needs more runs to be told."""

    verdict: Verdict | None
    reason: str


@dataclass(frozen=True)
class Phase:
    """`at_s`: seconds since the run began; `seconds`: how long it took."""

    name: str
    at_s: float
    seconds: float


@dataclass(frozen=True)
class Log:
    """`path` in the artifact store; `bytes` is what the run wrote, of which the middle was left out when `cut`."""

    path: str
    bytes: int
    cut: bool = False
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """`node`: where it happened; empty for our own and of a time when this was not kept. `outcome`: of that attempt,
    where it came to a run."""

    kind: str
    message: str
    advice: str = ""
    node: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Frame:
    file: str
    function: str = ""


@dataclass(frozen=True)
class Signature:
    """The root failure that a log shows, in a form that another run of the same failure has too (docs/signatures.md).

    `frames`: the project's, innermost first; `outer`: those that only lead there. `line`: of the kept log, from 1;
    `said`: how it was put there.
    """

    kind: str
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    outer: tuple[Frame, ...] = ()
    line: int = field(default=0, compare=False)
    said: str = field(default="", compare=False)


@dataclass(frozen=True)
class Sign:
    """Something in a log that may be the node's doing. `rule`: which one saw it; `said`: the line. `root`: the
    signature's own failure says it, and not just any line."""

    rule: str
    said: str
    line: int = 0
    root: bool = False


@dataclass(frozen=True)
class Told:
    """What the check, or the script, said itself."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class Replaced:
    """The package under test was another one after the run: `was` and `now`, each "name version" or "". `by`: the line
    of the script or of the log that tells how."""

    was: str
    now: str
    by: str = ""


@dataclass(frozen=True)
class Outcome:
    """The facts of one run. `ended_in` names the phase that `exit_status` or `signal` belong to.

    `first_error`: of a build, the first of the lines that say most about what is wrong, not always a compiler's; of a
    fix-up, which does not apply. `code_refused`: a compiler or linker said it.
    `dependencies`: versions by distribution, what the wheel was installed with. `signature`: None when nothing in the
    log says that it failed. `signs`: each rule once, at its first line. `measurements`: of
    each metric, the one that decides first. `control`: of the control, when it was run.
    """

    ended_in: str
    exit_status: int | None = None
    signal: int | None = None
    ready: bool | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    phases: tuple[Phase, ...] = ()
    log: Log | None = None
    failure_seen: str | None = None
    first_error: str | None = None
    code_refused: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    dependencies: dict[str, str] = field(default_factory=dict)
    signature: Signature | None = None
    signs: tuple[Sign, ...] = ()
    told: Told | None = None
    measurements: tuple[Measurement, ...] = ()
    replaced: Replaced | None = None
    control: Outcome | None = None
