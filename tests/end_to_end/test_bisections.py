"""The whole way: a real repository, real wheels, real servers, a real queue, and the right answer at the end."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from examples.generate import Example, Options, Stretch, generate, request
from service.domain.lifecycle import BisectionState
from tests.conftest import needs
from tests.end_to_end.service import Service
from tests.repositories import NewCommit, build_repository, git

FAILURE = "supports graph capture of uniform decode batches only"
SCRIPT = Path(__file__).parents[2] / "examples" / "requests" / "script.sh"


def found(service: Service, document: dict, patience_s: float = 240) -> str:
    """The SHA of the first bad commit."""
    report = service.ended(service.submit(document), patience_s)
    assert report.state is BisectionState.FOUND, report
    assert report.answer is not None
    return report.answer.commits[0].sha


def test_the_example_s_server_breaks_at_commit_135(service: Service, example: Example) -> None:
    id = service.submit(request(example))
    report = service.ended(id)
    assert [commit.sha for commit in report.answer.commits] == [example.first_bad] if report.answer else report
    assert example.commits[135].sha == example.first_bad
    bad, good = report.evidence
    assert (bad.probe.verdict, bad.commit.sha, good.probe.verdict, good.commit.sha) == (
        "bad",
        example.first_bad,
        "good",
        example.commits[134].sha,
    )
    assert bad.probe.outcome is not None
    assert bad.probe.outcome.log is not None
    assert "Engine core initialization failed" in "\n".join(bad.probe.outcome.log.last_lines)
    with service.client() as client:
        log = b"".join(client.log(bad.probe.id)).decode()
    assert "AssertionError" in log


def test_the_same_in_containers(service: Service, example: Example, docker_image: str) -> None:
    assert found(service, {**request(example), "sandbox": "docker", "image": docker_image}) == example.first_bad


def test_the_same_by_a_script_as_for_git_bisect_run(service: Service, example: Example) -> None:
    document = {"repo": str(example.path), "good": example.good, "bad": example.bad, "script": SCRIPT.read_text()}
    assert found(service, document) == example.first_bad


def test_two_at_once_take_the_same_port_each_for_itself(service: Service, example: Example) -> None:
    needs("bwrap")
    assert found(service, {**request(example), "width": 2}) == example.first_bad


@pytest.mark.parametrize(
    "options",
    [
        Options(commits=40, first_bad=22, does_not_build=(Stretch(18, 20), Stretch(30, 31))),
        Options(commits=40, first_bad=22, fails_otherwise=(Stretch(8, 12),)),
        Options(commits=60, first_bad=31, merges=0.4),
        Options(commits=60, first_bad=31, merges=0.4, first_bad_on_branch=True),
    ],
    ids=["stretches that do not build", "another failure", "merges", "on a side branch"],
)
def test_awkward_histories(service: Service, tmp_path: Path, options: Options) -> None:
    made = generate(tmp_path / "tinyserve", options)
    assert found(service, {**request(made), "failure": FAILURE}) == made.first_bad


def test_equal_ends_are_refused_with_the_last_lines_of_both_logs(service: Service, tmp_path: Path) -> None:
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(5)])
    script = "echo this is commit number $(cat n)\nexit 1"
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": "main~4", "bad": "main"}
    report = service.ended(service.submit({**document, "script": script}))
    assert report.state is BisectionState.REFUSED
    assert report.problem is not None
    assert "commit number 0" in report.problem.detail
    assert "commit number 4" in report.problem.detail


def test_a_good_that_is_no_ancestor_is_replaced_by_the_merge_base_and_said_so(service: Service, tmp_path: Path) -> None:
    commits = [NewCommit(files={"n": str(n)}) for n in range(8)] + [NewCommit(parents=[2], files={"side": "1"})]
    shas = build_repository(tmp_path / "repository", commits, branches={"main": 7, "side": 8})
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": "side", "bad": "main"}
    report = service.ended(service.submit({**document, "script": "test $(cat n) -lt 5"}))
    assert report.answer is not None
    assert [commit.sha for commit in report.answer.commits] == [shas[5]]
    assert shas[2][:10] in " ".join(report.notes)


def test_several_goods_and_a_first_parent_line(service: Service, tmp_path: Path) -> None:
    commits = [NewCommit(files={"n": str(n)}) for n in range(6)]
    commits += [NewCommit(parents=[2], files={"side": "x"}), NewCommit("merge", parents=[5, 6], files={"n": "9"})]
    shas = build_repository(tmp_path / "repository", commits)
    document = {"project": "source", "repo": str(tmp_path / "repository"), "bad": "main", "first_parent": True}
    report = service.ended(service.submit({**document, "good": [shas[0], shas[1]], "script": "test $(cat n) -lt 9"}))
    assert report.answer is not None
    assert [commit.sha for commit in report.answer.commits] == [shas[7]]
    assert report.candidates == 5


def test_a_server_that_never_gets_ready_at_an_end_refuses_the_request(service: Service, tmp_path: Path) -> None:
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(3)])
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": "main~2", "bad": "main"}
    serve = {"command": "sleep 60", "ready": {"http": "/health", "within": "1s"}}
    report = service.ended(service.submit({**document, "serve": serve}))
    assert report.state is BisectionState.REFUSED
    assert report.problem is not None
    assert "not ready in time" in report.problem.detail


def test_a_script_that_forks_away_neither_delays_nor_survives(service: Service, tmp_path: Path) -> None:
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(4)])
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": "main~3", "bad": "main"}
    script = "setsid nohup sleep 4711 & disown\ntest $(cat n) -lt 2"
    report = service.ended(service.submit({**document, "script": script}), 60)
    assert report.state is BisectionState.FOUND
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "4711"]]


def test_a_wheel_that_does_not_appear_is_a_build_that_failed(service: Service, tmp_path: Path) -> None:
    build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(3)])
    document = {"repo": str(tmp_path / "repository"), "good": "main~2", "bad": "main", "build": "echo built nothing"}
    report = service.ended(service.submit({**document, "script": "true"}))
    assert report.state is BisectionState.REFUSED
    assert report.problem is not None
    assert "does not build" in report.problem.detail


def test_a_repository_that_grew_is_fetched_again(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "repository"
    build_repository(path, [NewCommit(files={"n": str(n)}) for n in range(4)])
    document = {
        "project": "source",
        "repo": str(path),
        "good": "main~3",
        "bad": "main",
        "script": "test $(cat n) -lt 2",
    }
    assert found(service, document)
    git(path, "reset", "--hard", "--quiet", "main")
    (path / "n").write_text("9")
    git(path, "commit", "--quiet", "--all", "--message", "grew")
    document["script"] = "test $(cat n) -lt 9"
    assert found(service, document) == git(path, "rev-parse", "main")


def test_a_failure_said_to_be_flaky_is_tried_again_until_the_answer_is_sure(service: Service, tmp_path: Path) -> None:
    """The script has no dice, so that this test has none; tests/application/test_plan.py throws them."""
    shas = build_repository(tmp_path / "repository", [NewCommit(files={"n": str(n)}) for n in range(25)])
    document = {"project": "source", "repo": str(tmp_path / "repository"), "good": "main~24", "bad": "main"}
    id = service.submit({**document, "script": "test $(cat n) -lt 12", "flaky": True, "width": 2})
    report = service.ended(id)
    assert report.answer is not None
    assert report.answer.commits[0].sha == shas[12]
    assert report.answer.confidence is not None
    assert report.answer.confidence >= 0.95
    with service.client() as client:
        assert max(probe.trial for probe in client.probes(id)) > 1
