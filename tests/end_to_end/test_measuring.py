"""A number that got worse, all the way: measured again where it varies, and refused where nothing is to be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from examples.generate import Options, generate
from service.domain.lifecycle import BisectionState
from service.doors.api.views import ReportView
from tests.end_to_end.service import Service
from tests.repositories import NewCommit, build_repository

ACCURACY = Path(__file__).parents[2] / "examples" / "requests" / "tinyserve-accuracy.yaml"
#: Prints a number that is up to 3 more than the commit's.
VARIES = 'echo "throughput: $(($(cat speed) + RANDOM % 4)).$((RANDOM % 10)) tok/s"'
THROUGHPUT = {"pattern": r"throughput: ([0-9.]+) tok/s", "name": "throughput", "better": "higher", "unit": "tok/s"}


def source(folder: Path, *speeds: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A repository with a commit for each speed, and a request about it."""
    commits = [NewCommit(files={"n": str(n), "speed": str(speed)}) for n, speed in enumerate(speeds)]
    shas = build_repository(folder / "repository", commits)
    document = {"project": "source", "repo": str(folder / "repository"), "good": shas[0], "bad": shas[-1]}
    return {**document, "script": VARIES, "metric": THROUGHPUT}, shas


def ended(service: Service, document: dict[str, Any], state: BisectionState) -> ReportView:
    report = service.ended(service.submit(document), 240)
    assert report.state is state, report
    return report


def test_a_throughput_that_varies_is_measured_at_both_ends_in_turn_and_then_between_them(
    service: Service, tmp_path: Path
) -> None:
    document, shas = source(tmp_path, *[100] * 5, *[70] * 4)
    report = ended(service, document, BisectionState.FOUND)
    assert report.first_bad == (shas[5],)
    assert report.answer is not None and report.answer.confidence is not None
    assert report.answer.confidence >= 0.95
    with service.client() as client:
        probes = client.probes(report.id)
    assert [shas.index(probe.sha) for probe in probes][:4] == [8, 0, 0, 8]
    values = {probe.sha: probe.outcome.measurements[0].value for probe in probes if probe.outcome is not None}
    assert all(value is not None and (value > 90) is (shas.index(sha) < 5) for sha, value in values.items())


def test_ends_that_are_alike_are_refused_with_what_was_measured(service: Service, tmp_path: Path) -> None:
    document, shas = source(tmp_path, 100, 100, 100)
    report = ended(service, {**document, "measuring": {"runs": 6}}, BisectionState.REFUSED)
    assert report.problem is not None and report.answer is None
    with service.client() as client:
        probes = client.probes(report.id)
    assert {probe.sha for probe in probes} == {shas[0], shas[2]}
    assert len(probes) <= 12
    values = [probe.outcome.measurements[0].value for probe in probes if probe.outcome is not None]
    assert all(f"{value:g}" in report.problem.detail for value in values), (values, report.problem.detail)


def test_a_number_that_is_better_at_the_bad_end_is_refused_and_asks_which_way_is_better(
    service: Service, tmp_path: Path
) -> None:
    document, _ = source(tmp_path, 70, 70, 100)
    report = ended(service, document, BisectionState.REFUSED)
    assert report.problem is not None
    assert "better: lower" in f"{report.problem.detail} {report.problem.advice}"


def test_the_accuracy_of_the_example_s_weights_is_bisected_by_the_request_that_comes_with_it(
    service: Service, tmp_path: Path
) -> None:
    example = generate(tmp_path / "tinyserve", Options(commits=8, first_bad=2, native_trees=1, less_accurate=5))
    asked = yaml.safe_load(ACCURACY.read_text())
    report = ended(service, {**asked, "repo": str(example.path)}, BisectionState.FOUND)
    assert report.first_bad == (example.commits[5].sha,)
