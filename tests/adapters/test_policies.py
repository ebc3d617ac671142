"""Policies as an operator writes them: what they come to, and what is said of each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service import wiring
from service.adapters.policies import load
from service.domain.access import Scope
from service.domain.budget import Budget, Priority
from service.domain.policy import CallerPolicy
from service.domain.recipe import SandboxKind

WHOLE = """\
policies:
  - name: outsiders
    scope: submit
    callers: ["github:*"]
    sandboxes: [docker]
    networks: [none]
    build_networks: [none, lab]
    secrets: [HF_TOKEN]
    images: ["ghcr.example/ours/*"]
    gpus: 2
    width: 4
    priority: low
    budget: {probes: 40, wall: 6h, gpu_hours: 20}
  - name: others
"""


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "policies.yaml").write_text(text)
    return str(tmp_path / "policies.yaml")


def test_a_file_says_all_that_a_policy_can_hold(tmp_path: Path) -> None:
    outsiders, others = load(written(tmp_path, WHOLE))
    assert outsiders == CallerPolicy(
        "outsiders",
        Scope.SUBMIT,
        ("github:*",),
        frozenset({SandboxKind.DOCKER}),
        ("none",),
        ("none", "lab"),
        ("HF_TOKEN",),
        ("ghcr.example/ours/*",),
        2,
        4,
        Priority.LOW,
        Budget(40, 21600.0, 72000.0),
    )
    assert others.networks == ("none", "bridge") and others.secrets == () and others.priority is Priority.NORMAL


def test_what_is_left_out_is_as_usual_for_the_scope_and_what_is_for_any_as_for_who_only_submits() -> None:
    operate, anyone = load(json.dumps({"policies": [{"name": "a", "scope": "operate", "gpus": 8}, {"name": "b"}]}))
    assert operate == CallerPolicy("a", Scope.OPERATE, gpus=8)
    assert anyone.secrets == () and anyone.sandboxes is None and anyone.budget == Budget()


def test_without_a_setting_there_are_the_usual_ones_alone(tmp_path: Path) -> None:
    assert load("") == load(" \n") == load(written(tmp_path, "")) == load('{"policies": []}') == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policies:\n- name: a\n  sandbox: [docker]\n", "line 3: unknown key 'sandbox'; did you mean 'sandboxes'?"),
        ("policy: []\n", "line 1: unknown key 'policy'; did you mean 'policies'?"),
        ("policies:\n- name: a\n  budget: {hours: 3}\n", "line 3: unknown key 'hours'; did you mean 'gpu_hours'?"),
        ("policies:\n- scope: submit\n", "line 2: policies.0.name is missing"),
        (
            "policies:\n- name: a\n  sandboxes: [chroot]\n",
            "line 3: policies.0.sandboxes.0: input should be 'docker' or",
        ),
        ("policies:\n- name: a\n  secrets: HF_TOKEN\n", "line 3: policies.0.secrets is no list"),
        ("policies:\n- name: a\n  gpus: many\n", "line 3: policies.0.gpus is no whole number"),
        ("policies:\n- name: a\n  gpus: -1\n", "line 3: policies.0.gpus: input should be greater than or equal to 0"),
        ("policies:\n- name: a\n\n  budget:\n    wall: soon\n", "line 5: wall: 'soon' is no duration"),
        ("policies:\n- name: a\n- name: b\n- name: a\n", "line 4: 'a' is given twice"),
        ("policies:\n- name: a\n  name: b\n", "line 3: 'name' is given twice"),
        ("- name: a\n", "line 1: it is no mapping; write it like policies:"),
        ("policies:\n- name: [\n", "no YAML"),
        ("policies: &x [*x]\n", "line 1: this value holds itself"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match="policies.yaml") as caught:
        load(written(tmp_path, text))
    assert said in str(caught.value)


def test_what_is_wrong_in_json_or_cannot_be_read_is_told_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the JSON, line 1: policies\.0\.width"):
        load('{"policies": [{"name": "a", "width": 0}]}')
    with pytest.raises(ValueError, match="no such file or directory; name a YAML file"):
        load(str(tmp_path / "none.yaml"))
    (tmp_path / "latin.yaml").write_bytes(b"policies: [\xff]")
    with pytest.raises(ValueError, match="byte 11 is not UTF-8"):
        load(str(tmp_path / "latin.yaml"))


def test_a_service_with_a_wrong_policy_does_not_start_and_names_the_setting(tmp_path: Path) -> None:
    given = wiring.settings(home=tmp_path, policies='{"policies": [{"nam": "a"}]}')
    with pytest.raises(ValueError, match=r"^FIRSTBAD_POLICIES: the JSON, line 1: "):
        wiring.check(given)
    wiring.check(wiring.settings(home=tmp_path, policies='{"policies": [{"name": "a"}]}'))
