"""Secrets: had by the run that may have them, and shown nowhere."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import shlex
import subprocess
import tracemalloc
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.waiting import eventually
from tests.worker.bench import Background, Bench, values_of
from tests.worker.conftest import pipeline
from worker.contract import Metric, Serve
from worker.errors import NodeFault
from worker.run.inside.hidden import Hider
from worker.run.inside.log import LINE
from worker.run.secrets import forms, picked
from worker.run.stop import CANCELLED
from worker.settings import Settings, complaints

PATH = os.defpath
TOKEN = "hf_Zk3/q+9==of great value"


@pytest.fixture
def secret_bench(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """On a node that offers two secrets, and has one of them."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("OTHER", "not offered")
    bench.pipeline = pipeline(tmp_path / "node", secrets=("HF_TOKEN", "GH_TOKEN"))
    yield bench
    for sandbox in bench.pipeline.site.sandboxes.values():
        sandbox.close()


def traces(folder: Path) -> list[Path]:
    """Files below it that hold the secret in any form."""
    shapes = [form for form, _ in forms({"HF_TOKEN": TOKEN})]
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if any(form in path.read_bytes() for form in shapes)]


def test_a_script_has_the_secret_and_the_log_does_not(secret_bench: Bench) -> None:
    script = 'echo "token: $HF_TOKEN"; test ${#HF_TOKEN} = $LENGTH; printf %s "$HF_TOKEN" | base64 -w 0'
    outcome = secret_bench.outcome(script, secrets=("HF_TOKEN",), env={"LENGTH": str(len(TOKEN))})
    assert outcome.exit_status == 0
    first, second = secret_bench.text(outcome)
    assert first == "token: [HF_TOKEN]" and second.startswith("[HF_TOKEN]") and len(second) < len("[HF_TOKEN]") + 5
    assert TOKEN not in outcome.model_dump_json()
    assert secret_bench.left() == []
    assert traces(secret_bench.pipeline.site.work_dir) == []


def test_who_does_not_ask_for_it_does_not_get_it(secret_bench: Bench) -> None:
    assert secret_bench.text(secret_bench.outcome("echo ${HF_TOKEN:-unset} ${OTHER:-unset}")) == ["unset unset"]


def test_a_build_does_not_get_it(secret_bench: Bench) -> None:
    built = secret_bench.build("echo ${HF_TOKEN:-unset}; exit 1")
    assert built.log is not None and built.log.last_lines == ("unset",)


def test_a_server_and_its_check_have_it(secret_bench: Bench) -> None:
    serve = Serve(command='echo "up with $HF_TOKEN"; sleep 600', within_s=30.0, ready_log=r"up with \[HF_TOKEN\]$")
    outcome = secret_bench.outcome(serve=serve, check='echo "checked with $HF_TOKEN"', secrets=("HF_TOKEN",))
    assert (outcome.exit_status, outcome.ready) == (0, True)
    assert outcome.log.last_lines == ("up with [HF_TOKEN]", "checked with [HF_TOKEN]")


def test_neither_the_failures_line_nor_what_is_told_shows_it(secret_bench: Bench) -> None:
    script = """
        echo "ValueError: refused $HF_TOKEN"
        echo "firstbad: bad the token $HF_TOKEN is refused"
        echo "n=$HF_TOKEN 5"
    """
    outcome = secret_bench.outcome(
        script, failure="refused", secrets=("HF_TOKEN",), metrics=(Metric(pattern=r"n=\[HF_TOKEN\] (\d+)"),)
    )
    assert outcome.failure_seen == "ValueError: refused [HF_TOKEN]"
    assert outcome.told is not None and outcome.told.reason == "the token [HF_TOKEN] is refused"
    assert values_of(outcome) == (5.0,)
    assert TOKEN not in outcome.model_dump_json()


def test_nothing_of_a_running_job_holds_it(secret_bench: Bench) -> None:
    probe = Background(secret_bench, secret_bench.order("touch begun; sleep 600", secrets=("HF_TOKEN",)))
    job = secret_bench.job(probe.order.probe)
    eventually(lambda: (job / "work" / "tree" / "begun").exists())
    assert traces(job) == []
    assert TOKEN not in json.dumps(described(secret_bench))
    probe.stop.press(CANCELLED)
    assert probe.finished() is None


def described(bench: Bench) -> object:
    """What the engine tells of the container."""
    if bench.sandbox.kind == "process":
        return None
    label = f"label=firstbad.node={bench.pipeline.site.node}"
    (container,) = subprocess.run(
        ["docker", "ps", "--quiet", "--filter", label], capture_output=True, text=True, check=True
    ).stdout.split()
    return json.loads(subprocess.run(["docker", "inspect", container], capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("OTHER", "this node does not offer the secret OTHER"),
        ("GH_TOKEN", "this node offers the secret GH_TOKEN, but has no value for it"),
    ],
)
def test_a_secret_that_the_node_has_not_is_a_fault(secret_bench: Bench, name: str, said: str) -> None:
    fault = secret_bench.probe("true", secrets=(name,)).fault
    assert fault is not None and (fault.kind, fault.message) == ("secret", said)
    assert "FIRSTBAD_SECRETS" in fault.advice
    assert secret_bench.left() == []


def test_nothing_is_offered_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert Settings().offered_secrets() == {}
    monkeypatch.setenv("FIRSTBAD_SECRETS", "HF_TOKEN, NOT_THERE")
    assert Settings().offered_secrets() == {"HF_TOKEN": TOKEN, "NOT_THERE": None}
    with pytest.raises(NodeFault):
        picked(Settings().offered_secrets(), ["HF_TOKEN", "NOT_THERE"])


def test_what_is_no_variable_is_no_secret() -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(secrets=("HF TOKEN",))
    assert complaints(raised.value) == [
        "FIRSTBAD_SECRETS: 'HF TOKEN': 'HF TOKEN' is no name of a variable; write it like HF_TOKEN,GITHUB_TOKEN"
    ]


def test_the_site_does_not_show_its_secrets(secret_bench: Bench) -> None:
    assert TOKEN not in repr(secret_bench.pipeline)
    assert "HF_TOKEN" in dataclasses.replace(secret_bench.pipeline.site).secrets


def hidden(pieces: list[bytes], secrets: dict[str, str]) -> bytes:
    hider = Hider([(form, b"[" + name.encode() + b"]") for form, name in forms(secrets)])
    return b"".join(piece for data in [*(p for p in pieces if p), b""] for piece in hider.feed(data))


def replaced(text: bytes, secrets: dict[str, str]) -> bytes:
    """What is to come out, said in one line."""
    found = forms(secrets)
    names = dict(found)
    pattern = b"|".join(re.escape(form) for form, _ in found)
    return re.sub(pattern, lambda match: b"[" + names[match.group()].encode() + b"]", text)


#: Of few letters, so that values overlap, repeat, and are parts of each other.
VALUES = st.text(alphabet="ab", min_size=4, max_size=8)


@st.composite
def written(draw: st.DrawFn) -> tuple[dict[str, str], list[bytes]]:
    values = draw(st.lists(VALUES, min_size=1, max_size=3))
    secrets = {f"N{number}": value for number, value in enumerate(values)}
    noise = st.text(alphabet="ab\n .", max_size=10)
    shown = st.sampled_from([form.decode() for form, _ in forms(secrets)])
    text = "".join(draw(st.lists(noise | shown, max_size=12))).encode()
    cuts = sorted(draw(st.lists(st.integers(min_value=0, max_value=len(text)), max_size=12)))
    return secrets, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@settings(max_examples=500, deadline=None)
@given(written())
def test_however_a_text_is_cut_the_same_is_hidden(given: tuple[dict[str, str], list[bytes]]) -> None:
    secrets, pieces = given
    shown = hidden(pieces, secrets)
    assert shown == replaced(b"".join(pieces), secrets)
    assert not [value for value in secrets.values() if value.encode() in shown]


@settings(max_examples=200, deadline=None)
@given(
    # Of four bytes no more than four signs are left by their neighbours, which would stand in anything by chance.
    value=st.text(min_size=4, max_size=40).map(str.strip).filter(lambda text: len(text.encode()) >= 5),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_a_value_is_hidden_wherever_it_stands_in_what_was_encoded(value: str, before: bytes, after: bytes) -> None:
    secrets = {"S": value}
    whole = before + value.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = hidden([encode(whole)], secrets)
        assert b"[S]" in shown
        # At most the signs at both ends, which others have a part in, are left.
        assert len(shown) - len("[S]") <= 4 * (len(before) + len(after)) / 3 + 8
    assert hidden([urllib.parse.quote(value, safe="").encode()], secrets) == b"[S]"


def test_what_is_no_value_is_shown_as_it_was_written_and_soon() -> None:
    hider = Hider([(form, b"[S]") for form, _ in forms({"S": "value"})])
    assert hider.feed(b"a line\n") == [b"a line\n"]
    assert hider.feed(b"progress: val") == [b"progress: "]
    assert hider.feed(b"id\n") == [b"valid\n"]
    assert hider.feed(b"") == []


#: As a key is written: lines, quotes, and signs that each language writes in its own way.
KEY = "-----BEGIN KEY-----\nMIIEvQ'IBADAN/Bg+k q\\hkiG9w\t0BAQEFAASC\"BKcwggSj$AgEAAoIBAQ\n"
KEY += "znacht-ä-dem-ende\n-----END KEY-----"
BASH = {
    "%q": 'printf "%q" "$V"',
    "trace": 'set -x; : "$V"',
    "unquoted": "set -f; echo $V",
    "wrapped": 'printf %s "$V" | base64',
    "shorter lines": 'printf %s "$V" | base64 -w 64',
    "a line": 'printf %s "$V" | sed -n 3p',
    "of C": 'LC_ALL=C; printf "%q" "$V"',
}


@pytest.mark.parametrize("how", BASH)
def test_what_a_shell_makes_of_a_value_is_hidden(how: str) -> None:
    made = subprocess.run(
        ["bash", "-c", BASH[how]], env={"V": KEY, "PATH": PATH, "LC_ALL": "C.UTF-8"}, capture_output=True
    )
    shown = hidden([made.stdout + made.stderr], {"V": KEY})
    assert b"[V]" in shown
    assert not re.search(rb"MIIEvQ|Bg.k|hkiG9w|BAQEFAASC|AgEAAoIBAQ|-dem-ende|TUlJRX|QUFT", shown)


@pytest.mark.parametrize("write", [json.dumps, repr, lambda text: repr(text.encode()), shlex.quote])
def test_what_programs_write_of_a_value_is_hidden(write: Callable[[str], str]) -> None:
    shown = hidden([f"KEY: {write(KEY)}.".encode()], {"V": KEY})
    assert shown.startswith(b"KEY: ") and b"[V]" in shown and len(shown) < 15


@pytest.mark.parametrize("value", ["it's a secret", "two  words", 'a "b" \\ c', "$HOME;x", "ünder"])
def test_a_value_of_one_line_is_hidden_however_it_is_quoted(value: str) -> None:
    made = subprocess.run(
        ["bash", "-c", "set -x; printf '%q\n' \"$V\"; echo $V"], env={"V": value, "PATH": PATH}, capture_output=True
    )
    for text in (made.stdout + made.stderr, json.dumps(value).encode(), shlex.quote(value).encode()):
        assert value[2:].encode() not in hidden([text], {"V": value})
        assert b"[V]" in hidden([text], {"V": value})


def test_a_long_value_takes_little_memory_to_hide() -> None:
    value = "".join(chr(33 + number * number % 90) for number in range(6000))
    known = [(form, b"[V]") for form, _ in forms({"V": value})]
    tracemalloc.start()
    hider = Hider(known)
    assert hider.feed(b"x" + value[:4000].encode()) == [b"x"]
    assert b"".join(hider.feed(value[4000:].encode() + b"y") + hider.feed(b"")) == b"[V]y"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_short_values_are_not_hidden() -> None:
    assert forms({"S": "abc"}) == []


def test_what_grows_by_being_hidden_is_given_in_pieces_that_a_log_can_take() -> None:
    hider = Hider([(b"abcd", b"[A_VERY_LONG_NAME_OF_A_VARIABLE]")])
    pieces = hider.feed(b"abcd" * (LINE // 4))
    assert len(pieces) > 1 and max(map(len, pieces)) <= LINE
    assert b"".join(pieces) == b"[A_VERY_LONG_NAME_OF_A_VARIABLE]" * (LINE // 4)
