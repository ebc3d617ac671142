"""What was observed (outcomes, faults: facts) and what is made of it (verdicts: derived)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
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
    kind: str
    message: str
    advice: str = ""


@dataclass(frozen=True)
class Outcome:
    """The facts of one run. `ended_in` names the phase that `exit_status` or `signal` belong to.

    `first_error`: of a build, the first of the lines that say most about what is wrong, not always a compiler's; of a
    fix-up, which does not apply. `code_refused`: a compiler or linker said it.
    `dependencies`: versions by distribution, what the wheel was installed with.
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
