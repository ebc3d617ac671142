"""Each rule sees what tools say, in their words, and nothing that is only like it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.observe.logs import rights, text_of
from tests.observe.sign_examples import PROJECT, each, examples
from worker.observe import Sign, out_of_space, shown
from worker.observe.foreign import foreign
from worker.observe.sighting import LONGEST, MOST, TIMES
from worker.observe.signs import RULES

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [rule.name for rule in RULES]


def signs(log: str, *project: str) -> tuple[Sign, ...]:
    return shown(log.encode().split(b"\n"), project or PROJECT).signs


def names(log: str, *project: str) -> list[str]:
    return [sign.rule for sign in signs(log, *project)]


@pytest.mark.parametrize(("rule", "log"), each("seen"))
def test_a_rule_alone_sees_its_lines(rule: str, log: str) -> None:
    assert names(log) == [rule]


@pytest.mark.parametrize(("rule", "log"), each("missed"))
def test_a_rule_does_not_see_what_is_only_like_it(rule: str, log: str) -> None:
    assert rule not in names(log)


def test_every_rule_has_examples_in_several_wordings() -> None:
    assert set(examples()) == set(NAMES)
    assert all(len(logs["seen"]) >= 4 and len(logs["missed"]) >= 2 for logs in examples().values())


def test_no_rule_takes_more_than_linear_time() -> None:
    line = "CUDA out of memory. " + "out of memory." * 2000 + "Process 1 has " * 2000 + " in use." * 2000
    assert [rule.name for rule in RULES if rule.found(line, PROJECT)] == ["gpu-out-of-memory"]


def test_no_two_rules_have_one_name() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", rights())
def test_logs_of_the_corpus_show_the_signs_that_their_file_tells(name: str) -> None:
    right = rights()[name]
    assert names(text_of(name), *right.project) == list(right.signs)


@pytest.mark.parametrize("name", [name for name, right in rights().items() if right.signs])
def test_the_signature_s_own_failure_says_the_corpus_signs(name: str) -> None:
    right = rights()[name]
    assert {sign.rule for sign in signs(text_of(name), *right.project) if sign.root} == set(right.signs) - set(
        right.aside
    )


def test_a_sign_tells_its_first_line_and_the_log_s_own_words() -> None:
    log = "\n(Worker_TP0 pid=7) ERROR 09-25 12:00:00 [a.py:1] OSError: [Errno 24] Too many open files\n"
    (sign,) = signs(log + log)
    assert (sign.line, sign.said) == (2, "OSError: [Errno 24] Too many open files")


def test_what_a_sign_says_is_bounded() -> None:
    (sign,) = signs("No space left on device: " + "x" * 10_000)
    assert len(sign.said) == LONGEST


def test_our_time_stamps_and_colours_change_no_sign() -> None:
    for _, log in each("seen"):
        lines = [f"2026-11-30T12:00:00.000Z \x1b[31m{line}\x1b[0m" for line in log.split("\n")]
        plain = [(sign.rule, sign.line, sign.said) for sign in signs(log)]
        assert [(sign.rule, sign.line, sign.said) for sign in signs("\n".join(lines))] == plain


MARKS = [
    "(EngineCore_DP0 pid=4711) ERROR 09-25 12:00:00 [core.py:708] ",
    "[rank3]: ",
    "server-1  | ",
    "[1,0]<stderr>: ",
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(each("seen")), st.sampled_from(MARKS), st.integers(0, 2**32))
def test_signs_are_the_same_whoever_wrote_among_whatever_else(example: tuple[str, str], mark: str, seed: int) -> None:
    source = random.Random(seed)
    rule, log = example
    lines = [mark + re.sub(r"(?<=pid=)\d+", str(seed), line) for line in log.rstrip("\n").split("\n")]
    noise = [f"(Other pid={seed}) INFO 09-25 12:00:0{at} [a.py:{at}] step {seed % 97 + at}" for at in range(9)]
    before = source.choices(noise, k=source.randint(0, 600))
    (sign,) = signs("\n".join(before + lines + source.choices(noise, k=source.randint(0, 40))))
    assert sign.rule == rule
    assert len(before) < sign.line <= len(before) + len(lines)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=200), st.sampled_from([log for _, log in each("seen")])), max_size=12))
def test_any_text_is_read_and_no_rule_is_told_twice(texts: list[str]) -> None:
    found = signs("\n".join(texts))
    assert len({sign.rule for sign in found}) == len(found)
    assert [sign.line for sign in found] == sorted(sign.line for sign in found)
    assert all(1 <= sign.line <= "\n".join(texts).count("\n") + 1 for sign in found)


RAISED = 'Traceback (most recent call last):\n  File "/app/vllm/a.py", line 7, in f\n    g()\n'
FULL = "OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    "log",
    [
        f"INFO 09-25 12:00:00 [a.py:1] {FULL}",
        f"WARNING 09-25 12:00:00 [a.py:1] {FULL}",
        f"2025-09-25 12:00:00,123 WARNING could not write the cache\n{RAISED}{FULL}",
        f"2025-09-25 12:00:00,123 WARNING cannot read the cache\n{RAISED}KeyError: 1\n\n"
        f"During handling of the above exception, another exception occurred:\n\n{RAISED}{FULL}",
        f"Exception ignored in: <function f at 0x7f>\n{RAISED}{FULL}",
        f"+ echo '{FULL}'",
        f"-    raise OSError('{FULL}')",
        f"+    raise OSError('{FULL}')",
        f"    raise OSError('{FULL}')",
        f">       assert str(error) == '{FULL}'",
        f"    # {FULL}",
        f'    logger.error("{FULL}")',
        f"    return '{FULL}'",
        f"0123abc Say {FULL} to the user",
        f"HEAD is now at 0123abc Say {FULL}",
        f"Subject: [PATCH] say {FULL}",
        f"tests/test_disk.py::test_full[{FULL}] PASSED [ 12%]",
        f"{FULL}; retrying in 5 s",
    ],
)
def test_what_is_handled_or_only_quoted_is_no_sign(log: str) -> None:
    assert names(log) == []


@pytest.mark.parametrize(
    "log",
    [
        f"ERROR 09-25 12:00:00 [a.py:1] {FULL}",
        f"E       {FULL}",
        f"2025-09-25 12:00:00,123 INFO starting\n{RAISED}{FULL}",
        f"2025-09-25 12:00:00,123 WARNING slow\n2025-09-25 12:00:01,123 ERROR it failed\n{RAISED}{FULL}",
        f"2025-09-25 12:00:00,123 WARNING falling back to eager mode\n{RAISED}{FULL}",
        f"#12 3.456 {FULL}",
        f"  | {FULL}",
        f"Copying: {FULL}",
        f"exception: {FULL}",
        f"default cache: {FULL}",
        f"return code 1: {FULL}",
        f"log.txt: {FULL}",
        f"*** Error: {FULL}",
        f"1727256000 {FULL}",
        f"- {FULL}",
        f"\r 10%|# | 1/10\r{FULL}",
    ],
)
def test_what_failed_is_a_sign_however_it_is_put(log: str) -> None:
    assert names(log) == ["disk-full"]


def test_the_sign_of_the_root_failure_is_known_from_one_beside_it() -> None:
    log = f"curl: (6) Could not resolve host: example.org\n\n\n\n\n{RAISED}AssertionError: wrong shape\n"
    assert [(sign.rule, sign.root) for sign in signs(log)] == [("dns", False)]
    log += "\n" * 9 + "curl: (6) Could not resolve host: example.org\n"
    assert [(sign.rule, sign.root) for sign in signs(log)] == [("dns", False)]
    assert [(sign.rule, sign.root) for sign in signs(f"{FULL}\n\n\n\n\n{RAISED}{FULL}\n")] == [("disk-full", True)]


def test_a_sign_in_a_later_line_of_the_root_s_message_is_its_own() -> None:
    log = f"{RAISED}torch.distributed.DistBackendError: NCCL error in: a.cpp:1, unhandled cuda error\nLast error:\n"
    found = signs(log + "Error while creating shared memory segment /dev/shm/nccl-Yx7 (size 9637888)\n")
    assert [(sign.rule, sign.root) for sign in found] == [("shm-full", True)]


def test_a_log_without_a_failure_has_no_root_sign() -> None:
    assert [sign.root for sign in signs("Bind for 0.0.0.0:80: port is already allocated")] == [False]


def test_a_line_that_comes_again_and_again_hides_nothing() -> None:
    noise = [f"OSError: [Errno 24] Too many open files: '/x/{number}'" for number in range(3 * TIMES)]
    assert names("\n".join([*noise, "No CUDA GPUs are available"])) == ["too-many-files", "gpu-missing"]


def test_ever_new_lines_of_one_sign_do_not_hide_another() -> None:
    letters = "abcdefghij"
    noise = ["".join(letters[int(digit)] for digit in str(number)) + " EMFILE" for number in range(MOST + 10)]
    assert names("\n".join([*noise, "No CUDA GPUs are available"])) == ["too-many-files", "gpu-missing"]


@pytest.mark.parametrize(
    ("name", "project", "expected"),
    [
        ("torch.distributed", ("vllm",), True),
        ("Compressed-Tensors", ("vllm",), True),
        ("vllm", ("vllm",), False),
        ("vllm_flash_attn", ("vllm",), False),
        ("sgl-kernel", ("sglang", "sgl_kernel"), False),
        ("typing", ("vllm",), False),
        ("distutils", ("vllm",), False),
        ("tests.utils", ("vllm",), False),
        ("_C", ("vllm",), False),
        ("torch", (), True),
        ("engine", (), False),
    ],
)
def test_a_dependency_is_told_from_the_project(name: str, project: tuple[str, ...], expected: bool) -> None:
    assert foreign(name, project) is expected


def test_a_full_disk_is_told_by_any_of_its_words_but_not_by_shared_memory() -> None:
    assert out_of_space([b"ok\n", b"2026-11-30T12:00:00.000Z cp: error writing 'x': No space left on device\n"])
    assert out_of_space([b"Disk quota exceeded"])
    assert not out_of_space([b"ok\n", b"Error: ENOSPC: System limit for number of file watchers reached\n"])


def test_the_docs_print_the_table() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.*) \|$", (DOCS / "verdicts.md").read_text().partition("\n## ")[0], re.MULTILINE
    )
    assert rows == [(rule.name, rule.sees) for rule in RULES]
