from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from firstbad import Client
from service.domain.bisection import Answer, Gpu, Problem, Purpose
from service.domain.evidence import Fault, Frame, Outcome, Replaced, Sign, Signature, Told, Verdict
from service.domain.lifecycle import BisectionState, BuildState
from service.domain.metric import Measurement
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow, sha

API = "/api/v1"


@pytest.fixture
def found(flow: FakeFlow) -> str:
    """The id of a bisection that has ended with commit 5."""
    return flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id


def test_a_report_holds_the_answer_and_what_it_stands_on(http: httpx.Client, found: str) -> None:
    report = http.get(f"{API}/bisections/{found}").json()
    assert (report["state"], report["live"]) == ("found", False)
    assert report["first_bad"] == [sha(5)]
    assert [commit["subject"] for commit in report["answer"]["commits"]] == ["Change number 5"]
    assert report["answer"]["why"] and report["headline"] and report["explanation"]
    assert [(p["commit"]["sha"], p["probe"]["verdict"]) for p in report["evidence"]] == [
        (sha(5), "bad"),
        (sha(4), "good"),
    ]
    assert (report["ends"]["good"][0]["sha"], report["ends"]["bad"]["sha"]) == (sha(0), sha(8))
    assert (report["candidates"], report["candidates_left"], report["probes_done"]) == (8, 1, 4)
    assert report["request"]["script"] == "false"


def test_before_the_commits_are_looked_up_a_report_is_empty_but_whole(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    report = http.get(f"{API}/bisections/{id}").json()
    assert report["ends"] == {"good": [], "bad": None}
    assert (report["answer"], report["evidence"], report["candidates"], report["live"]) == (None, [], None, True)


def test_the_links_of_a_report_lead_somewhere(http: httpx.Client, found: str) -> None:
    links = http.get(f"{API}/bisections/{found}").json()["links"]
    assert (links["metric"], links["picture"]) == (None, None)
    assert all(http.get(path).status_code == 200 for path in links.values() if path)


def test_a_probe_tells_its_facts_and_its_links_lead_somewhere(http: httpx.Client, found: str) -> None:
    probe = http.get(f"{API}/probes/{found}.4").json()
    assert (probe["verdict"], probe["outcome"]["exit_status"], probe["sha"]) == ("bad", 1, sha(5))
    assert probe["outcome"]["phases"] == [{"name": "script", "at_s": 0.0, "seconds": 1.5}]
    assert all(http.get(path).status_code == 200 for path in probe["links"].values())


def test_probes_are_listed_by_number(http: httpx.Client, found: str) -> None:
    items = http.get(f"{API}/bisections/{found}/probes").json()["items"]
    assert [probe["number"] for probe in items] == [1, 2, 3, 4]
    assert [probe["purpose"] for probe in items] == ["bad end", "good end", "search", "search"]


def test_events_go_on_from_where_a_reader_was(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    path = f"{API}/bisections/{found}/events"
    first = http.get(path).json()
    assert [event["kind"] for event in first["items"]][0] == "state"
    assert http.get(path, params={"after": first["last"]}).json() == {"items": [], "last": first["last"]}
    flow.change(found, "something")
    assert [e["kind"] for e in http.get(path, params={"after": first["last"]}).json()["items"]] == ["something"]


def test_bisections_are_listed_newest_first_by_state(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    live = flow.submit(SUBMISSION, TESTER).id
    gone = flow.submit(SUBMISSION, TESTER).id
    flow.cancel(gone, "test")

    def ids(**params: object) -> list[str]:
        return [item["id"] for item in http.get(f"{API}/bisections", params=params).json()["items"]]  # type: ignore[arg-type]

    assert ids() == [gone, live, found]
    assert ids(limit=2) == [gone, live]
    assert ids(state="found") == [found]
    assert ids(state=["found", "queued"]) == [live, found]
    assert ids(state="checking ends") == []


def test_a_log_comes_by_the_probe_and_by_its_number(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    text = "line \N{SNOWMAN}\n".encode() * 10_000 + b"\xff\x00 end"
    flow.judge(flow.plan(found, 3), Verdict.GOOD, "script passed", text)
    for path in (f"{API}/probes/{found}.5/log", f"{API}/bisections/{found}/probes/5/log"):
        answer = http.get(path)
        assert answer.content == text
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_the_log_of_a_build_comes_by_its_key(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    assert http.get(f"{API}/builds/k4/log").json()["detail"] == "there is no build 'k4'"
    flow.build(flow.probe(f"{found}.4"), BuildState.RUNNING, None)
    assert http.get(f"{API}/builds/k4/log").status_code == 409
    flow.build(flow.probe(f"{found}.4"), BuildState.BUILT)
    answer = http.get(f"{API}/builds/k4/log")
    assert (answer.status_code, answer.content) == (200, b"compiling\n")
    flow.build(flow.probe(f"{found}.4"), BuildState.CANCELLED, None)
    assert http.get(f"{API}/builds/k4/log").status_code == 404


def test_a_log_that_cannot_be_read_yet_or_any_more_is_a_problem(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    running = flow.plan(found, 3)
    problem = http.get(f"{API}/probes/{running.id}/log")
    assert (problem.status_code, problem.json()["type"]) == (409, "/problems/conflict")
    flow.logs.clear()
    gone = http.get(f"{API}/probes/{found}.4/log")
    assert (gone.status_code, gone.json()["detail"]) == (404, "the log is gone")


def test_cancelling_twice_changes_nothing_and_an_ended_one_stays(
    http: httpx.Client, flow: FakeFlow, found: str
) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    assert http.delete(f"{API}/bisections/{id}").json()["state"] == "cancelled"
    assert http.delete(f"{API}/bisections/{id}").json()["state"] == "cancelled"
    answer = http.delete(f"{API}/bisections/{found}")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/conflict")


def test_a_refused_bisection_tells_its_problem(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    problem = Problem("unknown-ref", "Not in the repository", "no v1 there", "v1", "good", "try v1.0")
    flow.end(id, BisectionState.REFUSED, problem=problem)
    assert http.get(f"{API}/bisections/{id}").json()["problem"] == {
        "type": "/problems/unknown-ref",
        "title": "Not in the repository",
        "detail": "no v1 there",
        "field": "good",
        "value": "v1",
        "advice": "try v1.0",
    }


def test_suspects_come_in_order(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.end(id, BisectionState.SUSPECTS, Answer((sha(3), sha(4)), "they cannot be tested"))
    report = http.get(f"{API}/bisections/{id}").json()
    assert [commit["sha"] for commit in report["answer"]["commits"]] == [sha(3), sha(4)]


def test_nodes_are_listed(http: httpx.Client) -> None:
    assert [node["name"] for node in http.get(f"{API}/nodes").json()["items"]] == ["node-1"]


@pytest.mark.parametrize(
    ("repo", "shown"),
    [
        ("https://user:token@git.example.org/x.git", "https://user:***@git.example.org/x.git"),
        ("https://token@git.example.org/x.git", "https://***@git.example.org/x.git"),
        ("https://a:b@c@git.example.org/x.git", "https://a:***@git.example.org/x.git"),
        ("ssh://git@git.example.org/x.git", "ssh://git@git.example.org/x.git"),
        ("git@git.example.org:x.git", "git@git.example.org:x.git"),
        ("https://git.example.org/x@y.git", "https://git.example.org/x@y.git"),
        ("/srv/x.git", "/srv/x.git"),
        ("https://[", "https://["),
    ],
)
def test_a_token_in_a_repository_url_is_shown_to_nobody(
    http: httpx.Client, flow: FakeFlow, repo: str, shown: str
) -> None:
    body = {"repo": repo, "good": "v1", "bad": "main", "script": "false"}
    id = http.post(f"{API}/bisections", json=body).json()["id"]
    report = http.get(f"{API}/bisections/{id}").json()
    assert (report["repo"], report["request"]["repo"]) == (shown, shown)
    assert flow.bisection(id).request.repo == repo


def test_the_client_sees_each_change_until_the_end(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with Client(str(http.base_url)) as client:
        changes = client.changes(id, every_s=0.01)
        assert next(changes).report.state == "queued"
        flow.look_up(id, 8)
        assert next(changes).report.state == "checking ends"
        probe = flow.plan(id, 8, Purpose.BAD_END)
        assert [each.state for each in next(changes).probes] == ["running"]
        flow.judge(probe, Verdict.BAD, "script ended with exit status 1")
        assert [each.verdict for each in next(changes).probes] == ["bad"]
        flow.cancel(id, "test")
        assert [each.report.state for each in changes] == ["cancelled"]


CONTROL = Outcome("check", 0, signature=Signature("python", "ValueError", "x"))
FACTS = {
    "signature": Signature("python", "RuntimeError", "boom", (Frame("vllm/a.py", "f"),), line=7, said="E boom"),
    "signs": (Sign("no-memory", "CUDA out of memory", 3),),
    "told": Told(Verdict.BAD, "wrong answer"),
    "measurements": (Measurement("rate", 1.5, "tok/s", 1),),
    "replaced": Replaced("vllm 1", "vllm 2", "pip install vllm"),
    "control": CONTROL,
}


def test_a_probe_tells_all_that_was_seen_of_its_run(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    probe = flow.probe(f"{found}.4")
    assert probe.outcome is not None
    fault = Fault("no-gpu", "no card is free", "wait", "node-7")
    outcome = replace(probe.outcome, **FACTS)  # type: ignore[arg-type]
    flow.tried[probe.id] = replace(probe, outcome=outcome, faults=(fault,), target="node-8", own_day=True)
    shown = http.get(f"{API}/probes/{probe.id}").json()
    assert (shown["target"], shown["own_day"]) == ("node-8", True)
    assert shown["faults"] == [{"kind": "no-gpu", "message": "no card is free", "advice": "wait", "node": "node-7"}]
    seen = shown["outcome"]
    assert seen["signature"] == {
        "kind": "python",
        "type": "RuntimeError",
        "message": "boom",
        "frames": [{"file": "vllm/a.py", "function": "f"}],
        "line": 7,
        "said": "E boom",
    }
    assert seen["signs"] == [{"rule": "no-memory", "said": "CUDA out of memory", "line": 3}]
    assert seen["told"] == {"verdict": "bad", "reason": "wrong answer"}
    assert (seen["measurements"][0]["value"], seen["replaced"]["by"]) == (1.5, "pip install vllm")
    assert (seen["control"]["exit_status"], seen["control"]["signature"]["type"]) == (0, "ValueError")
    assert seen["control"]["control"] is None


def test_a_node_tells_its_gpus_and_why_it_is_out(http: httpx.Client, flow: FakeFlow) -> None:
    gpu = Gpu(0, "NVIDIA H100", "nvidia-h100", 80 << 30)
    flow.machines = (replace(flow.machines[0], gpus=(gpu,), out="NVLink error"), *flow.machines[1:])
    (node,) = http.get(f"{API}/nodes").json()["items"]
    assert node["gpus"] == [{"index": 0, "model": "NVIDIA H100", "gpu_class": "nvidia-h100", "memory_bytes": 80 << 30}]
    assert node["out"] == "NVLink error"
    back = http.post(f"{API}/nodes/node-1/return")
    assert (back.status_code, back.json()["out"]) == (200, "")
    assert http.get(f"{API}/nodes").json()["items"][0]["out"] == ""
    assert http.post(f"{API}/nodes/elsewhere/return").status_code == 404


def test_judging_again_answers_the_probes_whose_verdict_changed(http: httpx.Client, flow: FakeFlow, found: str) -> None:
    path = f"{API}/bisections/{found}/judge"
    assert http.post(path).json()["items"] == []
    flow.judged_again = (flow.probe(f"{found}.2"),)
    assert [probe["id"] for probe in http.post(path).json()["items"]] == [f"{found}.2"]
    assert http.post(f"{API}/bisections/unknown/judge").status_code == 404
