"""The requests that come with the example say what its functions say, and find what it hides."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest
import yaml

from examples.generate import Example, Options, generate, request
from service.adapters.git_history import GitHistory
from tests.examples.running import UV, Builds, checked, git, is_healthy, run, serving

REQUESTS = Path(__file__).parents[2] / "examples" / "requests"
SCRIPT = REQUESTS / "script.sh"
#: What goes into the wheel.
PACKED = ("tinyserve/", "csrc/", "build_backend/", "pyproject.toml", "README.md", "LICENSE")
#: Where the script finds uv.
PATH = f"{Path(UV).parent}:{os.environ['PATH']}"


@pytest.fixture
def history(tmp_path: Path) -> GitHistory:
    return GitHistory(tmp_path / "mirrors", allow_file=True)


@pytest.fixture
def port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def test_the_request_file_and_the_function_ask_the_same(example: Example) -> None:
    text = (REQUESTS / "tinyserve.yaml").read_text()
    for placeholder, value in (("REPOSITORY", example.path), ("GOOD", example.good), ("BAD", example.bad)):
        text = text.replace(f": {placeholder}\n", f": {value}\n")
    assert yaml.safe_load(text) == request(example)


@pytest.mark.parametrize("name", ["throughput", "latency", "accuracy"])
def test_the_number_that_a_request_asks_for_is_what_the_example_prints(
    name: str, example: Example, builds: Builds
) -> None:
    asked = yaml.safe_load((REQUESTS / f"tinyserve-{name}.yaml").read_text())
    tinyserve = builds.tinyserve(example.good)
    with serving(tinyserve) as server:
        url = server.url()
        assert url
        command = asked.get("script") or asked["check"].replace("$FIRSTBAD_URL", url)
        printed = checked(tinyserve, *shlex.split(command)[1:])
    for metric in asked["metric"] if isinstance(asked["metric"], list) else [asked["metric"]]:
        found = re.findall(metric["pattern"], printed)
        assert len(found) == 1, printed


@pytest.mark.parametrize("name", ["throughput", "latency", "accuracy"])
def test_the_history_that_a_request_names_is_made_as_it_says(name: str, tmp_path: Path) -> None:
    text = (REQUESTS / f"tinyserve-{name}.yaml").read_text()
    asked = yaml.safe_load(text)
    command = shlex.split(next(line for line in text.splitlines() if "examples.generate" in line).lstrip("# "))
    assert (REQUESTS / asked["repo"]).resolve() == (REQUESTS.parents[1] / command[3]).resolve()
    made = json.loads(checked(sys.executable, *command[1:3], tmp_path / "made", *command[4:], "--json"))
    ends = [git(tmp_path / "made", "rev-parse", f"{asked[end]}^{{commit}}") for end in ("good", "bad")]
    assert ends == [made["good"], made["bad"]]
    good, bad = made["commits"][0], made["commits"][-1]
    assert (bad["slowdown"] / good["slowdown"], bad["less_accurate"]) == (1.2, True)


def test_commits_of_tests_and_documents_alone_need_no_build(example: Example, history: GitHistory) -> None:
    """Between the ends, which commits have the wheel of their parent, and which its compiled module."""
    asked = request(example)
    shas = [example.good, *(commit.sha for commit in example.commits)]
    wheels, natives = (
        history.trees(str(example.path), shas, tuple(asked[key])) for key in ("wheel_paths", "native_paths")
    )
    for commit in example.commits:
        parent = git(example.path, "rev-parse", f"{commit.sha}^")
        if parent not in wheels:
            continue
        changed = git(example.path, "diff", "--name-only", "--no-renames", parent, commit.sha).splitlines()
        packed = any(path.startswith(PACKED) for path in changed)
        assert (wheels[commit.sha] == wheels[parent]) is not packed, changed
        compiled = any(path.startswith(("csrc/", "build_backend/")) for path in changed)
        assert (natives[commit.sha] == natives[parent]) is not compiled, changed
    assert len(set(natives.values())) == len({commit.native_tree for commit in example.commits})
    assert len(set(natives.values())) < len(set(wheels.values())) < len(shas)


def test_commits_that_share_a_wheel_by_their_paths_are_built_to_the_same(
    example: Example, builds: Builds, history: GitHistory
) -> None:
    shas = [example.good, *(commit.sha for commit in example.commits)]
    wheels = history.trees(str(example.path), shas, tuple(request(example)["wheel_paths"]))
    same = [(one, other) for one, other in itertools.pairwise(shas) if wheels[one] == wheels[other]]
    assert same
    for one, other in same[:2]:
        assert builds.wheel(one).read_bytes() == builds.wheel(other).read_bytes()


def test_the_command_of_the_request_is_one_that_starts_at_good(example: Example, builds: Builds) -> None:
    name, serve, model, *options = shlex.split(request(example)["serve"]["command"].replace("$FIRSTBAD_PORT", "0"))
    assert (name, serve, model) == ("tinyserve", "serve", "tiny/next-80b")
    assert is_healthy(builds.tinyserve(example.good), *options)


def test_git_bisect_run_finds_the_first_bad_commit_with_the_script(target: Path, port: str) -> None:
    hidden = generate(target, Options(commits=6, first_bad=4, does_not_build=((2, 2),)))
    git(target, "bisect", "start", hidden.bad, hidden.good)
    done = run("git", "bisect", "run", SCRIPT, cwd=target, env={"PORT": port, "PATH": PATH})
    assert f"{hidden.first_bad} is the first bad commit" in done.stdout, done.stdout + done.stderr


def test_the_script_skips_a_commit_that_does_not_build(zoo: Example, zoo_builds: Builds, port: str) -> None:
    done = run(
        "bash", "-eo", "pipefail", SCRIPT, cwd=zoo_builds.source(zoo.commits[2].sha), env={"PORT": port, "PATH": PATH}
    )
    assert done.returncode == 125


@pytest.mark.parametrize(("tokens", "status"), [("2", 1), ("3", 0)])
def test_outside_a_checkout_the_script_takes_what_is_installed(
    tokens: str, status: int, example: Example, builds: Builds, tmp_path: Path, port: str
) -> None:
    path = f"{builds.tinyserve(example.bad).parent}:/usr/bin:/bin"
    done = run("bash", "-eo", "pipefail", SCRIPT, cwd=tmp_path, env={"PORT": port, "TOKENS": tokens, "PATH": path})
    assert done.returncode == status, done.stderr
    assert ("Output token throughput" in done.stdout) == (status == 0)
