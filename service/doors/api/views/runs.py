"""One commit tried once, and what it was built from."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from service.domain.bisection import Origin, Purpose
from service.domain.evidence import Verdict
from service.domain.lifecycle import BuildState, ProbeState
from service.doors.api.views.base import View


class PhaseView(View):
    name: str
    at_s: float
    seconds: float


class LogView(View):
    bytes: int = Field(description="What the run wrote; the stored log is shorter when `cut`.")
    cut: bool
    last_lines: tuple[str, ...]


class FrameView(View):
    file: str
    function: str = ""


class SignatureView(View):
    """The root failure that a log shows, in a form that another run of the same failure has too."""

    kind: str
    type: str
    message: str
    frames: tuple[FrameView, ...] = Field(default=(), description="The project's own, innermost first.")
    line: int = Field(default=0, description="Of the stored log, from 1.")
    said: str = Field(default="", description="How the log has it.")


class SignView(View):
    """A line that may be the node's doing, and the rule that knows it (docs/verdicts.md)."""

    rule: str
    said: str
    line: int = 0


class ToldView(View):
    """What the check said by a line like `firstbad: bad wrong answer`."""

    verdict: Verdict
    reason: str = ""


class ReplacedView(View):
    """The package under test was another one after the run; name and version each, or "" for none."""

    was: str
    now: str
    by: str = Field(default="", description="The line that did it.")


class MeasurementView(View):
    """One metric in one run. `value`: null where there is none, and `problem` says why."""

    name: str
    value: float | None
    unit: str
    found: int
    problem: str


class OutcomeView(View):
    """The facts of one run; `exit_status` or `signal` are those of the phase `ended_in`."""

    ended_in: str
    exit_status: int | None
    signal: int | None
    ready: bool | None
    timed_out: bool
    out_of_memory: bool
    phases: tuple[PhaseView, ...]
    log: LogView | None
    failure_seen: str | None
    first_error: str | None = Field(default=None, description="Of a build: the line of its log that says most.")
    environment: dict[str, str]
    dependencies: dict[str, str] = Field(default={}, description="What the wheel was installed with; name to version.")
    signature: SignatureView | None = Field(default=None, description="Null where nothing in the log says it failed.")
    signs: tuple[SignView, ...] = ()
    told: ToldView | None = None
    measurements: tuple[MeasurementView, ...] = Field(default=(), description="Of each metric, the decider first.")
    replaced: ReplacedView | None = None
    control: OutcomeView | None = Field(default=None, description="Of the control, when it was run.")


class FaultView(View):
    """What a node did wrong; never held against the commit."""

    kind: str
    message: str
    advice: str
    node: str = Field(default="", description="Where it happened; empty where it was the service's own.")


class ProbeLinks(View):
    self: str
    log: str
    bisection: str


class ProbeView(View):
    id: str
    bisection: str
    number: int
    sha: str
    trial: int
    purpose: Purpose
    state: ProbeState
    verdict: Verdict | None
    reason: str
    attempt: int
    build: str | None = Field(default=None, description="Key of the build of its wheel.")
    node: str | None
    target: str | None = Field(default=None, description="The one node that shall try it, since others failed.")
    own_day: bool = Field(
        default=False, description="With dependencies of its own commit's day, since the bisection's did not fit."
    )
    planned_at: datetime
    queued_at: datetime | None
    sent_at: datetime | None = Field(default=None, description="Of a queued one, null: it waits for its turn.")
    due_at: datetime | None = Field(default=None, description="It is not sent before.")
    started_at: datetime | None
    finished_at: datetime | None
    outcome: OutcomeView | None
    faults: tuple[FaultView, ...]
    queue: str = Field(default="", description="Of the nodes that can serve it: cpu, gpu.<class> or node.<name>.")
    gpu_leased_s: float = Field(default=0.0, description="Cards times seconds that all its attempts held.")
    gpu_used_s: float = Field(default=0.0, description="Of these, while its runs were under way.")
    log_removed_at: datetime | None = Field(default=None, description="When its log was removed by age or size.")
    links: ProbeLinks


class BuildView(View):
    """A wheel: made once for all probes whose content is the same."""

    key: str
    state: BuildState
    sha: str = Field(description="The commit that it was made from; others with the same content share it.")
    origin: Origin | None = Field(description="Built in full, an overlay on another's compiled files, or prebuilt.")
    native_key: str | None = Field(description="The same for all wheels with the same compiled files.")
    base_key: str | None = Field(description="The build whose compiled files were taken.")
    seconds: float | None
    node: str | None
    wheel: str | None = Field(description="Its file name.")
    wheel_bytes: int | None
    ahead: bool = Field(default=False, description="No probe has wanted it yet.")
    log_removed_at: datetime | None = Field(default=None, description="When its log was removed by age or size.")
    notes: tuple[str, ...] = Field(description="Why it was not made in a cheaper way.")
