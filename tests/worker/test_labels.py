"""What a node says of itself, by which orders are routed: its labels, and the models that it holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.waiting import eventually
from tests.worker.node import Node
from worker.contract import Task
from worker.run.hub import Hub, named
from worker.settings import Settings, complaints


def download(hub: Path, folder: str) -> Path:
    """As the hub's library leaves a model."""
    snapshot = hub / folder / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    return hub / folder


def test_a_node_tells_its_labels_and_models_and_what_changes_with_the_next_heartbeat(
    node: Node, tmp_path: Path
) -> None:
    hub = tmp_path / "models" / "hub"
    first = download(hub, "models--Qwen--Qwen3-0.6B")
    node.settings.update(FIRSTBAD_LABELS="nvlink, rack=7,nvlink", FIRSTBAD_MODEL_CACHE=str(tmp_path / "models"))
    node.start()
    booted = node.next(Task.NODE, event="booted")
    assert booted["labels"] == ["nvlink", "rack=7"]
    assert booted["models"] == ["Qwen/Qwen3-0.6B"]
    download(hub, "models--gpt2")
    eventually(lambda: node.next(Task.NODE, event="alive")["models"] == ["Qwen/Qwen3-0.6B", "gpt2"])
    shutil.rmtree(first)
    eventually(lambda: node.next(Task.NODE, event="alive")["models"] == ["gpt2"])


def test_a_model_counts_once_a_snapshot_of_it_is_there(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    assert hub.models() == ()
    begun = tmp_path / "hub" / "models--A--b" / "snapshots"
    begun.mkdir(parents=True)
    assert hub.models() == ()
    (begun / "0123").mkdir()
    assert hub.models() == ("A/b",)
    (begun / "0123").rmdir()
    assert hub.models() == ()
    # Also where the folder that was named is the hub itself; and what is no model is none.
    download(tmp_path, "models--c")
    for other in ("datasets--A--d", "models--../../etc", "models--", "version.txt"):
        (tmp_path / "hub" / other.replace("/", "_")).mkdir(parents=True)
    assert hub.models() == ("c",)


@pytest.mark.parametrize(
    ("folder", "model"),
    [
        ("models--Qwen--Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("models--gpt2", "gpt2"),
        ("models--a--b--c", None),
        ("models---x", None),
        ("models--a b", None),
        ("datasets--a--b", None),
    ],
)
def test_models_are_named_as_the_hub_names_them(folder: str, model: str | None) -> None:
    assert named(folder) == model


def test_a_node_without_a_folder_of_models_or_with_one_that_is_gone_has_none(tmp_path: Path) -> None:
    assert Hub(None).models() == Hub(tmp_path / "none").models() == ()


@pytest.mark.parametrize("wrong", ["-x", "a b", "é", "x" * 64])
def test_a_label_that_no_request_could_name_is_told(wrong: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(labels=f"fine,{wrong}")  # type: ignore[arg-type]
    (said,) = complaints(refused.value)
    assert said.startswith("FIRSTBAD_LABELS:") and repr(wrong) in said and "nvlink" in said
