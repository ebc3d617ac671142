"""The normal form of messages: what varies from run to run is gone, what means something stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.observe.normal import normal

FORMS = [
    ("object at 0x7f12ab34cd56", "object at <addr>"),
    ("process 4711 has 12.5 GiB", "process <n> has <size>"),
    ("pid=17, tid 18", "pid=<n>, tid <n>"),
    ("at 2025-09-25 12:00:01,123 for 600029 milliseconds", "at <time> for <time>"),
    ("took 1.25 s, then 3ms", "took <time>, then <time>"),
    ("request 3f2b8c1e-0000-4abc-9def-0123456789ab", "request <uuid>"),
    ("connect to 127.0.0.1:29500 failed", "connect to <host> failed"),
    ("GET http://node7:8000/v1/models", "GET http://<host>/v1/models"),
    ("cannot open '/tmp/tmpab12cd34/x/kernel.cu'", "cannot open '<tmp>'"),
    ("in /opt/venv/lib/python3.12/site-packages/vllm/v1/core.py:12", "in vllm/v1/core.py"),
    ("in /home/me/data/vocab.bin", "in vocab.bin"),
    ("commit 0123456789abcdef0123456789abcdef01234567", "commit <hex>"),
    ("shapes [4096, 128, 7] and 64x32", "shapes [<n>] and <n>"),
    ('‘x’ is not "y" or `z`', "'x' is not 'y' or 'z'"),
    ("\x1b[31mred\x1b[0m\ttext", "red text"),
    ("model.layers.31.mlp", "model.layers.<n>.mlp"),
    ("Worker_TP3 on rank7", "Worker_TP<n> on rank<n>"),
]
KEPT = [
    "exit status 139",
    "exit code -9",
    "HTTP 503",
    "429 Client Error",
    "CUDA error 700",
    "[Errno 98] in use",
    "error code: 12",
    "compute capability 9.0",
    "sm_90 is not supported",
    "float16 and fp8_e4m3 and int64",
    "codec 'utf-8'",
]


@pytest.mark.parametrize(("message", "form"), FORMS)
def test_what_varies_gives_way(message: str, form: str) -> None:
    assert normal(message) == form


@pytest.mark.parametrize("message", KEPT)
def test_numbers_that_mean_something_stay(message: str) -> None:
    assert normal(message) == message


def test_a_path_is_kept_from_the_project_s_folder_on() -> None:
    assert normal("see /srv/build-7/engine/core/run.py", ("engine",)) == "see engine/core/run.py"


PARTS = st.sampled_from([
    "0x7f00aa", "12:00:01", "2025-09-25", "/tmp/tmpabcdefgh/x.py", "/home/a/b.py:12", "C:\\a\\b.cu(3)", "127.0.0.1:80",
    "pid=12", "1,234.5", "3.5 GiB", "10ms", "10 ms", "exit code 3", "error 7", "<n>", "<", ">", "'", '"', "`", "x",
    "rank3", "-", ":", ".", ",", " ", "/", "[1, 2]", "64x64", "deadbeef0123", "layers.3.w", "tmp12345678", "://h:1",
    "site-packages/", "|##|", "é", "\x1b[0m", "\t", "s", "_", "1", "e5", "%",
])  # fmt: skip


@settings(max_examples=400)
@given(
    st.one_of(
        st.text(max_size=120), st.lists(PARTS, max_size=14).map("".join), st.lists(PARTS, max_size=9).map(" ".join)
    )
)
def test_the_normal_form_of_a_normal_form_is_itself(message: str) -> None:
    once = normal(message)
    assert normal(once) == once


NUMBERS = st.integers(0, 10**7)
TEMPORARY = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=8, max_size=8)


def message_of(pid: int, address: int, port: int, seconds: int, folder: str, hour: int) -> str:
    return (
        f"[{hour:02}:{seconds % 60:02}:07] worker {pid} (pid={pid}) at 0x{address:x} on 127.0.0.1:{port} gave up after "
        f"{seconds}.{seconds % 10} seconds: no '/tmp/tmp{folder}/rank{pid % 8}.sock', {port} left"
    )


VARYING = st.tuples(NUMBERS, NUMBERS, st.integers(1, 65535), NUMBERS, TEMPORARY, st.integers(0, 23))


@given(VARYING, VARYING)
def test_other_pids_addresses_ports_times_and_temporary_paths_give_the_same_form(
    one: tuple[int, int, int, int, str, int], other: tuple[int, int, int, int, str, int]
) -> None:
    assert normal(message_of(*one)) == normal(message_of(*other))
