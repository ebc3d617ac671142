"""The rules of DESIGN.md section 5, one row each."""

from dataclasses import replace

import pytest

from service.application.cases import Case
from service.application.judge import rule
from service.application.judge_builds import judge_build_failure, judge_fault
from service.domain.bisection import Reproduction, Request, Serve
from service.domain.evidence import Fault, Judgement, Outcome
from service.domain.recipe import Recipe, SandboxKind

SCRIPT = Request("repo", ("v1",), "main", Reproduction(script="true"), Recipe("source"), SandboxKind.PROCESS)
SERVER = replace(SCRIPT, reproduction=Reproduction(serve=Serve("serve", ready_http="/health")))


def judge(outcome: Outcome, request: Request) -> Judgement:
    return rule(Case(outcome, request)).judgement


ROWS = [
    ("a script that ends with 0", Outcome("script", exit_status=0), "good"),
    ("1 is bad", Outcome("script", exit_status=1), "bad"),
    ("124 is the script's own time-out, and bad", Outcome("script", exit_status=124), "bad"),
    ("125 asks to skip", Outcome("script", exit_status=125), "skip"),
    ("126: cannot be executed", Outcome("script", exit_status=126), "skip"),
    ("127: not found", Outcome("script", exit_status=127), "skip"),
    ("139: the shell saw a segmentation fault", Outcome("script", exit_status=139), "bad"),
    ("255", Outcome("script", exit_status=255), "bad"),
    ("death by a signal", Outcome("script", signal=11), "bad"),
    ("our own time-out", Outcome("script", signal=9, timed_out=True), "skip"),
    ("killed for want of memory", Outcome("script", signal=9, out_of_memory=True), "skip"),
    ("a wheel that cannot be installed", Outcome("install", exit_status=1), "skip"),
    ("a server that gets ready", Outcome("ready", ready=True), "good"),
    ("a server that ends with 0 before it is ready", Outcome("start", exit_status=0, ready=False), "bad"),
    ("a server that dies", Outcome("start", exit_status=1, ready=False), "bad"),
    ("a server that is killed", Outcome("start", signal=6, ready=False), "bad"),
    ("a server whose command is not there", Outcome("start", exit_status=127, ready=False), "skip"),
    ("a server that is never ready", Outcome("ready", ready=False, timed_out=True), "skip"),
    ("a check that passes", Outcome("check", ready=True, exit_status=0), "good"),
    ("a check that fails", Outcome("check", ready=True, exit_status=3), "bad"),
    ("a check that skips", Outcome("check", ready=True, exit_status=125), "skip"),
]


@pytest.mark.parametrize(("what", "outcome", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_rule(what: str, outcome: Outcome, verdict: str) -> None:
    assert judge(outcome, SCRIPT).verdict == verdict


@pytest.mark.parametrize("status", range(256))
def test_every_exit_status_of_a_script_has_git_s_meaning(status: int) -> None:
    expected = "good" if status == 0 else "skip" if status in (125, 126, 127) else "bad"
    judgement = judge(Outcome("script", exit_status=status), SCRIPT)
    assert judgement.verdict == expected
    assert str(status) in judgement.reason or status == 0


def test_a_hang_is_bad_when_the_user_says_so() -> None:
    outcome = Outcome("ready", ready=False, timed_out=True)
    assert judge(outcome, replace(SERVER, hang_is_bad=True)).verdict == "bad"


def test_a_failure_that_is_not_the_one_looked_for_is_no_evidence() -> None:
    wanted = replace(SCRIPT, reproduction=Reproduction(script="x", failure="capture sizes"))
    other = judge(Outcome("script", exit_status=1), wanted)
    assert (other.verdict, "another failure" in other.reason) == ("skip", True)
    assert judge(Outcome("script", exit_status=1, failure_seen="bad capture sizes"), wanted).verdict == "bad"
    assert judge(Outcome("script", exit_status=0), wanted).verdict == "good"


def test_a_segmentation_fault_is_named() -> None:
    assert "SIGSEGV" in judge(Outcome("script", exit_status=139), SCRIPT).reason
    assert "SIGSEGV" in judge(Outcome("script", signal=11), SCRIPT).reason


def test_what_does_not_build_or_met_only_faults_is_skipped_with_its_reason() -> None:
    assert judge_build_failure(Outcome("build", exit_status=2), SCRIPT).verdict == "skip"
    faults = (Fault("disk-full", "no space on n1"), Fault("lost", "n2 went away"))
    judgement = judge_fault(faults)
    assert (judgement.verdict, judgement.reason) == ("skip", "2 faults, the last: n2 went away")
