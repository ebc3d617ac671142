from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from service.domain.budget import Budget
from service.domain.recipe import Deps, Fixup, Resources
from tests.api.requests import MINIMAL, YAML
from tests.fakes.flow import FakeFlow

PATH = "/api/v1/bisections"
AS_YAML = {"content-type": "application/yaml"}


def refused(answer: httpx.Response, status: int = 422) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["title"] and problem["detail"] and problem["type"].startswith("/problems/")
    return problem


def test_a_json_request_is_taken_and_its_place_is_told(http: httpx.Client) -> None:
    answer = http.post(PATH, json=MINIMAL)
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"] == f"{PATH}/{made['id']}"
    assert http.get(answer.headers["location"]).json()["id"] == made["id"]
    assert (made["state"], made["good"], made["bad"]) == ("queued", ["v1"], "main")


def test_every_key_of_a_yaml_request_arrives_as_it_was_written(http: httpx.Client, flow: FakeFlow) -> None:
    made = http.post(PATH, content=YAML, headers=AS_YAML).json()
    request = flow.bisection(made["id"]).request
    assert request.good == ("072d7e5", "0.10")
    assert request.bad == "1234567"
    assert request.recipe.env == {"LEVEL": "1", "FAST": "yes", "RATE": "0.10", "NOTHING": ""}
    assert request.flaky is True
    assert (request.width, request.first_parent, request.timeout_s, request.hang_is_bad) == (3, True, 5400.0, True)
    assert (request.recipe.build_command, request.recipe.image) == ("python -m build --wheel", "debian:12")
    assert (request.sandbox, request.recipe.network) == ("docker", "none")
    reproduction = request.reproduction
    assert reproduction.serve is not None
    assert reproduction.serve.command == "tinyserve serve --num_speculative_tokens 2"
    assert (reproduction.serve.ready_http, reproduction.serve.within_s) == ("/health", 1200.0)
    assert reproduction.check == "curl -f localhost:8000/v1/completions\n"
    assert reproduction.failure == "capture sizes: must be multiples"
    assert request.failure_in == "run"
    assert request.control is not None and request.control.serve is not None
    assert request.control.serve.command == "tinyserve serve --num_speculative_tokens 3"
    assert (request.control.check, request.other_failures) == (reproduction.check, "bad")
    on = {"labels": ("nvlink",), "models": ("Qwen/Qwen3-8B",)}
    assert request.recipe.resources == Resources(4, "H800|H100", 16 << 30, 64 << 30, 0.5, 4096, **on)
    assert (request.priority, request.budget) == ("high", Budget(40, 6 * 3600.0, 20 * 3600.0))
    assert flow.bisection(made["id"]).priority == "high"
    assert (request.recipe.secrets, request.recipe.model_cache) == (("HF_TOKEN",), "none")
    recipe = request.recipe
    assert (recipe.package, recipe.native_paths, recipe.overlay_command) == ("tinyserve", ("csrc/**",), "make overlay")
    assert recipe.wheel_paths == ("tinyserve/**", "csrc/**", "/pyproject.toml")
    assert recipe.deps == Deps("2025-09-25", "torch==2.8.0\n")
    picked, patched = recipe.fixups
    assert picked == Fixup("v1..0.10", cherry_pick="1234567")
    assert patched == Fixup("v1..v2", patch="--- a/x\n+++ b/x\n")


def test_the_request_is_shown_with_the_words_that_it_was_written_in(http: httpx.Client) -> None:
    made = http.post(PATH, content=YAML, headers=AS_YAML).json()
    shown = http.get(made["links"]["self"]).json()["request"]
    assert (shown["package"], shown["native_paths"], shown["overlay"]) == ("tinyserve", ["csrc/**"], "make overlay")
    assert shown["deps"] == {"as_of": "2025-09-25", "constraints": "torch==2.8.0\n"}
    assert shown["fixups"][0] == {"range": "v1..0.10", "cherry_pick": "1234567", "patch": None}
    assert (shown["failure_in"], shown["wheel_indexes"]) == ("run", [])


@pytest.mark.parametrize(
    "secrets",
    [["HF_TOKEN=hf_verysecret"], {"HF_TOKEN": "hf_verysecret"}, "HF_TOKEN=hf_verysecret", [["hf_verysecret"]]],
)
def test_a_secret_s_value_in_the_place_of_its_name_is_not_said_again(http: httpx.Client, secrets: object) -> None:
    answer = http.post(PATH, json={**MINIMAL, "secrets": secrets})
    assert refused(answer)["field"].startswith("secrets")
    assert "name" in answer.json()["advice"]
    assert "verysecret" not in answer.text


def test_a_build_that_fails_needs_nothing_to_run(http: httpx.Client, flow: FakeFlow) -> None:
    body = {key: value for key, value in MINIMAL.items() if key != "script"}
    made = http.post(PATH, json={**body, "build": "make wheel", "failure_in": "build", "failure": "error: x"}).json()
    request = flow.bisection(made["id"]).request
    assert (request.failure_in, request.reproduction.script, request.reproduction.failure) == (
        "build",
        None,
        "error: x",
    )
    assert http.get(made["links"]["self"]).json()["request"]["failure_in"] == "build"


def test_indexes_of_wheels_are_the_operator_s_to_name(http: httpx.Client) -> None:
    problem = refused(http.post(PATH, json={**MINIMAL, "wheel_indexes": ["https://example.org/{sha}"]}))
    assert problem["field"] == "wheel_indexes"
    assert "a key of recipes alone: nodes fetch from those addresses" in problem["detail"]
    assert problem["advice"]


@pytest.mark.parametrize("written", [90, 90.0, "90", "90s", "1m30s"])
def test_a_duration_is_a_number_of_seconds_or_has_units(http: httpx.Client, flow: FakeFlow, written: object) -> None:
    made = http.post(PATH, json={**MINIMAL, "timeout": written}).json()
    assert flow.bisection(made["id"]).request.timeout_s == 90.0


@pytest.mark.parametrize(
    ("body", "field", "advice"),
    [
        ({**MINIMAL, "god": "v1"}, "god", "good"),
        ({**MINIMAL, "first-parent": True}, "first-parent", "first_parent"),
        ({**MINIMAL, "Timeout": 3}, "Timeout", "timeout"),
        ({**MINIMAL, "qqqq": 3}, "qqqq", "known here are: good, bad"),
        ({**MINIMAL, "native_path": ["x"]}, "native_path", "native_paths"),
        ({**MINIMAL, "deps": {"as_off": "bad"}}, "deps.as_off", "as_of"),
        ({**MINIMAL, "fixups": [{"range": "a..b", "cherrypick": "c"}]}, "fixups.0.cherrypick", "cherry_pick"),
        ({**MINIMAL, "script": None, "serve": {"comand": "x"}}, "serve.comand", "command"),
        ({**MINIMAL, "script": None, "serve": {"command": "x", "ready": {"htp": "/"}}}, "serve.ready.htp", "http"),
    ],
)
def test_an_unknown_key_is_named_and_the_nearest_known_one_suggested(
    http: httpx.Client, body: object, field: str, advice: str
) -> None:
    problem = refused(http.post(PATH, json=body))
    assert problem["field"] == field
    assert advice in problem["advice"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"bad": None}, "bad"),
        ({"bad": ""}, "bad"),
        ({"good": []}, "good"),
        ({"good": ["v1", 3]}, "good.1"),
        ({"good": 1234567}, "good"),
        ({"width": 0}, "width"),
        ({"width": "many"}, "width"),
        ({"width": 10**300}, "width"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 10**300}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"sandbox": "chroot"}, "sandbox"),
        ({"network": "all"}, "network"),
        ({"control": {"script": "a", "replace": {"a": "b"}}}, "control.script"),
        ({"control": {}}, "control.script"),
        ({"control": {"check": "a", "script": "b"}}, "control.check"),
        ({"control": {"replace": {"nowhere": "x"}}}, "control.replace"),
        ({"control": {"replace": {}}}, "control.replace"),
        ({"control": {"replace": {"false": 3}}}, "control.replace.false"),
        ({"control": {"serve": {"command": "x", "ready": {"http": "x"}}}}, "control.serve.ready.http"),
        ({"other_failures": "good"}, "other_failures"),
        ({"metric": {"pattern": "x"}}, "metric.better"),
        ({"metric": {"better": "higher"}}, "metric"),
        ({"metric": {"better": "more", "json": "$"}}, "metric.better"),
        ({"metric": {"better": "lower", "json_path": "$.x"}}, "metric.json_path"),
        ({"metric": {"better": "lower", "json": "$["}}, "metric.json"),
        ({"metric": {"better": "lower", "pattern": "(a)(b)"}}, "metric.pattern"),
        ({"metric": {"better": "lower", "pattern": "("}}, "metric.pattern"),
        ({"metric": {"better": "lower", "pattern": "a"}, "flaky": True}, "flaky"),
        ({"metric": []}, "metric"),
        ({"metric": [{"better": "lower", "pattern": "a"}, "x"]}, "metric.1"),
        ({"metric": [{"better": "lower", "pattern": "a"}, {"better": "lower", "pattern": "("}]}, "metric.1.pattern"),
        ({"metric": [{"better": "lower", "pattern": "a"}, {"bettr": "lower", "pattern": "a"}]}, "metric.1.bettr"),
        ({"metric": [{"better": "lower", "pattern": "a"}] * 2}, "metric.1"),
        ({"metric": [{"better": "lower", "pattern": "a", "name": f"{n}"} for n in range(21)]}, "metric"),
        ({"metric": {"better": "lower", "csv": ""}}, "metric.csv"),
        ({"metric": {"better": "lower", "csv": 3}}, "metric.csv"),
        ({"metric": {"better": "lower", "csv": {"where": {}}}}, "metric.csv.column"),
        ({"metric": {"better": "lower", "csv": {"column": ""}}}, "metric.csv.column"),
        ({"metric": {"better": "lower", "csv": {"column": "a", "where": {"b": 3}}}}, "metric.csv.where.b"),
        ({"metric": {"better": "lower", "pattern": "a", "threshold": "0%"}}, "metric.threshold"),
        ({"metric": {"better": "lower", "pattern": "a", "threshold": -1.5}}, "metric.threshold"),
        ({"metric": {"better": "lower", "pattern": "a", "aggregate": "sum"}}, "metric.aggregate"),
        ({"metric": {"better": "lower", "pattern": "a", "decides": "perhaps"}}, "metric.decides"),
        ({"metric": {"reader": "vllm", "name": "x"}}, "metric.reader"),
        ({"metric": {"reader": "vllm bench serve", "name": "speed"}}, "metric.name"),
        ({"measuring": {"runs": 30}}, "measuring"),
        ({"metric": {"better": "lower", "pattern": "a"}, "measuring": {"runs": 1}}, "measuring.runs"),
        ({"metric": {"better": "lower", "pattern": "a"}, "measuring": {"runs": "many"}}, "measuring.runs"),
        ({"metric": {"better": "lower", "pattern": "a"}, "measuring": {"warm_up": 1}}, "measuring.warm_up"),
        ({"resources": {"cpuset": "all"}}, "resources.cpuset"),
        ({"resources": {"cpuset": [1]}}, "resources.cpuset"),
        ({"resources": {"numa": -1}}, "resources.numa"),
        ({"resources": {"numa": 0, "cpuset": 1}}, "resources.cpuset"),
        ({"resources": {"gpus": -1}}, "resources.gpus"),
        ({"resources": {"gpus": "many"}}, "resources.gpus"),
        ({"resources": {"shm": "lots"}}, "resources.shm"),
        ({"resources": {"shm": True}}, "resources.shm"),
        ({"resources": {"gpu": "H100"}}, "resources.gpu"),
        ({"resources": {"cpus": 10**300}}, "resources.cpus"),
        ({"resources": {"pids": 1}}, "resources.pids"),
        ({"resources": {"cpu": 1}}, "resources.cpu"),
        ({"resources": {"labels": ["a,b"]}}, "resources.labels.0"),
        ({"resources": {"labels": [f"l{n}" for n in range(21)]}}, "resources.labels"),
        ({"resources": {"models": ["Qwen/Qwen3", "../etc"]}}, "resources.models.1"),
        ({"resources": {"models": {"Qwen": 1}}}, "resources.models"),
        ({"priority": "urgent"}, "priority"),
        ({"budget": 40}, "budget"),
        ({"budget": {"probes": 1}}, "budget.probes"),
        ({"budget": {"probes": 2.5}}, "budget.probes"),
        ({"budget": {"probe": 40}}, "budget.probe"),
        ({"budget": {"wall": "nan"}}, "budget.wall"),
        ({"budget": {"wall": "-6h"}}, "budget.wall"),
        ({"budget": {"gpu_hours": 20}}, "budget.gpu_hours"),
        ({"secrets": ["A", "A B"]}, "secrets.1"),
        ({"secrets": ["X"], "env": {"X": "1"}}, "secrets.0"),
        ({"model_cache": "shared"}, "model_cache"),
        ({"model_cache": "rw"}, "model_cache"),
        ({"pasted": "perhaps"}, "pasted"),
        ({"script": None, "serve": {"command": "x", "port": 0}}, "serve.port"),
        ({"hang": "good"}, "hang"),
        ({"env": {"A B": "1"}}, "env.A B"),
        ({"env": {"A": "x\0"}}, "env.A"),
        ({"script": "a\0b"}, "script"),
        ({"script": "\ud800"}, "script"),
        ({"script": " "}, "script"),
        ({"script": None}, "script"),
        ({"serve": {"command": "x"}}, "script"),
        ({"project": "unheard-of"}, "project"),
        ({"repo": None}, "repo"),
        ({"check": "x"}, "check"),
        ({"first_parent": "maybe"}, "first_parent"),
        ({"package": "a b"}, "package"),
        ({"native_paths": [3], "build": "x"}, "native_paths.0"),
        ({"native_paths": ["a", ""], "build": "x"}, "native_paths.1"),
        ({"native_paths": ["a", "../b"], "build": "x"}, "native_paths.1"),
        ({"native_paths": ["a"] * 201, "build": "x"}, "native_paths"),
        ({"native_paths": ["a"]}, "native_paths"),
        ({"wheel_paths": "a\0", "build": "x"}, "wheel_paths.0"),
        ({"wheel_paths": ["a" * 501], "build": "x"}, "wheel_paths.0"),
        ({"overlay": "make", "build": "x"}, "overlay"),
        ({"deps": {"as_of": "tomorrow"}}, "deps.as_of"),
        ({"deps": {"as_of": 20250925}}, "deps.as_of"),
        ({"deps": {"constraints": "-r x"}}, "deps.constraints"),
        ({"fixups": [{"range": "a..b"}]}, "fixups.0"),
        ({"fixups": [{"cherry_pick": "c"}]}, "fixups.0.range"),
        ({"fixups": [{"range": "a", "cherry_pick": "c"}]}, "fixups.0.range"),
        ({"fixups": {"range": "a..b", "cherry_pick": "c"}}, "fixups"),
        ({"fixups": [{"range": "a..b", "patch": "\ud800"}]}, "fixups.0.patch"),
        ({"failure_in": "install"}, "failure_in"),
        ({"failure_in": "build", "build": "x"}, "script"),
        ({"failure_in": "build", "script": None}, "failure_in"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_the_name_of_its_field(
    http: httpx.Client, change: dict[str, object], field: str
) -> None:
    text = json.dumps({**MINIMAL, **change})
    problem = refused(http.post(PATH, content=text, headers={"content-type": "application/json"}))
    assert problem["field"] == field
    assert problem["instance"] == PATH


@pytest.mark.parametrize(
    ("change", "field", "advice"),
    [
        ({"serve": "tinyserve serve"}, "serve", "write it as serve: {command: …}"),
        ({"serve": {"command": "x", "ready": "/x"}}, "serve.ready", "write it as ready: {http: /health}"),
        ({"env": "A=1"}, "env", "write it as env: {NAME: value}"),
        ({"deps": "today"}, "deps", "write it as deps: {as_of: 2025-09-25}"),
        ({"control": "x"}, "control", "write it as control: {replace: {text: text}}"),
        ({"control": {"replace": "x"}}, "control.replace", "write it as replace: {text: text}"),
        ({"metric": "x"}, "metric", "write it as metric: {pattern: …, better: higher}"),
        ({"metric": ["x"]}, "metric.0", "write it as metric: {pattern: …, better: higher}"),
        ({"measuring": 3}, "measuring", "write it as measuring: {runs: 50}"),
        ({"resources": 4}, "resources", "write it as resources: {gpus: 4}"),
    ],
)
def test_text_in_place_of_a_mapping_is_shown_how_to_write_it(
    http: httpx.Client, change: dict[str, object], field: str, advice: str
) -> None:
    problem = refused(http.post(PATH, json={**MINIMAL, **change}))
    assert (problem["field"], problem["advice"]) == (field, advice)
    assert problem["detail"].endswith("is no mapping")


def test_all_wrong_fields_are_listed_at_once(http: httpx.Client) -> None:
    problem = refused(http.post(PATH, json={"script": "x", "width": "many", "repo": 3}))
    assert {error["field"] for error in problem["errors"]} == {"good", "bad", "width", "repo"}


def test_no_more_wrong_fields_are_listed_than_anyone_reads(http: httpx.Client) -> None:
    problem = refused(http.post(PATH, json={**MINIMAL, "env": {f"{number}": "" for number in range(50_000)}}))
    assert len(problem["errors"]) == 20


def test_a_script_over_the_limit_is_too_large(http: httpx.Client) -> None:
    problem = refused(http.post(PATH, json={**MINIMAL, "script": "x" * (256 * 1024 + 1)}), 413)
    assert problem["field"] == "script"
    assert http.post(PATH, json={**MINIMAL, "script": "x" * (256 * 1024)}).status_code == 201


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json", "text/html"],
)
def test_what_a_form_of_another_site_can_send_is_refused(http: httpx.Client, flow: FakeFlow, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    problem = refused(http.post(PATH, content=json.dumps(MINIMAL).encode(), headers=headers), 415)
    assert "application/json" in problem["advice"]
    assert not flow.bisections()


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", "application/x-yaml", "text/yaml"]
)
def test_the_languages_of_a_request_have_several_names(http: httpx.Client, content_type: str) -> None:
    answer = http.post(PATH, content=json.dumps(MINIMAL).encode(), headers={"content-type": content_type})
    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty"),
        (b"just words", "no mapping"),
        (b"- a\n- b\n", "no mapping"),
        (b"good: a: b\n", "line 1, column 8"),
        (b"good: 'open\n", "no YAML"),
        (b"good: v1\ngood: v2\n", "given twice"),
        (b"good: &x v1\nbad: *x\n", "alias"),
        (b"good: !!python/object/apply:os.system [id]\n", "no YAML"),
        (b"? [a, b]\n: 1\n", "no YAML"),
        (b"1: a\n", "'1' is no key"),
        (b"good: \xff\n", "UTF-8"),
        (b"good: \x00\n", "no YAML"),
        (b"good: " + b"[" * 5000, "no YAML"),
        (b"[" * 100_000, "YAML"),
        (b"good: [" + b"1," * 30_000 + b"1]", "too many"),
        (b"---\ngood: a\n---\nbad: b\n", "no YAML"),
        (b"good: !!int x\n", "no usable YAML"),
        (b"good: !!timestamp 2026-99-99\n", "no usable YAML"),
    ],
)
def test_yaml_that_cannot_be_read_says_why(http: httpx.Client, text: bytes, says: str) -> None:
    assert says in refused(http.post(PATH, content=text, headers=AS_YAML))["detail"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "no JSON"),
        (b"{", "line 1, column 2"),
        (b"[]", "no mapping"),
        (b"null", "empty"),
        (b'{"width": NaN}', "NaN"),
        (b'{"good": "a", "good": "b"}', "given twice"),
        (b'{"width": ' + b"9" * 5000 + b"}", "no usable JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"good": "\xff"}', "UTF-8"),
    ],
)
def test_json_that_cannot_be_read_says_why(http: httpx.Client, text: bytes, says: str) -> None:
    answer = http.post(PATH, content=text, headers={"content-type": "application/json"})
    assert says in refused(answer)["detail"]


def test_a_body_over_a_mebibyte_is_refused(http: httpx.Client) -> None:
    problem = refused(http.post(PATH, content=b"#" * (1024 * 1024 + 1), headers=AS_YAML), 413)
    assert problem["field"] == "body"
    assert refused(http.post(PATH, content=b"#" * (1024 * 1024), headers=AS_YAML))["detail"].endswith("empty")


def test_a_body_that_does_not_tell_its_length_is_counted_as_it_comes(http: httpx.Client) -> None:
    pieces = (b"#" * 65536 for _ in range(17))
    refused(http.post(PATH, content=pieces, headers=AS_YAML), 413)


DRY = f"{PATH}?dry_run=true"


def dry(http: httpx.Client, **body: object) -> dict:
    """The request in the answer."""
    return http.post(DRY, **body).json()["request"]


PASTED = "pip install vllm==0.9\nvllm serve m &\nsleep 99\nvllm bench serve\n"
BUILT = {**MINIMAL, "repo": "https://git.example.org/x/vllm.git", "build": "make wheel", "script": PASTED}


def test_a_request_can_be_seen_before_anything_is_begun(http: httpx.Client, flow: FakeFlow) -> None:
    seen = http.post(DRY, json=BUILT)
    assert seen.status_code == 200
    shown = seen.json()["request"]
    assert (shown["script"], shown["check"]) == (None, "vllm bench serve\n")
    assert shown["serve"] == {
        "command": "vllm serve m",
        "ready_http": "/health",
        "ready_log": None,
        "within_s": 1200.0,
        "port": 8000,
    }
    assert len(shown["notes"]) == 3 and "`sleep 99`" in shown["notes"][2]
    assert not flow.bisections()
    made = http.post(PATH, json=BUILT).json()
    assert http.get(made["links"]["self"]).json()["request"] == shown
    assert made["notes"] == shown["notes"]


def test_what_cannot_be_used_is_refused_before_anything_is_begun_too(http: httpx.Client) -> None:
    problem = refused(http.post(DRY, json={**MINIMAL, "width": 0}))
    assert (problem["field"], problem["instance"]) == ("width", PATH)
    refused(http.post(DRY, content=b"x", headers={"content-type": "text/plain"}), 415)


def test_all_that_was_asked_for_is_shown(http: httpx.Client) -> None:
    shown = dry(http, content=YAML, headers=AS_YAML)
    assert shown["control"]["serve"]["command"] == "tinyserve serve --num_speculative_tokens 3"
    assert shown["control"]["check"] == shown["check"]
    assert (shown["other_failures"], shown["secrets"], shown["model_cache"]) == ("bad", ["HF_TOKEN"], "none")
    assert shown["resources"] == {
        "gpus": 4,
        "gpu": "H800|H100",
        "shm_bytes": 16 << 30,
        "memory_bytes": 64 << 30,
        "cpus": 0.5,
        "pids": 4096,
        "cpuset": None,
        "numa": None,
        "labels": ["nvlink"],
        "models": ["Qwen/Qwen3-8B"],
    }
    assert (shown["priority"], shown["budget"]) == ("high", {"probes": 40, "wall_s": 21600.0, "gpu_s": 72000.0})


def test_all_that_was_asked_for_of_a_number_is_shown(http: httpx.Client) -> None:
    metric = [
        {"pattern": "([0-9]+) tok", "better": "higher", "threshold": 0.5, "unit": "tok/s"},
        {"reader": "google-benchmark", "name": "BM_x.real_time", "decides": True, "threshold": "5%"},
        {"csv": {"column": "seconds", "where": {"case": "a"}}, "better": "lower", "name": "wall", "aggregate": "max"},
    ]
    resources = {"gpus": 0, "cpuset": 3}
    asked = {**MINIMAL, "metric": metric, "measuring": {"warmup": 2, "recheck": 0}, "resources": resources}
    shown = dry(http, json=asked)
    of_it = '$.benchmarks[?(@.name == "BM_x")]'
    assert shown["metric"] == {
        "name": "BM_x.real_time",
        "better": "lower",
        "reader": "google-benchmark",
        "pattern": None,
        "json_path": f"{of_it}.real_time",
        "csv": None,
        "unit": "",
        "unit_path": f"{of_it}.time_unit",
        "threshold": {"value": 0.05, "relative": True},
        "aggregate": "median",
    }
    tokens, wall = shown["other_metrics"]
    assert (tokens["name"], tokens["unit"], tokens["threshold"]) == (
        "metric",
        "tok/s",
        {"value": 0.5, "relative": False},
    )
    assert (wall["csv"], wall["aggregate"]) == ({"column": "seconds", "where": {"case": "a"}}, "max")
    assert shown["measuring"] == {"warmup": 2, "runs": 30, "recheck": 0}
    assert shown["resources"]["cpuset"] == "3"
    assert dry(http, json=MINIMAL)["measuring"] is None


@pytest.mark.parametrize("written", [0, -1, "0", "-0.5", "nan", "inf", "1e3", "many", 10**30, ""])
@pytest.mark.parametrize("limit", ["probes", "wall", "gpu_hours"])
def test_a_budget_that_is_none_is_refused_with_its_value_and_what_to_write(
    http: httpx.Client, limit: str, written: object
) -> None:
    body = {**MINIMAL, "resources": {"gpus": 1}, "budget": {limit: written}}
    problem = refused(http.post(PATH, json=body))
    assert problem["field"] == f"budget.{limit}"
    assert problem.get("value", "") == str(written)
    assert written == "" or problem["advice"].split(" ")[0] in ("write", "both")


@pytest.mark.parametrize("budget", [None, {}, {"probes": 2}, {"probes": "40"}, {"gpu_hours": 0.5}, {"wall": 90}])
def test_each_limit_of_a_budget_stands_alone(http: httpx.Client, flow: FakeFlow, budget: dict[str, Any] | None) -> None:
    made = http.post(PATH, json={**MINIMAL, "resources": {"gpus": 1}, "budget": budget}).json()
    kept = flow.bisection(made["id"]).request.budget
    given = {"probes": "probes", "wall": "wall_s", "gpu_hours": "gpu_s"}
    assert {given[name] for name in budget or {}} == {name for name, most in vars(kept).items() if most is not None}
