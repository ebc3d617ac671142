"""Builds that compile the same files again take them from ccache, where the sandbox has it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from worker.contract import BuildResult, Sandbox

SOURCE = "printf 'int f(void) { return 41; }\\n' > a.c; "
PLAIN = SOURCE + "gcc -g -c a.c -o a.o; ccache --print-stats"
#: In another folder each time, as installers build.
MOVED = "cd $(mktemp -d); " + PLAIN
CMAKE = (
    SOURCE
    + "printf 'cmake_minimum_required(VERSION 3.17)\\nproject(x C)\\nadd_library(x SHARED a.c)\\n' > CMakeLists.txt; "
    "cmake -S . -B out > /dev/null; ccache --zero-stats > /dev/null; cmake --build out > /dev/null; "
    "ccache --print-stats"
)


def lines(result: BuildResult) -> tuple[str, ...]:
    assert result.failure is not None and result.failure.exit_status == 0, result
    return result.failure.log.last_lines


def counted(result: BuildResult) -> dict[str, int]:
    """What ccache counted, in all builds that share this cache."""
    found = dict(match.groups() for line in lines(result) if (match := re.fullmatch(r"(\w+)\t(\d+)", line)))
    hits = int(found["direct_cache_hit"]) + int(found["preprocessed_cache_hit"])
    return {"hits": hits, "misses": int(found["cache_miss"])}


@pytest.fixture(params=["process", "docker"])
def compiling(
    request: pytest.FixtureRequest, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]
) -> Iterator[Bench]:
    """One for each sandbox, with ccache in it."""
    if request.param == "docker":
        sandbox = Sandbox(kind="docker", image=request.getfixturevalue("ccache_image"))
    else:
        needs("bwrap")
        needs("ccache")
        sandbox = Sandbox(kind="process")
    made = pipeline(tmp_path)
    yield Bench(made, *repository, sandbox)
    for each in made.site.sandboxes.values():
        each.close()


@pytest.fixture(scope="session")
def ccache_image(docker_image: str) -> Iterator[str]:
    """This machine's ccache, and what it is linked to, in the test image."""
    needs("ccache")
    name, container = f"firstbad-test-ccache:{os.getpid()}", f"firstbad-test-ccache-{os.getpid()}"
    linked = subprocess.run(["ldd", "/usr/bin/ccache"], capture_output=True, text=True, check=True).stdout
    files = ["/usr/bin/ccache", *re.findall(r"=> (/\S*(?:zstd|hiredis|xxhash|stdc\+\+|gcc_s)\S*)", linked)]
    subprocess.run(["docker", "create", "--name", container, docker_image, "true"], check=True, capture_output=True)
    try:
        for path in files:
            command = [
                "docker",
                "cp",
                "--follow-link",
                path,
                f"{container}:/usr/{path.removeprefix('/usr').lstrip('/')}",
            ]
            subprocess.run(command, check=True, capture_output=True)
        subprocess.run(["docker", "commit", container, name], check=True, capture_output=True)
        yield name
    finally:
        subprocess.run(["docker", "rm", container], capture_output=True)
        subprocess.run(["docker", "rmi", "--force", name], capture_output=True)


def test_the_second_build_of_the_same_file_is_a_hit(process_bench: Bench) -> None:
    needs("ccache")
    assert counted(process_bench.build(PLAIN)) == {"hits": 0, "misses": 1}
    assert counted(process_bench.build(PLAIN, number=1)) == {"hits": 1, "misses": 1}


def test_a_file_that_is_compiled_in_another_folder_is_a_hit(process_bench: Bench) -> None:
    needs("ccache")
    process_bench.build(MOVED)
    assert counted(process_bench.build(MOVED)) == {"hits": 1, "misses": 1}


def test_a_launcher_of_ones_own_is_a_hit_in_every_sandbox(compiling: Bench) -> None:
    command = PLAIN.replace("gcc", "$CMAKE_C_COMPILER_LAUNCHER gcc")
    assert counted(compiling.build(command)) == {"hits": 0, "misses": 1}
    assert counted(compiling.build(command)) == {"hits": 1, "misses": 1}
    assert compiling.left() == []


@pytest.mark.parametrize("network", ["none", "bridge"])
def test_sccache_is_used_where_it_is_and_ends_with_the_build(process_bench: Bench, network: str) -> None:
    needs("sccache")
    process_bench.sandbox = process_bench.sandbox.model_copy(update={"network": network})
    command = SOURCE + "$RUSTC_WRAPPER gcc -c a.c -o a.o; sccache --show-stats"
    for hits in (0, 1):
        counts = dict(line.rsplit(maxsplit=1) for line in lines(process_bench.build(command)) if line.count(" ") > 1)
        assert counts["Cache hits"] == str(hits)
    assert process_bench.left() == []


def test_cmake_uses_it(process_bench: Bench) -> None:
    needs("ccache")
    needs("cmake")
    assert counted(process_bench.build(CMAKE)) == {"hits": 0, "misses": 1}
    assert counted(process_bench.build(CMAKE)) == {"hits": 1, "misses": 0}


def test_other_repositories_and_other_commands_share_nothing(process_bench: Bench) -> None:
    needs("ccache")
    process_bench.build(PLAIN)
    other = process_bench.source().model_copy(update={"repo": "https://example.org/other.git"})
    assert counted(process_bench.build(PLAIN, source=other))["hits"] == 0
    assert counted(process_bench.build(PLAIN + " # other"))["hits"] == 0


def test_commits_that_are_named_in_a_variable_share(process_bench: Bench) -> None:
    needs("ccache")
    for number, hits in ((0, 0), (1, 1)):
        env = {"TESTED_COMMIT": process_bench.shas[number]}
        assert counted(process_bench.build(PLAIN, number=number, env=env))["hits"] == hits


def test_what_the_recipe_sets_counts(process_bench: Bench) -> None:
    needs("ccache")
    env = {"CCACHE_MAXSIZE": "7G", "PATH": "/usr/local/bin:/usr/bin:/bin", "CMAKE_C_COMPILER_LAUNCHER": ""}
    said = lines(process_bench.build("echo $CCACHE_MAXSIZE/$CMAKE_C_COMPILER_LAUNCHER; echo $PATH", env=env))
    assert said[:2] == ("7G/", "/usr/local/bin:/usr/bin:/bin")


def test_the_cache_is_as_large_as_the_operator_says(process_bench: Bench, tmp_path: Path) -> None:
    needs("ccache")
    process_bench.pipeline = pipeline(tmp_path / "other", compiler_cache="300M")
    assert lines(process_bench.build("ccache --show-config | grep max_size"))[0] == "(environment) max_size = 300.0M"


def test_runs_have_none_of_it(process_bench: Bench) -> None:
    outcome = process_bench.outcome("env | grep -i cache | grep -v UV_ || true; echo $PATH")
    assert [line for line in process_bench.text(outcome) if "ccache" in line] == []


def test_without_the_tool_nothing_is_set(process_bench: Bench, docker_image: str) -> None:
    process_bench.sandbox = Sandbox(kind="docker", image=docker_image)
    assert [line for line in lines(process_bench.build("env")) if "CCACHE" in line or "LAUNCHER" in line] == []
