"""A verdict is about this failure, all the way from what a user writes: learnt, controlled, told, measured, pasted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.generate import Options, Stretch, generate, request
from service.domain.lifecycle import BisectionState
from tests.end_to_end.service import Service
from tests.repositories import NewCommit, build_repository

FAILURE = "supports graph capture of uniform decode batches only"


def source(tmp_path: Path, *files: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A repository of scripts, one commit for each set of files, from the first to the last."""
    path = tmp_path / "repository"
    shas = build_repository(path, [NewCommit(files={"n": str(n), **each}) for n, each in enumerate(files)])
    return {"project": "source", "repo": str(path), "good": shas[0], "bad": shas[-1]}, shas


def answer(service: Service, document: dict[str, Any]) -> str:
    report = service.ended(service.submit(document), 240)
    assert report.state is BisectionState.FOUND, report
    assert report.answer is not None
    return report.answer.commits[0].sha


def test_the_failure_is_learnt_from_the_bad_end_and_another_one_is_no_evidence(
    service: Service, tmp_path: Path
) -> None:
    made = generate(tmp_path / "tinyserve", Options(commits=40, first_bad=22, fails_otherwise=(Stretch(8, 12),)))
    report = service.ended(service.submit(request(made)), 240)
    assert report.answer is not None and [commit.sha for commit in report.answer.commits] == [made.first_bad]
    (bad, *_) = report.evidence
    assert bad.probe.outcome is not None and bad.probe.outcome.signature is not None
    assert (bad.probe.outcome.signature.type, FAILURE in bad.probe.reason) == ("AssertionError", True)


def test_a_commit_where_the_control_fails_too_says_nothing(service: Service, tmp_path: Path) -> None:
    """From commit 3 to 5 everything fails; from 9 on what is looked for, and that alone."""
    states = ["ok"] * 3 + ["nothing"] * 3 + ["ok"] * 3 + ["two"] * 4
    document, shas = source(tmp_path, *({"state": state} for state in states))
    script = 'state=$(cat state); mode=two; test "$state" != nothing; test "$state" != "$mode"'
    control = {"replace": {"mode=two": "mode=three"}}
    assert answer(service, {**document, "script": script, "control": control}) == shas[9]


def test_a_check_says_itself_what_is_wrong(service: Service, tmp_path: Path) -> None:
    document, shas = source(tmp_path, *({} for _ in range(12)))
    script = 'if [ "$(cat n)" -ge 7 ]; then echo "firstbad: bad the answer is $(cat n)"; fi'
    id = service.submit({**document, "script": script})
    report = service.ended(id)
    assert report.answer is not None and report.answer.commits[0].sha == shas[7]
    assert "the answer is 7" in report.evidence[0].probe.reason


def test_a_number_that_got_worse(service: Service, tmp_path: Path) -> None:
    document, shas = source(tmp_path, *({"speed": str(100 if n < 5 else 80)} for n in range(10)))
    metric = {"pattern": r"throughput: ([0-9.]+) tok/s", "better": "higher"}
    script = 'echo "throughput: $(cat speed).5 tok/s"'
    assert answer(service, {**document, "script": script, "metric": metric}) == shas[5]


def test_a_pasted_script_with_a_server_in_the_foreground_is_taken_apart(service: Service, tmp_path: Path) -> None:
    document, shas = source(tmp_path, *({"state": "ok" if n < 4 else "broken"} for n in range(8)))
    client = "from urllib.request import urlopen; assert urlopen('http://localhost:8000/state').read() == b'ok'"
    script = f'$ python3 -m http.server 8000\n# once it is up:\n$ python3 -c "{client}"\n'
    report = service.ended(service.submit({**document, "script": script}))
    assert report.answer is not None and report.answer.commits[0].sha == shas[4]
    assert report.request.serve is not None and "http.server" in report.request.serve.command
    assert report.request.check is not None and "/state" in report.request.check
    assert any("http.server" in note and "the check" in note for note in report.notes)


def test_runs_get_the_cards_that_they_lease(own_service: Service, tmp_path: Path) -> None:
    """Two runs of four on a node with eight."""
    document, shas = source(tmp_path, *({} for _ in range(12)))
    own_service = Service(tmp_path / "gpus", gpus="8xFake-80GB").start(slots=2)
    script = 'test "$(echo "$CUDA_VISIBLE_DEVICES" | tr , "\\n" | wc -l)" = 4; test "$(cat n)" -lt 6'
    try:
        id = own_service.submit({**document, "script": script, "resources": {"gpus": 4, "gpu": "fake"}, "width": 2})
        report = own_service.ended(id)
        assert report.answer is not None and report.answer.commits[0].sha == shas[6]
        with own_service.client() as client:
            probes = client.probes(id)
            assert all(len(probe.outcome.environment["gpus"].split(",")) == 4 for probe in probes if probe.outcome)
            assert [len(node.gpus) for node in client.nodes()] == [8]
    finally:
        own_service.interrupt()
