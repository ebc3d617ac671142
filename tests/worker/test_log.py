"""The log inside a sandbox, and the one that is made of its parts."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.observe import first_with, last_lines, out_of_space, readable, without_stamp
from worker.run import job as jobs
from worker.run.inside.log import LINE, STAMP, Log
from worker.run.job import Job, open_output
from worker.run.logs import assemble, compress

STAMPED = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return jobs.create(tmp_path, "job", None)


def write(job: Job, pieces: list[bytes], cap: int, failure: str | None = None) -> Log:
    log = Log(str(job.out), cap, failure)
    for piece in pieces:
        log.add(piece)
    log.close()
    return log


def without_stamps(text: bytes) -> bytes:
    lines = text.split(b"\n")
    assert lines.pop() == b""
    assert all(STAMPED.match(line) for line in lines), lines
    return b"".join(line[STAMP:] + b"\n" for line in lines)


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.binary(min_size=1, max_size=200).map(lambda b: b.replace(b"\x01", b"\n")), max_size=20))
def test_every_byte_is_kept_under_the_cap(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    job = jobs.create(tmp_path_factory.mktemp("log"), "job", None)
    log = write(job, pieces, 1_000_000)
    kept = assemble(job, log.total, 1_000_000)
    written = b"".join(pieces)
    assert (kept.bytes, kept.cut) == (len(written), False)
    assert without_stamps(kept.path.read_bytes()) == written + (
        b"\n" if written and not written.endswith(b"\n") else b""
    )


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.integers(min_value=0, max_value=300), min_size=1, max_size=200),
    size=st.integers(min_value=1, max_value=2000),
    cap=st.integers(min_value=2000, max_value=20_000),
)
def test_what_is_left_out_is_counted(
    tmp_path_factory: pytest.TempPathFactory, lines: list[int], size: int, cap: int
) -> None:
    job = jobs.create(tmp_path_factory.mktemp("log"), "job", None)
    written = b"".join(b"%d " % number + b"x" * length + b"\n" for number, length in enumerate(lines))
    log = write(job, [written[start : start + size] for start in range(0, len(written), size)], cap)
    kept = assemble(job, log.total, cap)
    text = without_stamps(kept.path.read_bytes())
    assert len(kept.path.read_bytes()) <= cap + 200
    if not kept.cut:
        assert text == written
        return
    head, count, tail = re.split(rb"\[firstbad: (\d+) bytes left out here\]\n", text)
    assert written.startswith(head) and written.endswith(tail)
    assert len(head) + int(count) + len(tail) == len(written)


def test_a_line_without_an_end_is_cut(job: Job) -> None:
    log = write(job, [b"x" * LINE] * 5 + [b"yz"], 10_000_000)
    lines = without_stamps(assemble(job, log.total, 10_000_000).path.read_bytes()).split(b"\n")
    assert lines == [b"x" * LINE] * 5 + [b"yz", b""]


def test_memory_stays_the_same_in_a_flood(job: Job) -> None:
    log = Log(str(job.out), 4 * 1024 * 1024, None)
    piece = (b"a line of a flood, as long as lines are\n" * 2000)[:LINE]
    for _ in range(3000):
        log.add(piece)
    assert log.pending_size <= 3 * 1024 * 1024
    assert sum(len(data) for _, data, _ in log.pending) <= 3 * 1024 * 1024
    log.close()
    assert sum(path.stat().st_size for path in job.out.iterdir() if path.is_file()) <= 8 * 1024 * 1024


def test_a_log_whose_run_was_killed_is_assembled_all_the_same(job: Job) -> None:
    log = Log(str(job.out), 2000, None)
    for number in range(1000):
        log.add(b"line %d\n" % number)
    log.flush()
    kept = assemble(job, None, 2000)
    text = without_stamps(kept.path.read_bytes())
    assert kept.cut and kept.bytes == log.total
    assert text.startswith(b"line 0\n") and text.endswith(b"line 999\n")


def test_the_failures_line_is_found_across_pieces(job: Job) -> None:
    pieces = [b"INFO fine\nE Runtime", b"Error: bo", b"om in worker 3\nRuntimeError: boom again\n"]
    assert write(job, pieces, 10_000, "RuntimeError: boom").failure_seen == "E RuntimeError: boom in worker 3"


def test_the_failures_line_is_found_without_an_end(job: Job) -> None:
    assert write(job, [b"RuntimeError: boom"], 10_000, "boom").failure_seen == "RuntimeError: boom"


@pytest.mark.parametrize("make", ["symlink", "fifo", "folder", "missing"])
def test_only_plain_files_are_read_from_a_sandbox(job: Job, tmp_path: Path, make: str) -> None:
    (tmp_path / "secret").write_text("secret")
    path = job.out / "log"
    if make == "symlink":
        path.symlink_to(tmp_path / "secret")
    elif make == "fifo":
        import os

        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    assert open_output(job, "log") is None
    assert assemble(job, None, 1000).path.read_bytes() == b""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"exit_status": 300}',
        '{"exit_status": NaN}',
        "9" * 2_000_000,
        "\ud800".encode("utf-8", "surrogatepass").decode("latin1"),
    ],
)
def test_an_outcome_that_cannot_be_believed_is_none(job: Job, text: str) -> None:
    (job.out / "outcome.json").write_text(text, encoding="latin1")
    assert jobs.read_outcome(job) is None


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "-rf", "a\0b", "x" * 200, ".hidden"])
def test_an_id_that_is_no_name_makes_no_folder(tmp_path: Path, name: str) -> None:
    from worker.errors import NodeFault

    with pytest.raises(NodeFault, match="cannot name a folder"):
        jobs.create(tmp_path / "jobs", name, None)
    assert not (tmp_path / "jobs").exists()


STAMP_BYTES = b"2026-01-31T23:59:59.123Z "


def test_last_lines_have_no_stamps_and_no_colours() -> None:
    lines = [STAMP_BYTES + b"one\n", STAMP_BYTES + b"\x1b[31mtwo\x1b[0m\n", STAMP_BYTES + b"10%\r50%\r100%\n"]
    assert last_lines(lines, 2) == ("two", "100%")
    assert last_lines(lines, 50) == ("one", "two", "100%")


def test_a_stamp_of_the_runs_own_is_kept() -> None:
    assert without_stamp(STAMP_BYTES + STAMP_BYTES + b"x\n") == STAMP_BYTES + b"x"


def test_the_text_of_a_failure_is_not_found_in_a_stamp() -> None:
    assert first_with([STAMP_BYTES + b"fine\n"], "2026") is None
    assert first_with([STAMP_BYTES + b"fine\n", STAMP_BYTES + b"in 2026\n"], "2026") == "in 2026"
    assert first_with([STAMP_BYTES + b"fine\n"], None) is None
    assert first_with([STAMP_BYTES + b"fine\n"], "") is None


def test_a_full_disk_is_seen() -> None:
    assert out_of_space([b"ok\n", b"cp: error writing 'x': No space left on device\n"])
    assert not out_of_space([b"ok\n"])


@settings(deadline=None)
@given(line=st.binary())
def test_what_is_readable_can_be_stored_and_shown(line: bytes) -> None:
    text = readable(line)
    text.encode("utf-8")
    assert not any(ord(sign) < 32 and sign not in "\t\n" or 127 <= ord(sign) < 160 for sign in text)
    assert readable(text.encode()) == text


@pytest.mark.parametrize("total", [None, 10_000_000])
def test_a_huge_log_is_assembled_and_compressed_in_little_memory(job: Job, total: int | None) -> None:
    """Also one whose files hold no line at all, and are longer than the cap."""
    for name in ("log", "log.1", "log.2"):
        with (job.out / name).open("wb") as file:
            file.truncate(300 * 1024 * 1024)
    tracemalloc.start()
    kept = assemble(job, total, 32 * 1024 * 1024)
    compress(kept.path, job.root / "log.zst")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
    assert kept.path.stat().st_size <= 48 * 1024 * 1024 + 100


@settings(max_examples=30, deadline=None)
@given(text=st.binary(max_size=100_000))
def test_what_was_compressed_comes_back(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    folder = tmp_path_factory.mktemp("log")
    (folder / "log").write_bytes(text)
    compress(folder / "log", folder / "log.zst")
    assert zstandard.decompress((folder / "log.zst").read_bytes()) == text
    assert zstandard.frame_content_size((folder / "log.zst").read_bytes()) == len(text)


def test_a_line_of_a_hundred_megabytes_is_cut_at_every_64_kib_and_counted(job: Job) -> None:
    log = Log(str(job.out), 1_000_000, None)
    for _ in range(1600):
        log.add(b"x" * LINE)
    log.close()
    kept = assemble(job, log.total, 1_000_000)
    text = kept.path.read_bytes()
    assert (kept.bytes, kept.cut) == (1600 * LINE, True)
    left_out = int(re.search(rb"\[firstbad: (\d+) bytes", text)[1])
    assert text.count(b"x") + left_out == kept.bytes
    assert max(map(len, text.splitlines())) == STAMP + LINE
