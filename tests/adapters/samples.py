"""One of each kept thing, every field set to something."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from service.adapters.database.repository import SqlTransaction
from service.domain.bisection import (
    Answer,
    Bisection,
    Build,
    Message,
    Node,
    Origin,
    Probe,
    Problem,
    Purpose,
    Reproduction,
    Request,
    Serve,
)
from service.domain.evidence import Fault, Log, Outcome, Phase, Verdict
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.recipe import BRIDGE, Recipe, SandboxKind

T0 = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SHA = "072d7e5" + "0" * 33


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


REQUEST = Request(
    repo="https://example.org/engine.git",
    good=("v1.0", "v0.9"),
    bad="main",
    reproduction=Reproduction(
        serve=Serve("serve --flag 'two words'", ready_http="/health"), check="curl x", failure="Boom"
    ),
    recipe=Recipe("python", build_command="uv build", image="img:1", network=BRIDGE, env={"V": "{sha}", "A": ""}),
    sandbox=SandboxKind.DOCKER,
    width=2,
    timeout_s=12.5,
    hang_is_bad=True,
)
LOG = Log("logs/b1/1.log", 10**12, cut=True, last_lines=("NUL \x00 kept", "\u00fcn\u00efcode \U0001f600", ""))
OUTCOME = Outcome(
    "check",
    exit_status=1,
    ready=True,
    phases=(Phase("start", 0.0, 1.25), Phase("check", 1.25, 0.1)),
    log=LOG,
    failure_seen="Boom",
    environment={"python": "3.11"},
)
FAULT = Fault("disk full", "no space on /store", "free some")


def bisection(id: str = "b1", at: datetime = T0) -> Bisection:
    return Bisection(
        id=id,
        state=BisectionState.SEARCHING,
        request=REQUEST,
        submitter="ada",
        created_at=at,
        updated_at=at,
        good_shas=(SHA,),
        bad_sha=SHA[::-1],
        candidates=249,
        candidates_left=12,
        expected_probes=3.5,
        notes=("a note",),
        problem=Problem("bad-ends", "The two ends do not differ", "both good", value="v", field="good", advice="swap"),
        answer=Answer((SHA,), "confirmed", 0.97),
        ended_at=later(60),
    )


def fresh(id: str, at: datetime = T0) -> Bisection:
    return Bisection(id, BisectionState.QUEUED, REQUEST, "ada", at, at)


def probe(id: str = "b1-1", bisection_id: str = "b1", number: int = 1) -> Probe:
    return Probe(
        id=id,
        bisection_id=bisection_id,
        number=number,
        sha=SHA,
        trial=2,
        purpose=Purpose.GOOD_END,
        state=ProbeState.JUDGED,
        planned_at=later(number),
        attempt=3,
        build_key="key",
        node="gpu-1",
        queued_at=later(2),
        started_at=later(3),
        finished_at=later(4),
        silent_since=later(5),
        outcome=OUTCOME,
        faults=(FAULT, FAULT),
        verdict=Verdict.BAD,
        reason="exit status 1",
    )


def planned(bisection_id: str, number: int, **changes: object) -> Probe:
    made = Probe(
        f"{bisection_id}-{number}", bisection_id, number, SHA, 1, Purpose.SEARCH, ProbeState.PLANNED, later(number)
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def build(key: str = "key", bisection_id: str = "b1") -> Build:
    return Build(
        key=key,
        state=BuildState.BUILT,
        repo=REQUEST.repo,
        sha=SHA,
        bisection_id=bisection_id,
        queued_at=T0,
        attempt=1,
        node="cpu-1",
        started_at=later(1),
        finished_at=later(2),
        silent_since=later(3),
        seconds=0.1,
        wheel_name="x-1-py3-none-any.whl",
        wheel_path="wheels/x.whl",
        wheel_sha256="ab" * 32,
        wheel_bytes=5 * 2**30,
        log=LOG,
        failure=OUTCOME,
        faults=(FAULT,),
        native_key="native",
        base_key="other key",
        origin=Origin.OVERLAY,
        notes=("not in the index",),
        ahead=True,
        used_at=later(6),
    )


NODE = Node("gpu-1", 2, T0, "up", ("run",), {"gpu": "H200"})
MESSAGE = Message("send_probe", "probe:b1-1:1", {"probe": "b1-1", "attempt": 1, "nested": {"a": [1, None, 2.5]}})


def fill(transaction: SqlTransaction) -> None:
    transaction.add_bisection(bisection())
    transaction.add_probe(probe())
    transaction.save_build(build())
    transaction.add_event("b1", T0, "probe judged", {"number": 1})
    transaction.post(MESSAGE, T0)
    transaction.save_node(NODE)
