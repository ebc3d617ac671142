"""A signature is the same whatever varies between two runs: pids, times, marks, and who wrote first."""

from __future__ import annotations

import random
import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.observe.logs import found_in, rights, text_of
from worker.observe.signature import Signature, signature

MARKED = ["vllm-gdn-capture.log", "vllm-oom-torch.log", "vllm-key-missing.log", "torchrun-value.log", "tinyserve.log"]
#: Logs whose every line says who wrote it may be written in any order of the processes.
_MARK = re.compile(r"\(\w+ pid=\d+\) |\[rank\d\]: ")
SEEDS = st.integers(0, 2**32)


def again(text: str, name: str) -> Signature | None:
    return signature(text, rights()[name].project, hang=rights()[name].hang)


@pytest.mark.parametrize("name", rights())
def test_our_own_time_stamps_change_nothing(name: str) -> None:
    lines = text_of(name).split("\n")
    stamped = "\n".join(
        f"2026-11-30T12:{at // 60 % 60:02}:{at % 60:02}.000Z {line}" for at, line in enumerate(lines[:-1])
    )
    found = again(stamped + "\n", name)
    assert found == found_in(name)
    assert found is not None
    assert found.line == found_in(name).line


@pytest.mark.parametrize("name", rights())
def test_colours_and_windows_line_ends_change_nothing(name: str) -> None:
    text = "\n".join(f"\x1b[36m{line}\x1b[0m\r" if "\r" not in line else line for line in text_of(name).split("\n"))
    assert again(text, name) == found_in(name)


@pytest.mark.parametrize("name", rights())
def test_lines_may_come_from_any_iterable(name: str) -> None:
    assert again((line + "\n" for line in text_of(name).split("\n")), name) == found_in(name)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(MARKED), SEEDS)
def test_other_pids_and_times_give_the_same_signature(name: str, seed: int) -> None:
    source = random.Random(seed)
    pids: dict[str, str] = defaultdict(lambda: str(source.randint(2, 4_000_000)))
    text = re.sub(r"(?<=pid=)\d+", lambda found: pids[found[0]], text_of(name))
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", lambda _: f"{source.randint(0, 23):02}:{source.randint(0, 59):02}:09", text)
    assert again(text, name) == found_in(name)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(MARKED), SEEDS)
def test_the_order_in_which_processes_wrote_does_not_matter(name: str, seed: int) -> None:
    source = random.Random(seed)
    queues: dict[str, list[str]] = defaultdict(list)
    for line in text_of(name).split("\n"):
        mark = _MARK.match(line)
        queues[mark[0] if mark else ""].append(line)
    left, merged = list(queues.values()), []
    while left:
        queue = source.choice(left)
        merged.append(queue.pop(0))
        left = [queue for queue in left if queue]
    assert again("\n".join(merged), name) == found_in(name)


NOISE = [
    "(Other pid=7) INFO 09-25 10:00:00 [a.py:1] all is well",
    "(Other pid=7) WARNING 09-25 10:00:00 [a.py:1] slow: 12 s",
    "[rank9]: step 7",
    "(Other pid=7) \r 10%|# | 1/10 [00:01<00:09, 1.0it/s]\r(Other pid=7)  20%|## | 2/10 [00:02<00:08, 1.0it/s]",
]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(MARKED), SEEDS)
def test_another_process_writing_in_between_does_not_matter(name: str, seed: int) -> None:
    source = random.Random(seed)
    lines: list[str] = []
    for line in text_of(name).split("\n"):
        lines += [line, *source.choices(NOISE, k=source.randint(0, 2))]
    assert again("\n".join(lines), name) == found_in(name)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=3000))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = signature(text)
    assert found is None or 1 <= found.line <= text.count("\n") + 1
    assert signature(text, hang=True) is not None or not text.strip()
