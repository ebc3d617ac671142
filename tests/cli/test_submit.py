from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.domain.bisection import Problem
from service.domain.lifecycle import BisectionState
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow

REQUEST = """\
repo: https://git.example.org/x.git
good: v1
bad: main
script: "false"
"""


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.yaml"
    path.write_text(REQUEST)
    return path


@pytest.fixture(autouse=True)
def looked_up(flow: FakeFlow) -> None:
    """The commits are looked up in the moment of submission."""
    flow.then = lambda id: flow.look_up(id, 249)


def refuse(flow: FakeFlow, id: str) -> None:
    problem = Problem("unknown-ref", "Not in the repository", "there is no 'v1' in it", "v1", "good", "the tags are v2")
    flow.end(id, BisectionState.REFUSED, problem=problem)


@pytest.mark.usefixtures("request_file")
def test_the_id_the_url_and_the_range_are_printed(terminal: Terminal, flow: FakeFlow) -> None:
    done = terminal.run("submit", "request.yaml")
    id = flow.bisections()[0].id
    assert done.status == 0, done.err
    assert done.out.splitlines() == [
        f"Bisection {id} at {terminal.url}/api/v1/bisections/{id}",
        "good v1 .. bad main: 249 candidates",
        f"Follow it with: firstbad watch {id}",
    ]
    assert done.err == ""


@pytest.mark.usefixtures("request_file")
def test_json_for_programs_is_alone_on_standard_output(terminal: Terminal) -> None:
    done = terminal.run("submit", "request.yaml", "--json")
    assert json.loads(done.out)["candidates"] == 249
    assert done.err.startswith("Bisection ")


def test_a_request_comes_from_standard_input(terminal: Terminal, flow: FakeFlow) -> None:
    assert terminal.run("submit", "-", typed=REQUEST.encode()).status == 0
    assert flow.bisections()[0].request.bad == "main"


def test_a_request_may_be_json(terminal: Terminal, tmp_path: Path, flow: FakeFlow) -> None:
    body = {"repo": "https://git.example.org/x.git", "good": ["a", "b"], "bad": "main", "script": "x"}
    (tmp_path / "request.json").write_text(json.dumps(body))
    assert terminal.run("submit", "request.json").status == 0
    assert flow.bisections()[0].request.good == ("a", "b")


@pytest.mark.usefixtures("request_file")
def test_keys_are_set_from_the_command_line(terminal: Terminal, tmp_path: Path, flow: FakeFlow) -> None:
    (tmp_path / "see.sh").write_text("grep -q x y\n")
    changes = ["--set", "good=0.10", "--set", "width=2", "--set", "env.A=b=c", "--script", "see.sh"]
    assert terminal.run("submit", "request.yaml", *changes).status == 0
    request = flow.bisections()[0].request
    assert (request.good, request.width, request.recipe.env) == (("0.10",), 2, {"A": "b=c"})
    assert request.reproduction.script == "grep -q x y\n"


@pytest.mark.parametrize("written", ["../x", "./x", "."])
def test_a_repository_beside_the_request_file_is_found_by_the_service(
    terminal: Terminal, tmp_path: Path, flow: FakeFlow, written: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "request.yaml").write_text(f"{{repo: {written}, good: a, bad: b, script: x}}")
    assert terminal.run("submit", "sub/request.yaml").status == 0
    assert flow.bisections()[0].request.repo == str((tmp_path / "sub" / written).resolve())


@pytest.mark.usefixtures("request_file")
def test_a_refusal_is_told_at_once(terminal: Terminal, flow: FakeFlow) -> None:
    flow.then = lambda id: refuse(flow, id)
    done = terminal.run("submit", "request.yaml")
    assert done.status == 2
    assert "there is no 'v1' in it" in done.out
    assert "the tags are v2" in done.out


@pytest.mark.usefixtures("request_file")
def test_a_repository_that_takes_long_to_fetch_is_not_awaited_for_ever(terminal: Terminal, flow: FakeFlow) -> None:
    flow.then = lambda id: None
    done = terminal.run("submit", "request.yaml", "--wait", "0.1")
    assert done.status == 0
    assert "still being fetched" in done.out


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["submit"], ["firstbad: missing argument 'REQUEST'.", "  see: firstbad submit --help"]),
        (
            ["submit", "lost.yaml"],
            ["firstbad: lost.yaml: no such file or directory", "  name a request file, or - for standard input"],
        ),
        (
            ["submit", "request.yaml", "--set", "good"],
            ["firstbad: --set good: there is no name and value in it", "  write it like --set good=v1.4.0"],
        ),
        (
            ["submit", "request.yaml", "--set", "god=v1"],
            ["firstbad: 'god' is no key of a request", "  did you mean good?"],
        ),
        (
            ["submit", "request.yaml", "--set", "timeout=soon"],
            [
                "firstbad: timeout: 'soon' is no duration between 0 and 30 days",
                '  write seconds as a number, or like "90s", "20m", "1h30m"',
            ],
        ),
        (["submit", "request.yaml", "--set", "good.x=1"], None),
        (["submit", "request.yaml", "--script", "lost.sh"], None),
        (["submit", "request.yaml", "--width", "3"], None),
        (["submit", "."], None),
    ],
)
def test_a_mistake_is_told_in_a_line_or_two(
    terminal: Terminal, request_file: Path, flow: FakeFlow, arguments: list[str], lines: list[str] | None
) -> None:
    done = terminal.run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("firstbad: ")
    assert len(done.err.splitlines()) <= 2
    assert lines is None or done.err.splitlines() == lines
    assert not flow.bisections()


def test_every_wrong_field_is_told(terminal: Terminal) -> None:
    done = terminal.run("submit", "-", typed=b"{script: x, width: many}")
    assert done.status == 2
    lines = done.err.splitlines()
    assert lines[:2] == ["firstbad: good is missing; add good:", "  bad is missing; add bad:"]
    assert lines[2].startswith("  width: ")


def test_a_service_that_fails_after_taking_a_request_leaves_word_how_to_go_on(
    terminal: Terminal, flow: FakeFlow
) -> None:
    flow.then = lambda id: setattr(flow, "broken", RuntimeError("no"))
    done = terminal.run("submit", "-", "--wait", "0", typed=REQUEST.encode())
    assert done.status == 3
    assert [line for line in done.err.splitlines() if "waiting" not in line] == [
        "firstbad: the service met an unexpected error",
        "  the service's log (logs/api.log in its home) has the traceback",
        f"  once it answers, go on with: firstbad watch {flow.bisections()[0].id}",
    ]


@pytest.mark.parametrize("typed", [b"good: a: b", b"\xff\xfe", b"", b"- a", b"good: " + b"[" * 10_000])
def test_a_file_that_cannot_be_read_is_told_without_a_traceback(terminal: Terminal, typed: bytes) -> None:
    done = terminal.run("submit", "-", typed=typed)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("firstbad: ")
    assert "Traceback" not in done.err


PASTED = """\
repo: https://git.example.org/x/vllm.git
good: v1
bad: main
build: make wheel
secrets: [HF_TOKEN]
env: {LEVEL: quiet}
resources: {gpus: 4, gpu: H800|H100, shm: 16GiB, labels: nvlink, models: Qwen/Qwen3-8B}
priority: low
budget: {probes: 40, wall: 6h, gpu_hours: 20}
control: {replace: {"--n 2": "--n 3"}}
failure: boom
script: |
  pip install vllm==0.9
  vllm serve m --n 2 &
  sleep 99
  vllm bench serve
"""


def test_a_dry_run_prints_what_would_be_run_and_begins_nothing(terminal: Terminal, flow: FakeFlow) -> None:
    done = terminal.run("submit", "-", "--dry-run", typed=PASTED.encode())
    assert (done.status, done.err) == (0, "")
    rows = dict(line.split("  ", 1) for line in done.out.splitlines()[2:] if not line.startswith("note"))
    told = {name: said.strip() for name, said in rows.items()}
    assert (told["serve"], told["check"]) == ("vllm serve m --n 2", "vllm bench serve")
    assert told["ready"] == "when it answers /health on port 8000, within 20 min 0 s"
    assert told["control serve"] == "vllm serve m --n 3"
    assert "4 GPUs (H800|H100), 16 GiB of shared memory" in told["sandbox"]
    assert told["sandbox"].endswith("on a node labelled nvlink, on a node that has Qwen/Qwen3-8B")
    assert (told["env"], told["secrets"], told["priority"]) == ("LEVEL", "HF_TOKEN", "low")
    assert told["budget"] == "40 probes, 6 h 0 min since it was submitted, 20 GPU hours"
    assert told["failure"] == "only what prints 'boom'; another one is a skip"
    assert [line.split("`")[1] for line in done.out.splitlines() if line.startswith("note")] == [
        "vllm serve m --n 2",
        "pip install vllm==0.9",
        "sleep 99",
    ]
    assert not flow.bisections()


@pytest.mark.parametrize(
    ("check", "port"),
    [
        ("curl $FIRSTBAD_URL", "$FIRSTBAD_PORT (8123 where that is free)"),
        ("", "$FIRSTBAD_PORT (8123 where that is free)"),
        ("curl 127.0.0.1:8123", "8123"),
    ],
)
def test_a_dry_run_tells_the_port_that_the_command_is_given(terminal: Terminal, check: str, port: str) -> None:
    serve = "serve: {command: 'serve --port $FIRSTBAD_PORT', port: 8123, ready: {http: /health}}"
    document = REQUEST.replace('script: "false"', serve) + (f"check: {check}\n" if check else "")
    shown = terminal.run("submit", "-", "--dry-run", typed=document.encode()).out
    assert f"when it answers /health on port {port}, within" in shown


def test_a_dry_run_for_programs_is_the_request(terminal: Terminal, flow: FakeFlow) -> None:
    shown = json.loads(terminal.run("submit", "-", "--dry-run", "--json", typed=PASTED.encode()).out)["request"]
    assert (shown["serve"]["command"], shown["check"]) == ("vllm serve m --n 2", "vllm bench serve\n")
    assert not flow.bisections()
    script = json.loads(
        terminal.run("submit", "-", "--dry-run", "--json", "--set", "pasted=false", typed=REQUEST.encode()).out
    )["request"]
    assert (script["script"], script["notes"]) == ("false", [])


MEASURED = """\
metric:
- {pattern: '([0-9]+) tok', better: higher}
- {reader: hyperfine, name: median, threshold: 5%, aggregate: min, decides: true}
- {csv: {column: wall, where: {case: a}}, better: lower, name: parsing, unit: ms, threshold: 0.5}
measuring: {recheck: 0, warmup: 2}
resources: {cpuset: "0-3,8"}
"""


def test_a_dry_run_shows_how_a_number_is_found_and_measured(terminal: Terminal) -> None:
    alone = REQUEST + "metric: {json: $.a, better: higher}\nresources: {numa: 0}\n"
    shown = terminal.run("submit", "-", "--dry-run", typed=alone.encode()).out
    assert "what stands at $.a; higher is better; it is worse where it can be told apart" in shown
    assert "no warm-up runs, at most 30 runs of each end, an end again after 8 measured commits" in shown
    assert "on the node of memory 0 and its CPUs" in shown
    shown = terminal.run("submit", "-", "--dry-run", typed=(REQUEST + MEASURED).encode()).out
    rows = {line[:10].strip(): line[12:] for line in shown.splitlines()}
    assert rows["metric"].startswith(
        "median of hyperfine; lower is better; in s; it is worse from 5 % on; of several in a"
    )
    assert "what '([0-9]+) tok' finds; higher is better" in shown
    assert "parsing: the column 'wall' where case is 'a'; lower is better; in ms; it is worse from 0.5 ms on" in shown
    assert rows["measured"] == "2 warm-up runs before each run, at most 30 runs of each end, no end again"
    assert "on the CPUs 0-3,8" in shown


def test_a_dry_run_of_a_build_that_fails(terminal: Terminal) -> None:
    built = REQUEST.replace('script: "false"', "failure_in: build\nbuild: make")
    assert "of the build itself" in terminal.run("submit", "-", "--dry-run", typed=built.encode()).out


def test_a_dry_run_refuses_what_a_run_would(terminal: Terminal) -> None:
    done = terminal.run("submit", "-", "--dry-run", "--set", "width=0", typed=REQUEST.encode())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("firstbad: width: ")


def test_what_was_made_of_a_paste_is_told_once_before_it_is_watched(terminal: Terminal, flow: FakeFlow) -> None:
    flow.then = lambda id: flow.find(id, 5)
    done = terminal.run("submit", "-", "--watch", typed=PASTED.encode())
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert [line[:6] for line in lines[1:4]] == ["note: "] * 3
    assert len([line for line in lines if line.startswith("note: ")]) == 3
