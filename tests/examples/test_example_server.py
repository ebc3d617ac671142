"""The server of the example, started for real at commits whose truth is known."""

from __future__ import annotations

import hashlib
import json
import queue
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from examples.generate import Example, Options, generate
from tests.examples.running import Builds, fails_to_start, is_healthy, run, serving, speculative

ASSERTION = "AssertionError: Linear attention supports graph capture of uniform decode batches only"
GENERIC = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


def complete(url: str, **body: object) -> dict[str, object]:
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request) as response:
        return json.load(response)


@pytest.mark.parametrize("number", [0, 134])
def test_before_the_first_bad_commit_two_speculative_tokens_work(number: int, example: Example, builds: Builds) -> None:
    assert is_healthy(builds.tinyserve(example.commits[number].sha), *speculative(2))


@pytest.mark.parametrize("number", [135, 249])
def test_from_the_first_bad_commit_on_only_two_speculative_tokens_fail(
    number: int, example: Example, builds: Builds
) -> None:
    tinyserve = builds.tinyserve(example.commits[number].sha)
    assert fails_to_start(tinyserve, *speculative(2))[-1].endswith(GENERIC)
    assert is_healthy(tinyserve, *speculative(3))
    assert is_healthy(tinyserve, *(speculative(1) if number == 135 else []))


def test_every_rank_prints_the_cause_interleaved_and_the_generic_error_comes_last(
    example: Example, builds: Builds
) -> None:
    log = fails_to_start(builds.tinyserve(example.bad), *speculative(2), "--tensor-parallel-size", "4")
    causes = [index for index, line in enumerate(log) if ASSERTION in line and "(Worker_TP" in line]
    ranks = {re.search(r"\(Worker_TP(\d) pid=\d+\) ERROR", log[index])[1] for index in causes}  # type: ignore[index]
    assert ranks == {"0", "1", "2", "3"}
    assert len(causes) == 4
    assert log[-1].startswith("(APIServer pid=")
    assert log[-1].endswith(GENERIC)
    assert 50 <= len(log) - 1 - causes[-1] <= 90
    frames = [line for line in log if "(Worker_TP" in line and 'File "' in line]
    assert any(a.split()[0] != b.split()[0] for a, b in zip(frames, frames[1:], strict=False))
    own = [line for line in frames if line.startswith("(Worker_TP2 ")]
    assert "tinyserve/v1/worker/model_runner.py" in own[-2]
    assert "tinyserve/v1/attention/backends/linear_attn.py" in own[-1]


def test_the_log_of_a_start_shows_progress_and_who_says_what(example: Example, builds: Builds) -> None:
    with serving(builds.tinyserve(example.good), *speculative(2)) as server:
        assert server.url()
        log = "\n".join(server.lines)
    assert re.search(r"^\(APIServer pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[serve\.py:\d+\] ", log, re.MULTILINE)
    assert re.search(r"^\(EngineCore_0 pid=\d+\) INFO .* GPU KV cache size: [\d,]+ tokens$", log, re.MULTILINE)
    assert re.search(r"\r\(Worker_TP0 pid=\d+\) Loading safetensors checkpoint shards:  50%\|█████     \| 4/8", log)
    assert re.search(r"\r\(Worker_TP0 pid=\d+\) Capturing graphs \(decode, FULL\): 100%\|██████████\| \d+/\d+", log)


def test_a_start_can_be_made_to_take_longer(example: Example, builds: Builds) -> None:
    started = time.monotonic()
    assert is_healthy(builds.tinyserve(example.good), env={"TINYSERVE_START_SECONDS": "1.5"})
    assert time.monotonic() - started >= 1.5


def test_the_api_answers_with_text_that_is_always_the_same(example: Example, builds: Builds) -> None:
    with serving(builds.tinyserve(example.good), "--served-model-name", "mine") as server:
        url = server.url()
        assert url
        answers = [complete(url, prompt="Hello", max_tokens=12) for _ in range(2)]
        other = complete(url, prompt="Bye", max_tokens=12)
        listed = json.load(urllib.request.urlopen(f"{url}/v1/models"))
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            complete(url, prompt=5)
        refused.value.close()
    assert [model["id"] for model in listed["data"]] == ["mine"]
    assert answers[0] == answers[1]
    assert answers[0]["usage"] == {"prompt_tokens": 1, "completion_tokens": 12}
    assert answers[0]["choices"] != other["choices"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_the_server_ends_all_its_processes(
    number: signal.Signals, example: Example, builds: Builds
) -> None:
    with serving(builds.tinyserve(example.good), "--tensor-parallel-size", "3") as server:
        assert server.url()
        processes = [psutil.Process(pid) for pid in server.pids()]
        assert len(processes) == 5
        server.process.send_signal(number)
        assert server.process.wait(10) == (-9 if number == signal.SIGKILL else 0)
        _, alive = psutil.wait_procs(processes, timeout=10)
        assert alive == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (speculative(4), "num_speculative_tokens must be 1 to 3"),
        (["--speculative-config", "mtp"], "--speculative-config is not JSON"),
        (["--speculative-config", '{"method": "magic"}'], "--speculative-config needs a method of mtp, next_mtp"),
        (["--tensor-parallel-size", "0"], "--tensor-parallel-size must be 1 to 64: 0"),
    ],
)
def test_wrong_arguments_are_named(options: list[str], message: str, example: Example, builds: Builds) -> None:
    done = run(builds.tinyserve(example.good), "serve", "tiny/next-80b", *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_commit_that_fails_otherwise_does_so_whatever_the_speculative_tokens(
    zoo: Example, zoo_builds: Builds
) -> None:
    tinyserve = zoo_builds.tinyserve(zoo.commits[6].sha)
    for options in (speculative(2), speculative(3), []):
        log = "\n".join(fails_to_start(tinyserve, *options))
        assert "KeyError: 'rope_dim'" in log
        assert ASSERTION not in log
    assert is_healthy(zoo_builds.tinyserve(zoo.commits[7].sha), *speculative(2))


def test_a_commit_that_hangs_neither_dies_nor_gets_ready_and_still_stops(zoo: Example, zoo_builds: Builds) -> None:
    with serving(zoo_builds.tinyserve(zoo.commits[8].sha), *speculative(2)) as server:
        with pytest.raises(queue.Empty):
            server.url(within_s=2)
        assert any("Initializing an engine" in line for line in server.lines)
        children = psutil.Process(server.process.pid).children(recursive=True)
        server.process.terminate()
        assert server.process.wait(10) == 0
        assert psutil.wait_procs(children, timeout=10)[1] == []
    assert is_healthy(zoo_builds.tinyserve(zoo.commits[9].sha), *speculative(2))


def test_the_fix_mends_the_failure(zoo: Example, zoo_builds: Builds) -> None:
    assert fails_to_start(zoo_builds.tinyserve(zoo.commits[15].sha), *speculative(2))
    assert zoo.fix
    assert is_healthy(zoo_builds.tinyserve(zoo.fix), *speculative(2))


def throughput(tinyserve: Path) -> float:
    with serving(tinyserve) as server:
        url = server.url()
        assert url
        report = run(tinyserve, "bench", "--url", url, "--requests", "3").stdout
    assert "Successful requests:                     3" in report
    return float(re.search(r"Output token throughput \(tok/s\): +([0-9.]+)", report)[1])  # type: ignore[index]


def test_the_slower_commit_costs_its_factor_of_throughput(zoo: Example, zoo_builds: Builds) -> None:
    """A token costs 500 microseconds, then 10 times that: no machine makes more than 200 of these in a second."""
    assert [zoo.commits[number].slowdown for number in (10, 11, 14)] == [1, 10, 10]
    assert throughput(zoo_builds.tinyserve(zoo.commits[10].sha)) > 200
    assert throughput(zoo_builds.tinyserve(zoo.commits[11].sha)) <= 200


def accuracy(tinyserve: Path) -> float:
    table = run(tinyserve, "eval").stdout
    return float(re.search(r"\|exact_match\|↑  \|([0-9.]+)\|", table)[1])  # type: ignore[index]


def test_the_less_accurate_commit_is_less_accurate(zoo: Example, zoo_builds: Builds) -> None:
    numbers = [accuracy(zoo_builds.tinyserve(zoo.commits[number].sha)) for number in (0, 11, 12, 14)]
    assert numbers == [0.845, 0.845, 0.7175, 0.7175]


def seed_for(low: float, high: float) -> str:
    """A value of TINYSERVE_SEED that draws a number between these."""
    draws = ((str(seed), hashlib.sha256(str(seed).encode()).digest()[:8]) for seed in range(1000))
    return next(seed for seed, drawn in draws if low <= int.from_bytes(drawn, "big") / 2**64 < high)


def test_a_flaky_failure_appears_at_its_rates(target: Path, tmp_path: Path) -> None:
    flaky = generate(target, Options(commits=4, first_bad=3, flaky=0.6, false_bad=0.2))
    assert [commit.failure_rate for commit in flaky.commits] == [0.2, 0.2, 0.2, 0.6, 0.6]
    built = Builds(tmp_path / "builds", flaky.path)
    for number, rate in ((2, 0.2), (3, 0.6)):
        tinyserve = built.tinyserve(flaky.commits[number].sha)
        below, above = {"TINYSERVE_SEED": seed_for(rate - 0.1, rate)}, {"TINYSERVE_SEED": seed_for(rate, rate + 0.1)}
        assert ASSERTION in "\n".join(fails_to_start(tinyserve, *speculative(2), env=below))
        assert is_healthy(tinyserve, *speculative(2), env=above)
    assert is_healthy(tinyserve, *speculative(3), env=below)


def test_the_packages_own_tests_pass(example: Example, builds: Builds) -> None:
    [installed] = builds.venv(example.bad).glob("lib/python*/site-packages")
    command = (sys.executable, "-P", "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "tests")
    done = run(*command, cwd=builds.source(example.bad), env={"PYTHONPATH": str(installed)})
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
