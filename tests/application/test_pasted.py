"""What is made of scripts that people paste; pastes.yaml holds them, each with what is wanted of it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from service.adapters.servers import load
from service.application.pasted import Project, Split, split
from service.application.ports import Policy
from service.application.submission import ControlForm, Submission
from service.application.submit import complete
from service.domain.bisection import Serve
from service.domain.recipe import Recipe, SandboxKind
from service.domain.servers import Server

PASTES = yaml.safe_load(Path(__file__).with_name("pastes.yaml").read_text())
SERVERS = load()
VLLM = Project(frozenset({"vllm"}), installed=True)


def apart(script: str, project: Project = VLLM) -> Split:
    return split(script, SERVERS, project)


@pytest.mark.parametrize("wanted", PASTES, ids=[paste["paste"].split("\n")[0][:40] for paste in PASTES])
def test_a_paste_is_taken_apart_as_it_is_wanted(wanted: dict[str, Any]) -> None:
    made = apart(wanted["paste"], Project(frozenset({wanted.get("package", "vllm")}), installed=True))
    assert list(made.notes) == wanted.get("notes", [])
    if "serve" not in wanted:
        assert (made.script, made.serve, made.check) == (wanted.get("script", wanted["paste"]), None, None)
        return
    assert made.serve is not None
    assert made.serve.command + "\n" == wanted["serve"]
    assert (made.serve.port, made.serve.ready_http or made.serve.ready_log) == (wanted["port"], wanted["ready"])
    assert (made.script, made.check) == (None, wanted.get("check"))


def test_there_are_pastes_of_every_kind() -> None:
    served = [paste for paste in PASTES if "serve" in paste]
    alone = [paste for paste in PASTES if "serve" not in paste and "script" not in paste]
    assert len(PASTES) >= 25
    assert len(served) >= 15 and len(alone) >= 10


@pytest.mark.parametrize("paste", PASTES, ids=[paste["paste"].split("\n")[0][:40] for paste in PASTES])
def test_what_is_made_of_a_paste_is_a_script_that_bash_can_read(paste: dict[str, Any]) -> None:
    made = apart(paste["paste"])
    if made.serve is not None:
        for text in (made.serve.command, made.check or ""):
            assert subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0


def again(made: Split) -> None:
    """Nothing is found any more in what came out."""
    if made.serve is not None:
        served = apart(made.serve.command)
        assert served.serve is not None and served.serve.command == made.serve.command
        assert served.check is None
    for text in (made.script, made.check):
        if text is not None:
            repeated = apart(text)
            assert (repeated.script, repeated.serve) == (text, None)


LINES = st.sampled_from(
    [
        "vllm serve m",
        "nohup vllm serve m --port 8001 > log 2>&1 &",
        "python -m sglang.launch_server --model-path m | tee log",
        "pip install vllm==1.0 openai",
        "uv pip install -U vllm",
        "python -m venv .venv && . .venv/bin/activate",
        "git clone https://git.example.org/x/vllm.git && cd vllm",
        "pip install -e .",
        "export A=1; cd /tmp",
        "PORT=8000",
        "PID=$!",
        "kill $PID",
        "sleep 30",
        "until curl -s localhost:8000; do sleep 1; done",
        "cat > c.py <<'EOF'\nprint(1)\nEOF",
        "# a comment",
        "curl -f localhost:8000/health",
        "if true; then echo x; fi",
        "f() { curl localhost; }",
        "wait",
        "",
        "$ vllm serve m",
        "```",
        "echo 'open",
        "exit $?",
    ]
)
SCRIPTS = st.lists(LINES, max_size=7).map(lambda lines: "\n".join(lines) + "\n")


@given(SCRIPTS | st.text(max_size=60))
@settings(deadline=None, max_examples=200)
def test_any_script_is_taken_apart_or_left_and_what_comes_out_stays_as_it_is(script: str) -> None:
    made = apart(script)
    assert (made.script is None) != (made.serve is None)
    if not made.notes:
        assert made.script == script
    again(made)


@given(
    st.lists(
        st.text(st.characters(blacklist_characters="$`~", blacklist_categories=["Cs"]), max_size=30)
        | st.sampled_from(["./configure", "make -j8 test", "for i in 1 2; do ./t; done", "set -e", "pytest -x"]),
        max_size=6,
    ).map("\n".join)
)
@settings(deadline=None)
def test_a_script_without_a_known_word_is_left_byte_for_byte(script: str) -> None:
    words = {word for server in SERVERS for command in server.commands for word in command}
    if not words & set(re.findall(r"[\w.-]+", script)):
        assert apart(script) == Split(script)


def test_windows_line_ends_go_with_what_is_taken_apart() -> None:
    made = apart("vllm serve m &\r\nsleep 5\r\ncurl -f localhost:8000\r\n")
    assert made.serve is not None and made.serve.command == "vllm serve m"
    assert made.check == "curl -f localhost:8000\n"
    assert apart("make test\r\n") == Split("make test\r\n")


def test_where_nothing_is_built_the_script_installs_by_itself() -> None:
    source = Project.of(Recipe("source"), "https://git.example.org/x/vllm.git")
    script = "python -m venv .venv\n. .venv/bin/activate\npip install -e .\npytest\n"
    assert apart(script, source) == Split(script)
    served = apart(script.replace("pytest", "vllm serve m\npytest"), source)
    assert served.serve is not None and "pip install -e ." in served.serve.command
    assert served.check == ". .venv/bin/activate\npytest\n"


@pytest.mark.parametrize(
    ("repo", "package", "names"),
    [
        ("https://git.example.org/vllm-project/vllm.git", None, {"vllm"}),
        ("git@git.example.org:sgl-project/SG_Lang", "sglang-kernel", {"sg-lang", "sglang-kernel"}),
        ("/srv/mirrors/x.git/", None, {"x"}),
    ],
)
def test_the_package_under_test_has_its_name_and_its_repository_s(repo: str, package: str | None, names: set) -> None:
    assert Project.of(Recipe("python", "make", package=package), repo) == Project(frozenset(names), True)
    assert "engine" in Project.of(Recipe("engine", "make"), repo).names


@pytest.mark.parametrize(
    "line",
    [
        "pip install vllm",
        "pip3 install 'vllm>=0.9,<1'",
        "python3.11 -m pip install --quiet vllm==0.9.1",
        "uv pip install --system vllm --torch-backend=auto",
        "uv add vllm",
        "conda install -c conda-forge vllm",
        'pip install "vllm @ git+https://git.example.org/x/vllm@abc"',
        "pip install -e ./vllm",
        "pip install ./dist/*.whl",
        "pip install vllm-1.0-cp38-abi3-linux_x86_64.whl || true",
        "pip install vllm 2>&1 | tail -1",
        "pip install vllm > /dev/null 2>&1",
        "pip uninstall -y vllm",
        "MAX_JOBS=4 VLLM_USE_PRECOMPILED=1 pip install --editable .",
        "python setup.py develop",
        "uv venv --seed && source .venv/bin/activate",
        'eval "$(conda shell.bash hook)"',
        "micromamba activate x",
        "deactivate",
    ],
)
def test_lines_that_make_environments_or_install_the_package_are_left_out(line: str) -> None:
    made = apart(f"{line}\npython repro.py\n")
    assert made.script == "python repro.py\n"
    assert len(made.notes) >= 1 and made.notes[0].startswith("Left out, since each commit's own package")


@pytest.mark.parametrize(
    "line",
    [
        "pip install vllm-flash-attn",
        "pip install -r requirements.txt",
        "pip download vllm",
        "apt-get install -y vllm",
        "pip install ./other",
        "echo pip install vllm",
        "pip install https://wheels.example.org/xformers-0.1-py3-none-any.whl",
    ],
)
def test_installs_of_other_packages_stay(line: str) -> None:
    script = f"{line}\npython repro.py\n"
    assert apart(script).script == script


@pytest.mark.parametrize("server", SERVERS, ids=[server.name for server in SERVERS])
def test_each_known_server_is_found_under_any_path_and_says_its_port(server: Server) -> None:
    for words in server.commands:
        made = apart(f"/opt/bin/{' '.join(words).replace('python', 'python3.12')} --x\ncurl localhost\n")
        assert made.serve is not None
        assert (made.serve.ready_http, made.serve.ready_log) == (server.ready_http, server.ready_log)
        if server.port_is_an_argument:
            continue
        assert made.serve.port == server.port
        for option in server.port_options:
            for written in (f"{option} 7001", f"{option}=7001"):
                named = apart(f"{' '.join(words)} x {written}\ncurl localhost\n").serve
                assert named is not None and named.port == 7001
        for variable in server.port_variables:
            named = apart(f"export {variable}=0.0.0.0:7002\n{' '.join(words)} x\ncurl localhost\n").serve
            assert named is not None and named.port == 7002


@pytest.mark.parametrize("server", SERVERS, ids=[server.name for server in SERVERS])
def test_with_an_option_of_doubt_a_script_stays_as_it_is(server: Server) -> None:
    words = " ".join(server.commands[0])
    for name, fine in server.doubts.items():
        for value in ("elsewhere", *fine):
            script = f"{words} 8000 {name} {value} &\npython a.py\n"
            if not name.startswith("-"):
                script = f"{name}={value} {words} 8000 &\npython a.py\n"
            made = apart(script)
            assert (made.serve is not None) == (value in fine), script
            assert made.serve is not None or (made.script == script and name in made.notes[0])


def test_the_file_of_servers_has_no_other_keys() -> None:
    entries = yaml.safe_load(resources.files("recipes").joinpath("known/servers.yaml").read_text())
    known = {each.name for each in fields(Server)}
    assert all(set(entry) <= known and {"name", "commands", "port"} <= set(entry) for entry in entries)
    assert all((entry.get("ready_http") is None) != (entry.get("ready_log") is None) for entry in entries)


@dataclass(frozen=True)
class Asked:
    """A request with this script."""

    script: str

    def done(self, **more: object):
        submission = Submission(("v1",), "main", repo="https://git.example.org/x/vllm.git", script=self.script, **more)  # type: ignore[arg-type]
        policy = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
        return complete(submission, {"python": Recipe("python", "make wheel")}, policy, SERVERS)


PASTED = Asked("pip install vllm==0.9\nvllm serve m --n 2 &\nsleep 99\nvllm bench serve\n")


def test_a_request_with_a_pasted_script_becomes_one_with_a_server() -> None:
    request = PASTED.done(failure="boom")
    assert request.reproduction.serve == Serve("vllm serve m --n 2", "/health", None, 1200.0, 8000)
    assert (request.reproduction.script, request.reproduction.check) == (None, "vllm bench serve\n")
    assert request.reproduction.failure == "boom"
    assert [note.split("`")[1] for note in request.notes] == ["vllm serve m --n 2", "pip install vllm==0.9", "sleep 99"]


def test_a_script_is_run_as_it_stands_when_it_is_said_to_be_none() -> None:
    request = PASTED.done(pasted=False)
    assert (request.reproduction.script, request.notes) == (PASTED.script, ())


def test_a_control_replaces_texts_of_what_was_made_of_the_paste() -> None:
    control = PASTED.done(control=ControlForm({"--n 2": "--n 3"})).control
    assert control.serve.command == "vllm serve m --n 3"


def test_a_control_of_its_own_is_taken_apart_too() -> None:
    control = PASTED.done(control=ControlForm(script="vllm serve other\nvllm bench serve\n")).control
    assert (control.serve.command, control.check) == ("vllm serve other", "vllm bench serve\n")


def test_characters_of_all_scripts_come_through() -> None:
    made = apart("vllm serve 模型 --port 8001 &\nsleep 5\necho '\U000f222c{é' # ü\npython ask.py \"日本語\"\n")
    assert made.serve is not None and (made.serve.command, made.serve.port) == ("vllm serve 模型 --port 8001", 8001)
    assert made.check == "echo '\U000f222c{é' # ü\npython ask.py \"日本語\"\n"
