"""The node's folder of models, in both sandboxes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.worker.bench import Bench
from tests.worker.conftest import pipeline


@pytest.fixture
def models(bench: Bench, tmp_path: Path) -> Path:
    """Known to the bench's node. Its user may write there."""
    folder = tmp_path / "models"
    (folder / "hub").mkdir(parents=True)
    (folder / "hub" / "config.json").write_text("{}")
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    bench.pipeline = pipeline(tmp_path / "node", model_cache=folder)
    return folder


def test_without_a_word_of_it_no_model_is_seen(bench: Bench, models: Path) -> None:
    script = f"echo ${{HF_HOME:-unset}}; test ! -e {models} && test ! -e /firstbad/models"
    assert bench.text(bench.outcome(script)) == ["unset"]


def test_a_cache_can_be_read_and_not_be_written(bench: Bench, models: Path) -> None:
    script = 'cat $HF_HOME/hub/config.json; echo; touch $HF_HOME/x || echo kept; mkdir -p "$HF_MODULES_CACHE"'
    outcome = bench.outcome(script, model_cache="read-only")
    assert outcome.exit_status == 0
    assert bench.text(outcome)[0] == "{}" and bench.text(outcome)[-1] == "kept"
    assert [path.name for path in models.iterdir()] == ["hub"]


def test_a_shared_cache_keeps_what_a_run_puts_there(bench: Bench, models: Path) -> None:
    assert bench.outcome("echo new > $HF_HOME/found", model_cache="shared").exit_status == 0
    assert bench.text(bench.outcome("cat $HF_HOME/found", model_cache="read-only")) == ["new"]


def test_libraries_do_not_look_for_models_where_there_is_no_network(bench: Bench, models: Path) -> None:
    assert bench.text(bench.outcome("echo ${HF_HUB_OFFLINE:-no}", model_cache="read-only")) == ["1"]
    online = bench.outcome("echo ${HF_HUB_OFFLINE:-no}", model_cache="read-only", network="bridge")
    assert bench.text(online) == ["no"]


def test_a_login_stays_in_the_run_that_makes_it(bench: Bench, models: Path) -> None:
    script = (
        'mkdir -p "${HF_TOKEN_PATH%/*}"; echo mine > "${HF_TOKEN_PATH:-$HF_HOME/token}"; cat ~/.cache/huggingface/token'
    )
    assert bench.text(bench.outcome(script, model_cache="shared")) == ["mine"]
    assert [path.name for path in models.iterdir()] == ["hub"]


@pytest.mark.parametrize("name", ["token", "stored_tokens"])
def test_a_cache_that_holds_a_login_is_a_fault_that_says_what_to_remove(bench: Bench, models: Path, name: str) -> None:
    (models / name).write_text("hf_somebody")
    fault = bench.probe("true", model_cache="read-only").fault
    assert fault is not None and fault.kind == "model-cache" and str(models / name) in fault.advice


def test_an_orders_own_variable_counts(bench: Bench, models: Path) -> None:
    outcome = bench.outcome("echo $HF_HOME", model_cache="read-only", env={"HF_HOME": "/tmp/mine"})
    assert bench.text(outcome) == ["/tmp/mine"]


def test_a_node_without_a_cache_is_a_fault_that_says_what_to_set(bench: Bench) -> None:
    fault = bench.probe("true", model_cache="read-only").fault
    assert fault is not None and fault.kind == "model-cache" and "FIRSTBAD_MODEL_CACHE" in fault.advice
    assert bench.left() == []


def test_a_cache_that_is_not_there_is_a_fault(bench: Bench, tmp_path: Path) -> None:
    bench.pipeline = pipeline(tmp_path / "node", model_cache=tmp_path / "nowhere")
    fault = bench.probe("true", model_cache="read-only").fault
    assert fault is not None and fault.kind == "model-cache" and str(tmp_path / "nowhere") in fault.message


def test_a_shared_cache_that_runs_may_not_write_is_a_fault(bench: Bench, models: Path) -> None:
    if os.geteuid() == 0:
        os.chown(models, 0, 0)
    models.chmod(0o555)
    fault = bench.probe("true", model_cache="shared").fault
    models.chmod(0o755)
    owner = 65534 if os.geteuid() == 0 else os.getuid()
    assert fault is not None and fault.kind == "model-cache" and f"chown -R {owner} {models}" in fault.advice
    assert bench.outcome("true", model_cache="read-only").exit_status == 0
