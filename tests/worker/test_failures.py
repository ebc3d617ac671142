"""Builds that fail by real tools: what is told of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.conftest import needs
from tests.worker.bench import UV_BUILD, Bench
from worker.contract import Outcome

GCC = "gcc -shared -fPIC -o x.so a.c"
SETUP = "[build-system]\nrequires = []\nbuild-backend = 'setuptools.build_meta'\n"


def failure(bench: Bench, command: str) -> Outcome:
    result = bench.build(command)
    assert result.fault is None and result.failure is not None, result
    assert result.failure.exit_status != 0
    return result.failure


def writing(name: str, text: str) -> str:
    return f"cat > {name} <<'END'\n{text}\nEND\n"


def test_a_wrong_line_of_c_is_told(bench: Bench) -> None:
    command = writing("a.c", "int f(void) {\n  return 1\n}") + GCC
    assert failure(bench, command).first_error == "a.c:2:11: error: expected ‘;’ before ‘}’ token"


def test_a_missing_header_is_told(bench: Bench) -> None:
    command = writing("a.c", "#include <nope.h>") + f"{GCC} -fdiagnostics-color=always"
    assert failure(bench, command).first_error == "a.c:1:10: fatal error: nope.h: No such file or directory"


def test_what_cannot_be_linked_is_told(bench: Bench) -> None:
    command = writing("a.c", "int g(void); int main(void) { return g(); }") + "gcc a.c"
    said = failure(bench, command).first_error
    assert said is not None and said.endswith("undefined reference to `g'")


def test_the_first_of_many_files_in_parallel_is_told(process_bench: Bench) -> None:
    needs("make")
    rule = "all: a.o b.o c.o\n%.o: %.c\n\tgcc -c $<"
    command = writing("Makefile", rule) + "touch a.c c.c; echo 'int x = ;' > b.c; make -j3"
    assert failure(process_bench, command).first_error == "b.c:1:9: error: expected expression before ‘;’ token"


def test_a_setup_that_breaks_is_told(process_bench: Bench) -> None:
    command = writing("setup.py", 'raise RuntimeError("no such luck")') + "python3 setup.py bdist_wheel"
    assert failure(process_bench, command).first_error == "RuntimeError: no such luck"


def test_cmake_that_misses_a_package_is_told(process_bench: Bench) -> None:
    needs("cmake")
    lists = "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\nfind_package(Nope REQUIRED)"
    said = failure(process_bench, writing("CMakeLists.txt", lists) + "cmake -S . -B out").first_error
    assert said is not None and said.startswith("CMake Error at CMakeLists.txt:3 (find_package): By not providing")


def test_a_build_that_leaves_nothing_is_told(process_bench: Bench) -> None:
    result = process_bench.build("true")
    assert result.failure is not None
    assert result.failure.first_error == "firstbad: the build left no wheel in $FIRSTBAD_OUT; exactly one is needed"


def test_a_failure_that_says_nothing_has_no_first_error(process_bench: Bench) -> None:
    assert failure(process_bench, "echo all is well; exit 3").first_error is None


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens there, and nobody will."""
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


NEEDS = writing("pyproject.toml", '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"')


@pytest.mark.parametrize("network", ["none", "bridge"])
@pytest.mark.parametrize(
    "command",
    [
        f"{NEEDS}{UV_BUILD} --default-index http://127.0.0.1:PORT/simple",
        f"{NEEDS}{UV_BUILD} --default-index https://firstbad.invalid/simple",
        "curl -sSf http://127.0.0.1:PORT/x",
        "git clone --quiet http://127.0.0.1:PORT/x.git",
        "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:PORT\")'",
    ],
)
def test_an_index_that_cannot_be_reached_is_the_nodes_fault(
    process_bench: Bench, closed_port: int, network: str, command: str
) -> None:
    process_bench.sandbox = process_bench.sandbox.model_copy(update={"network": network})
    env = {"UV_HTTP_RETRIES": "0"}
    result = process_bench.build(command.replace("PORT", str(closed_port)), env=env)
    assert result.failure is None and result.fault is not None, result
    assert result.fault.kind == "registry" and result.fault.advice
    assert "the build could not reach what it needs: " in result.fault.message


def test_a_cache_that_the_node_was_too_busy_to_start_is_the_nodes_fault(process_bench: Bench) -> None:
    result = process_bench.build("echo 'sccache: error: Timed out waiting for server startup'; exit 2")
    assert result.fault is not None and result.fault.kind == "compiler-cache"
