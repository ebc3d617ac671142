"""Every log of the corpus has the signature that its file tells, and two are the same when their failures are."""

from __future__ import annotations

import itertools

import pytest

from service.application.similar import THRESHOLD, same, similarity
from tests.observe.logs import CORPUS, Right, found_in, rights, text_of
from worker.observe.signature import matches_text, signature


@pytest.mark.parametrize("name", rights())
def test_the_root_failure_of_each_log_is_found(name: str) -> None:
    right, found = rights()[name], found_in(name)
    frames = tuple(f"{frame.file} {frame.function}" for frame in found.frames)
    assert (
        Right(right.failure, right.project, found.kind, found.type, found.message, frames, found.line, right.hang)
        == right
    )


def test_the_corpus_is_whole() -> None:
    assert {path.name for path in CORPUS.glob("*.log")} == set(rights())
    assert len(rights()) >= 60


def test_runs_of_the_same_failure_match_and_others_do_not() -> None:
    wrong = [
        (one, other, similarity(found_in(one), found_in(other)))
        for one, other in itertools.combinations(rights(), 2)
        if same(found_in(one), found_in(other)) != (rights()[one].failure == rights()[other].failure)
    ]
    assert wrong == []


def test_similarity_is_symmetric_and_whole_for_the_same_log() -> None:
    for one, other in itertools.combinations_with_replacement(rights(), 2):
        alike = similarity(found_in(one), found_in(other))
        assert alike == pytest.approx(similarity(found_in(other), found_in(one)))
        assert 0 <= alike <= 1
        assert one != other or alike == 1


def test_no_pair_of_the_corpus_is_close_to_the_threshold() -> None:
    values = [similarity(found_in(one), found_in(other)) for one, other in itertools.combinations(rights(), 2)]
    assert min(abs(value - THRESHOLD) for value in values) > 0.03


def test_the_founding_case_is_told_from_the_generic_error_that_ends_its_log() -> None:
    lines = text_of("vllm-gdn-capture.log").split("\n")
    found = found_in("vllm-gdn-capture.log")
    assert lines[found.line - 1].endswith(found.said)
    assert "Engine core initialization failed" in next(line for line in reversed(lines) if "Error: " in line)
    assert len(lines) - found.line > 60


def test_the_example_server_s_log_leads_to_the_two_files_that_hold_the_bug() -> None:
    files = dict.fromkeys(frame.file for frame in found_in("tinyserve.log").frames)
    assert list(files) == ["tinyserve/v1/attention/backends/linear_attn.py", "tinyserve/v1/worker/model_runner.py"]
    assert found_in("tinyserve.log").outer[0].file == "tinyserve/v1/worker/worker.py"


@pytest.mark.parametrize("name", ["tinyserve.log", "vllm-gdn-capture.log", "jvm-caused-by.log", "llama-cuda-oom.log"])
def test_the_project_is_known_by_its_frames_when_nobody_names_it(name: str) -> None:
    found = signature(text_of(name))
    assert found is not None
    assert (found.type, found.message) == (found_in(name).type, found_in(name).message)
    assert [frame.function for frame in found.frames] == [frame.function for frame in found_in(name).frames]


def test_a_failure_as_a_user_words_it_is_found_in_the_signature() -> None:
    found = found_in("vllm-gdn-capture.log")
    assert matches_text(found, "GDN only supports decode-only full CUDAGraph capture")
    assert matches_text(found, "assertionerror: GDN only supports decode-only full CUDAGraph capture")
    assert not matches_text(found, "Engine core initialization failed")
    assert not matches_text(found, " ")
