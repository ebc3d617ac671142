"""What no script may do to the service that takes it apart: keep it busy, or fill its memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.adapters.servers import load
from service.application import reproduction
from service.application.pasted import Project, installs, rewriting, shell, split, targets, transcript
from service.application.ports import Policy
from service.application.submission import ControlForm, Submission
from service.application.submit import complete
from service.domain.errors import TooLarge
from service.domain.recipe import Recipe, SandboxKind

SERVERS = load()
VLLM = Project(frozenset({"vllm"}), installed=True)
NAMES = st.sampled_from(["A", "B", "C"])
VALUES = st.lists(st.one_of(NAMES.map("${}".format), NAMES.map("${{{}:-xy}}".format), st.just("z" * 50)), max_size=9)


class _TooMuch(Exception):
    pass


@contextmanager
def calls_bounded(most: int) -> Iterator[None]:
    """Python functions called within, those of generators' steps among them; more of them fail."""
    called = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal called
        called += event == "call"
        if called > most:
            sys.setprofile(None)
            raise _TooMuch(f"more than {most} calls")

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def notes(script: str) -> str:
    """Of one that is left as it was written."""
    made = split(script, SERVERS, VLLM)
    assert (made.script, made.serve, made.check) == (script, None, None)
    return " ".join(made.notes)


@given(st.lists(st.tuples(NAMES, VALUES.map("".join)), max_size=60))
@settings(deadline=None)
def test_the_values_of_variables_stay_short_in_any_chain_of_assignments(chain: list[tuple[str, str]]) -> None:
    known: dict[str, str] = {}
    for name, value in chain:
        known[name] = shell.expanded(value, known)
        assert len(known[name]) <= max(len(value), shell.LONGEST_VALUE)


def test_a_value_that_doubles_with_each_line_is_as_unknown_as_one_of_the_run() -> None:
    doubling = "".join(f'A{n + 1}="$A{n}$A{n}"\n' for n in range(40))
    assert "is not known before it runs" in notes(f"A0=80\n{doubling}vllm serve m --port $A40\n")


def test_of_a_value_that_is_too_long_no_older_one_is_taken() -> None:
    script = f"P=8001\nP={'8' * (shell.LONGEST_VALUE + 1)}\nvllm serve m --port $P\n"
    assert "is not known before it runs" in notes(script)


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        ("$ cat <<X\n" * 2000, "200 lines"),
        ("$ echo '\n" + "a\n" * 300, "200 lines"),
        ("$ a \\\n" + "\\\n" * 300, "200 lines"),
        ("$ echo '" + "a" * 9000 + "\n", "8192 characters"),
        (("$ echo '" + "a" * 6000 + "\n" + "a\n" * 40 + "'\n") * 4, "too many lines"),
    ],
)
def test_a_command_behind_a_prompt_is_read_up_to_a_bound(lines: str, first: str) -> None:
    with calls_bounded(50_000):
        assert first in notes(f"{lines}$ vllm serve m\n")


def test_a_document_is_read_once_however_many_lines_it_has() -> None:
    text = "$ cat > ask.py <<EOF\n" + "print('a')\n" * 190 + "EOF\n$ vllm serve m\n"
    made = split(text, SERVERS, VLLM)
    assert made.serve is not None and made.serve.command.startswith("cat > ask.py <<EOF\nprint")
    with calls_bounded(3000):
        assert transcript.clean(text).notes


def test_a_text_in_the_place_of_a_document_does_not_ask_for_more_lines() -> None:
    assert transcript.clean("$ cat <<< word\nword\n$ true\n").text == "cat <<< word\ntrue\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#" * 70_000 + "\nvllm serve m\n", "more than 65536 bytes"),
        ("é" * 40_000 + "\nvllm serve m\n", "more than 65536 bytes"),
        ("vllm serve m\n" * 1500, "more than 1000 commands"),
        ("true && " * 90 + "true\n" + "a\n" * 950 + "vllm serve m\n", "more than 1000 commands"),
        ("a " * 25_000 + "\nvllm serve m\n", "more than 20000 words"),
        ("a@" * 5000 + "\nvllm serve m\n", "takes too long"),
        ("$[" * 5000 + "\nvllm serve m\n", "takes too long"),
        ("f() " * 8000 + "\nvllm serve m\n", "takes too long"),
        ("$(a " * 60 + ")" * 60 + "\nvllm serve m\n", "deep in each other"),
        ("( " * 120 + "vllm serve m" + " )" * 120 + "\n", "deep in each other"),
        ("vllm serve m\n" + "true && " * 120 + "true\n", "deep in each other"),
    ],
)
def test_a_script_beyond_a_bound_is_left_and_told_to_be(script: str, why: str) -> None:
    assert why in notes(script)
    assert not notes(script.replace("vllm", "other"))


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve m &\n" + "".join(f"a{n}=$!\nkill $a{n} $x\n" for n in range(450)),
        "".join(f"uv venv {n}\nb\n" for n in range(450)) + "vllm serve m\nb\n",
        "".join(f"git clone a/b{n}\npip install ./c\n" for n in range(450)) + "vllm serve m\n",
        "".join(f"pip install vllm x{n}\n" for n in range(450)) + "vllm serve m\nb\n",
    ],
)
def test_what_is_asked_of_commands_does_not_grow_with_their_number_squared(script: str) -> None:
    with calls_bounded(400_000):
        split(script, SERVERS, VLLM)


def test_words_of_one_install_are_not_compared_with_each_other() -> None:
    words = "vllm x " * 2000
    (part,) = shell.read(f"pip install {words}\n").parts
    with calls_bounded(400_000):
        found = installs.find([part], VLLM)
    assert found.rewritten[part.start].split() == ["pip", "install", *["x"] * 2000]


LONG = 200_000


@pytest.mark.parametrize(
    "asked",
    [
        "transcript.clean('```' + ' ' * 30_000 + 'x y\\na')",
        f"rewriting.quoted('vllm' + ' ' * {LONG} + 'x')",
        f"installs._hooks('conda ' * {LONG})",
        f"targets._ours('a' + ' ' * {LONG} + '!', targets.Project(frozenset(), True))",
    ],
)
def test_no_pattern_goes_back_over_what_it_read(asked: str) -> None:
    """Ended by the kernel after seconds of work where one does, which would take minutes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    code = f"from service.application.pasted import installs, rewriting, targets, transcript\n{asked}"
    assert subprocess.run([sys.executable, "-c", code], preexec_fn=limit).returncode == 0


def test_patterns_still_read_what_they_are_for() -> None:
    assert rewriting.quoted("vllm serve \\\n  m \\\n \\\n  --port 1") == "`vllm serve m --port 1`"
    assert targets._ours("vllm [audio] >=1", VLLM) == "[audio]"
    hook = 'eval "$(conda shell.bash hook)"\nvllm serve m\n'
    made = split(hook, SERVERS, VLLM)
    assert made.serve is not None and made.serve.command == "vllm serve m"


def test_of_many_only_the_first_are_listed() -> None:
    assert rewriting.listed(["a"] * 30 + ["b"]) == "`a`, `b`"
    assert rewriting.listed(map(str, range(25))).endswith("`19` and 5 more")


def controlled(script: str, texts: dict[str, str], most: int = 256 * 1024) -> str | None:
    submission = Submission(
        ("v1",), "main", repo="https://git.example.org/x/y.git", script=script, control=ControlForm(texts), pasted=False
    )
    policy = Policy(frozenset(SandboxKind), SandboxKind.PROCESS, script_bytes=most)
    control = complete(submission, {"python": Recipe("python", "make wheel")}, policy, SERVERS).control
    assert control is not None
    return control.script


def test_texts_that_are_replaced_make_no_control_that_is_longer_than_a_script_may_be() -> None:
    with pytest.raises(TooLarge) as refused:
        controlled("b" + "a" * 20_000, {"b": "cc", "a": "x" * 20_000})
    assert refused.value.field == "control.replace.a"
    assert "400000002 bytes, more than 262144" in refused.value.detail


def test_a_control_may_be_as_long_as_a_script_to_the_byte() -> None:
    assert controlled("aab", {"a": "é"}, 5) == "ééb"
    with pytest.raises(TooLarge):
        controlled("aab", {"a": "é"}, 4)
    assert controlled("aab", {"a": "éé", "b": ""}, 8) == "éééé"


def test_many_texts_are_looked_for_without_trying_each_in_each_place() -> None:
    texts = {"a" * 80 * n + f"b{n}": "x" for n in range(1, 50)} | {"c": "x"}
    script = "a" * 100_000 + "c" + "".join(texts)
    with calls_bounded(20_000):
        assert len(list(reproduction._found(tuple(texts), script))) == 51


TEXTS = st.text("ab", min_size=1, max_size=4)


@given(st.text("abc", max_size=30), st.dictionaries(TEXTS, st.text("abd", max_size=3), min_size=1, max_size=5))
@settings(deadline=None)
def test_texts_are_replaced_from_the_left_and_the_longest_first(written: str, texts: dict[str, str]) -> None:
    at, made = 0, []
    while at < len(written):
        old = max((old for old in texts if written.startswith(old, at)), key=len, default=None)
        if old is not None:
            made.append((at, old))
        at += len(old) if old is not None else 1
    assert list(reproduction._found(tuple(texts), written)) == made
