"""What a node says of the sandbox in which a bisection's builds and runs are to be."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from tests.worker.registry import run
from worker.contract import Builder, Sandbox, SurveyOrder, SurveyResult
from worker.run.stop import CANCELLED, STOPPED, Stop

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def survey(bench: Bench, sandbox: Sandbox | None = None, stop: Stop | None = None) -> SurveyResult | None:
    order = SurveyOrder(bisection="b1", attempt=1, sandbox=sandbox or bench.sandbox)
    return bench.pipeline.survey(order, stop or Stop())


def found(bench: Bench, sandbox: Sandbox | None = None) -> Builder:
    result = survey(bench, sandbox)
    assert result is not None and result.builder is not None, result
    return result.builder


def fault_kind(bench: Bench, sandbox: Sandbox) -> str:
    result = survey(bench, sandbox)
    assert result is not None and result.fault is not None, result
    return result.fault.kind


def test_a_sandbox_is_surveyed(bench: Bench) -> None:
    builder = found(bench)
    inside = bench.text(bench.outcome("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"))
    assert (builder.python, builder.machine) == (inside[-1], platform.machine())
    if bench.sandbox.kind == "process":
        assert builder.image is None
    else:
        assert builder.image == run("docker", "inspect", "--format", "{{.Id}}", str(bench.sandbox.image))
    assert bench.left() == []


def test_what_a_survey_named_can_be_asked_for_by_builds_and_runs(bench: Bench) -> None:
    builder = found(bench)
    bench.sandbox = bench.sandbox.model_copy(update={"image": builder.image, "python": builder.python})
    assert bench.build().wheel is not None
    assert bench.outcome("true").exit_status == 0
    assert found(bench) == builder


def test_a_node_with_another_python_refuses_builds_runs_and_surveys(bench: Bench) -> None:
    bench.sandbox = bench.sandbox.model_copy(update={"python": "3.2"})
    for result in (bench.build("touch /tmp/x"), bench.probe("true"), survey(bench)):
        assert result is not None and result.fault is not None
        assert result.fault.kind == "other-python"
        assert f"this node has Python {HERE}, the bisection was begun with 3.2" == result.fault.message


def test_what_a_survey_cannot_have_is_a_fault(process_bench: Bench, pushed_image: str) -> None:
    assert fault_kind(process_bench, Sandbox(kind="docker", image=pushed_image.replace("image:1", "none:1"))) == "image"
    assert fault_kind(process_bench, Sandbox(kind="docker")) == "order"


def test_a_sandbox_that_is_not_allowed_is_not_surveyed(process_bench: Bench, tmp_path: Path) -> None:
    process_bench.pipeline = pipeline(tmp_path / "other", sandboxes=("process",))
    assert fault_kind(process_bench, Sandbox(kind="docker", image="any")) == "sandbox-refused"


def test_how_to_bring_an_image_that_has_only_an_id_is_told(process_bench: Bench, docker_image: str) -> None:
    result = survey(process_bench, Sandbox(kind="docker", image=f"sha256:{'0' * 64}"))
    assert result is not None and result.fault is not None and result.fault.kind == "image"
    assert "docker load" in result.fault.advice


def test_a_survey_is_stopped_and_cancelled_like_any_order(process_bench: Bench, docker_image: str) -> None:
    sandbox = Sandbox(kind="docker", image=docker_image)
    stopped, cancelled = Stop(), Stop()
    stopped.press(STOPPED)
    cancelled.press(CANCELLED)
    result = survey(process_bench, sandbox, stopped)
    assert result is not None and result.fault is not None and result.fault.kind == "stopped"
    assert survey(process_bench, sandbox, cancelled) is None
    assert process_bench.left() == []


def test_an_image_of_a_registry_is_named_by_its_digest(process_bench: Bench, pushed_image: str) -> None:
    process_bench.sandbox = Sandbox(kind="docker", image=pushed_image)
    builder = found(process_bench)
    assert builder.image is not None and builder.image.startswith(pushed_image.removesuffix(":1") + "@sha256:")
    process_bench.sandbox = Sandbox(kind="docker", image=builder.image, python=builder.python)
    assert found(process_bench) == builder
    build = process_bench.build("exit 3")
    assert build.failure is not None and build.failure.environment["image_digest"] == builder.image
