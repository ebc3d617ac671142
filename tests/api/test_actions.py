"""What a person does to a bisection over the API: verdicts by hand, further runs, budgets, and others like it."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters import readers, servers
from service.application.clone import as_cloned
from service.application.ports import Policy
from service.application.submit import complete
from service.domain.access import Scope
from service.domain.budget import Budget
from service.domain.evidence import Verdict
from service.domain.recipe import Fixup, Recipe, Resources, SandboxKind
from service.doors.api import written
from service.doors.api.bodies import submission
from service.doors.gate import Gate
from service.web import create_app
from tests.api.requests import MINIMAL, SUBMISSION
from tests.callers import TESTER, caller
from tests.fakes.flow import FakeFlow, sha
from tests.fakes.server import serving

PATH = "/api/v1/bisections"
RECIPES = {
    "python": Recipe("python"),
    "source": Recipe("source"),
    "gpus": Recipe(
        "gpus",
        build_command="make wheel",
        image="img:1",
        env={"A": "1"},
        fixups=(Fixup("a..b", patch="--- a\n"),),
        secrets=("HF_TOKEN",),
        resources=Resources(gpus=2, gpu="H100", shm_bytes=1 << 30, labels=("nvlink",)),
    ),
}
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)


@pytest.fixture
def id(flow: FakeFlow) -> str:
    made = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(made, 8)
    return made


def test_a_verdict_by_hand_is_kept_with_who_and_why(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    body = {"commit": sha(3)[:8], "verdict": "bad", "why": "seen on my desk"}
    answer = http.post(f"{PATH}/{id}/overrides", json=body)
    assert answer.status_code == 200, answer.text
    (said,) = flow.kept[id].overrides
    assert (said.sha, said.verdict, said.why) == (sha(3), Verdict.BAD, "seen on my desk")
    (shown,) = http.get(f"{PATH}/{id}").json()["overrides"]
    assert (shown["sha"], shown["verdict"], shown["why"]) == (sha(3), "bad", "seen on my desk")
    http.post(f"{PATH}/{id}/overrides", json={**body, "verdict": "none"})
    assert flow.kept[id].overrides[-1].verdict is None


@pytest.mark.parametrize(
    ("change", "field"),
    [({"verdict": "ugly"}, "verdict"), ({"commit": "zz"}, "commit"), ({"why": ""}, "why"), ({"by": "me"}, "by")],
)
def test_what_cannot_be_a_verdict_is_told_with_its_field(
    http: httpx.Client, id: str, change: dict[str, str], field: str
) -> None:
    answer = http.post(f"{PATH}/{id}/overrides", json={"commit": sha(3), "verdict": "bad", "why": "x", **change})
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_run_that_is_asked_for_is_a_probe_of_its_own(http: httpx.Client, id: str) -> None:
    answer = http.post(f"{PATH}/{id}/probes", json={"commit": sha(3), "why": "to be sure"})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["purpose"], answer.json()["sha"]) == ("asked for", sha(3))
    assert http.get(answer.headers["location"]).json()["id"] == answer.json()["id"]


def test_each_limit_of_a_budget_changes_by_itself(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    flow.kept[id] = replace(flow.kept[id], budget=Budget(probes=4, wall_s=60.0))
    assert http.patch(f"{PATH}/{id}", json={"budget": {"probes": 9}}).status_code == 200
    assert flow.kept[id].budget == Budget(probes=9, wall_s=60.0)
    http.patch(f"{PATH}/{id}", json={"budget": {"wall": None, "probes": 10}, "priority": "low"})
    assert (flow.kept[id].budget, flow.kept[id].priority) == (Budget(probes=10), "low")
    report = http.get(f"{PATH}/{id}").json()
    assert (report["budget"]["probes"], report["request"]["budget"]["probes"]) == (10, None)
    assert http.patch(f"{PATH}/{id}", json={}).status_code == 422
    assert http.patch(f"{PATH}/{id}", json={"budget": {"probes": 1}}).json()["field"] == "budget.probes"


def test_a_clone_has_the_request_with_the_changes_in_it(http: httpx.Client, flow: FakeFlow, id: str) -> None:
    same = http.post(f"{PATH}/{id}/clone")
    assert same.status_code == 201, same.text
    assert same.json()["clone_of"] == id
    assert flow.kept[same.json()["id"]].request == flow.kept[id].request
    other = http.post(f"{PATH}/{id}/clone", json={"bad": "v9", "width": 3, "serve": {"command": "x"}})
    assert other.status_code == 201, other.text
    request = flow.kept[other.json()["id"]].request
    assert (request.bad, request.width, request.reproduction.script) == ("v9", 3, None)
    assert http.post(f"{PATH}/{id}/clone", json={"budgte": 1}).json()["field"] == "budgte"
    assert http.post(f"{PATH}/none/clone").status_code == 404


DOCUMENTS = [
    MINIMAL,
    {"good": ["a", "b"], "bad": "c", "repo": "https://x.test/y.git", "project": "gpus", "script": "a\nb\n",
     "env": {"B": "2"}, "fixups": [{"range": "c..d", "cherry_pick": "e"}], "secrets": ["X_TOKEN"], "hang": "bad",
     "budget": {"probes": 9, "wall": "90m", "gpu_hours": 0.333333333}, "resources": {"memory": "3GiB", "cpus": 0.5},
     "failure": "boom", "flaky": "true", "first_parent": "true", "timeout": "7m", "deps": {"as_of": "2025-09-25"}},
    {"good": "a", "bad": "c", "repo": "https://x.test/y.git", "project": "source", "check": "curl x",
     "serve": {"command": "serve --n 2", "ready": {"log": "up", "within": "3m"}, "port": 81},
     "control": {"replace": {"--n 2": "--n 3"}}, "failure": "boom", "other_failures": "bad"},
    {"good": "a", "bad": "c", "repo": "https://x.test/y.git", "project": "source", "script": "x",
     "metric": [{"reader": "vllm bench serve", "name": "output_throughput", "threshold": "7.3%"},
                {"csv": {"column": "ts", "where": {"t": "1"}}, "better": "lower", "name": "l", "aggregate": "mean"},
                {"json": "$.a", "unit_path": "$.u", "better": "lower", "threshold": 0.1, "name": "j"}],
     "measuring": {"runs": 9, "warmup": 2}},
    {"good": "a", "bad": "c", "repo": "https://x.test/y.git", "project": "gpus", "failure_in": "build"},
]  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_request_that_is_written_again_is_the_same(document: dict[str, object]) -> None:
    first = complete(submission(dict(document)), RECIPES, POLICY, servers.load(), readers.load())
    again = submission(written.document(first, RECIPES))
    assert as_cloned(complete(again, RECIPES, POLICY, servers.load(), readers.load()), first) == first


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    hours=st.floats(0.000001, 1000).map(lambda hours: f"{hours:.9f}"),
    share=st.floats(0.001, 99, allow_subnormal=False).map(lambda share: f"{share:.6g}%"),
    timeout=st.floats(1, 80000).map(lambda seconds: f"{seconds:.3f}"),
)
def test_numbers_survive_being_written_again(hours: str, share: str, timeout: str) -> None:
    document = {**DOCUMENTS[3], "project": "gpus", "budget": {"gpu_hours": hours}, "timeout": timeout}
    document["metric"] = {"pattern": "x ([0-9]+)", "better": "higher", "threshold": share}
    if float(hours) <= 0:
        return
    first = complete(submission(document), RECIPES, POLICY, servers.load(), readers.load())
    again = submission(written.document(first, RECIPES))
    assert complete(again, RECIPES, POLICY, servers.load(), readers.load()) == first


def test_only_its_submitter_or_an_operator_does_any_of_it() -> None:
    """A clone holds what the first one does, a password in its address too."""
    flow = FakeFlow()
    mine = flow.submit(SUBMISSION, caller("token:mine", Scope.SUBMIT)).id
    flow.look_up(mine, 8)
    calls = [
        ("POST", f"/{mine}/overrides", {"commit": sha(3), "verdict": "bad", "why": "x"}, 200),
        ("POST", f"/{mine}/probes", {"commit": sha(3), "why": "x"}, 201),
        ("PATCH", f"/{mine}", {"budget": {"probes": 9}}, 200),
        ("POST", f"/{mine}/clone", {}, 201),
    ]
    texts = {name: flow.create_token(name, Scope.SUBMIT, "test")[1] for name in ("mine", "other")}
    with serving(create_app(flow, gate=Gate(open=False))) as url:
        for name, text in texts.items():
            headers = {"Authorization": f"Bearer {text}"}
            with httpx.Client(base_url=url, trust_env=False, headers=headers) as http:
                for method, way, body, done in calls:
                    answer = http.request(method, f"{PATH}{way}", json=body)
                    assert answer.status_code == (done if name == "mine" else 403), (name, way, answer.text)
    assert [said.by for said in flow.kept[mine].overrides] == ["token:mine"]
