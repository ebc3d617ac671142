"""A real run whose log shows what may be the node's doing: its outcome tells it, beside the failure's signature."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.observe.sign_examples import PROJECT, examples
from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from worker.contract import Outcome, Sandbox

#: Side by side.
RUNS = 4
FAILURE = """




Traceback (most recent call last):
  File "/work/tree/vllm/run.py", line 7, in start
    check(batch)
AssertionError: batch is empty"""

#: What brings the failure itself about, by the rule that sees it.
CAUSES = {
    "port-in-use": 'python3 -c \'import socket; a, b = socket.socket(), socket.socket(); a.bind(("127.0.0.1", 0)); '
    "a.listen(); b.bind(a.getsockname())'",
    "disk-full": 'python3 -c \'print("x" * 99, file=open("/dev/full", "w"), flush=True)\'',
    "too-many-files": "ulimit -n 20; python3 -c 'print([open(\"/dev/null\") for _ in range(99)])'",
    "dns": "python3 -c 'import socket; socket.create_connection((\"models.example.org\", 443))'",
    "test-missing": "python3 tests/test_of_later.py",
    "drift": "python3 -c 'import numpy_of_later'",
}


def script(log: str) -> str:
    return f"echo begun\ncat <<'END_OF_LOG'\n{log}{FAILURE}\nEND_OF_LOG\nexit 1\n"


@dataclass(frozen=True)
class Outcomes:
    """By rule: of a log that was printed, and of what fails so."""

    told: Mapping[str, Outcome]
    caused: Mapping[str, Outcome]


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, docker_image: str, repository: tuple[Path, tuple[str, ...]]
) -> Outcomes:
    made = pipeline(tmp_path_factory.mktemp("signs"))
    bench = Bench(made, *repository, Sandbox(kind="docker", image=docker_image))

    def run(text: str) -> Outcome:
        found: Outcome = bench.outcome(text, project=PROJECT)
        return found

    with ThreadPoolExecutor(RUNS) as pool:
        told = pool.map(run, [script(logs["seen"][0]) for logs in examples().values()])
        caused = pool.map(run, CAUSES.values())
        found = Outcomes(dict(zip(examples(), told, strict=True)), dict(zip(CAUSES, caused, strict=True)))
    for each in made.site.sandboxes.values():
        each.close()
    return found


@pytest.mark.parametrize("rule", examples())
def test_an_outcome_carries_the_sign_and_the_signature(outcomes: Outcomes, rule: str) -> None:
    outcome = outcomes.told[rule]
    said = examples()[rule]["seen"][0]
    assert [(sign.rule, sign.line) for sign in outcome.signs] == [(rule, 2)]
    assert outcome.signs[0].said in said
    assert outcome.signature is not None
    assert (outcome.signature.type, outcome.signature.message) == ("AssertionError", "batch is empty")
    assert [frame.file for frame in outcome.signature.frames] == ["vllm/run.py"]
    assert (outcome.exit_status, outcome.ended_in) == (1, "script")


@pytest.mark.parametrize("rule", CAUSES)
def test_what_fails_so_says_it_by_its_own_signature(outcomes: Outcomes, rule: str) -> None:
    outcome = outcomes.caused[rule]
    assert [(sign.rule, sign.root) for sign in outcome.signs] == [(rule, outcome.signature is not None)]
    assert (outcome.signature is None) == (rule == "test-missing")
