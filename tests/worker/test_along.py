"""Reading along while a log is written: every byte is given once, or counted as left out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.run import job as jobs
from worker.run.along import BEGIN, TURN, Along
from worker.run.inside.log import LINE, STAMP, Log
from worker.run.job import Job
from worker.run.logs import STAMPED

LEFT_OUT = re.compile(rb"(\n?)\[firstbad: (\d+) bytes left out here\]\n")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return jobs.create(tmp_path, "job", None)


def plain(text: bytes) -> bytes:
    """Without the stamps, which stand where lines begin, and without the ends of lines that were cut."""
    lines = text.split(b"\n")
    cut = [len(line) == STAMP + LINE and STAMPED.match(line) for line in lines[:-1]]
    ends = [b"" if each else b"\n" for each in cut] + [b""]
    return b"".join(STAMPED.sub(b"", line, count=1) + end for line, end in zip(lines, ends, strict=True))


def check(written: bytes, shown: bytes) -> int:
    """Whether the shown text, from wherever it begins, is what was written but for what it counts. How many bytes."""
    parts = LEFT_OUT.split(shown)
    texts = [plain(part) for part in parts[::3]]
    at = len(written)
    for text, end, count in zip(texts[:0:-1], parts[-3::-3], parts[-2::-3], strict=True):
        assert written[:at].endswith(text)
        at -= len(text) + int(count)
        # A line end before such a line is the run's own, or was put there.
        at -= len(end) if written[:at].endswith(b"\n") else 0
    assert written[:at].endswith(texts[0])
    return len(written) - at + len(texts[0])


#: What looks like a time stamp of ours can be taken for one where a turn begins.
PIECES = (
    st.binary(min_size=1, max_size=60)
    .map(lambda piece: piece.replace(b"\x01", b"\n"))
    .filter(lambda piece: not STAMPED.search(piece))
)


@settings(max_examples=200, deadline=None)
@given(
    turns=st.lists(st.sampled_from(["read", "flush"]) | PIECES, max_size=60),
    cap=st.integers(min_value=100, max_value=3000),
)
def test_every_byte_is_shown_once_or_counted(
    tmp_path_factory: pytest.TempPathFactory, turns: list[str | bytes], cap: int
) -> None:
    job = jobs.create(tmp_path_factory.mktemp("along"), "job", None)
    log, along, written, shown = Log(str(job.out), cap, None), Along(job, cap), b"", b""
    along.more()
    for turn in turns:
        if isinstance(turn, bytes):
            log.add(turn)
            written += turn
        elif turn == "flush":
            log.flush()
        else:
            shown += along.more()
    log.flush()
    shown += along.more()
    assert along.more() == b""
    assert check(written, shown) == len(written)


@pytest.mark.parametrize("cap", [10_000_000, 1_000_000, 300_000, 1000])
def test_a_late_reader_begins_shortly_before_the_end(job: Job, cap: int) -> None:
    log, written = Log(str(job.out), cap, None), b"".join(b"%d\n" % number for number in range(100_000))
    for start in range(0, len(written), 5000):
        log.add(written[start : start + 5000])
    log.flush()
    along = Along(job, cap)
    shown = along.more()
    assert shown.endswith(b" 99999\n")
    assert len(shown) <= BEGIN + 100
    assert cap < 300_000 or len(shown) > BEGIN - 100
    log.add(b"one more\n")
    log.flush()
    shown += along.more()
    assert check(written + b"one more\n", shown)


def test_a_flood_is_shown_in_part_at_every_turn(job: Job) -> None:
    log, along, written, shown = Log(str(job.out), 2_000_000, None), Along(job, 2_000_000), b"", b""
    for number in range(40):
        piece = b"".join(b"%d of %d\n" % (line, number) for line in range(20_000))
        for start in range(0, len(piece), LINE):
            log.add(piece[start : start + LINE])
        written += piece
        log.flush()
        given = along.more()
        # Twice as much where the head ends.
        assert 0 < len(given) <= TURN * (2 if number == 1 else 1) + 100
        assert given.endswith(b" 19999 of %d\n" % number)
        shown += given
    assert check(written, shown)
    assert len(LEFT_OUT.findall(shown)) == 40


def test_a_line_of_a_hundred_megabytes_is_shown_in_part(job: Job) -> None:
    log, along, shown = Log(str(job.out), 4_000_000, None), Along(job, 4_000_000), b""
    for number in range(1600):
        log.add(b"x" * LINE)
        if number % 50 == 0:
            log.flush()
            given = along.more()
            assert len(given) <= 2 * TURN + 200
            shown += given
    log.close()
    shown += along.more()
    left_out = sum(int(number) for _, number in LEFT_OUT.findall(shown))
    # An end of ours that cut a line, and with which a turn began, counts as the run's.
    assert shown.count(b"x") + left_out - 1600 * LINE in (0, 1)


def test_what_a_sandbox_puts_in_the_places_of_the_log_does_no_harm(job: Job) -> None:
    (job.out / "log").symlink_to("/etc/passwd")
    (job.out / "log.1").mkdir()
    for count in ("", "1", "-5 -9", "x y", "9" * 40 + " " + "9" * 40, "5 0", "1000 3", "7 7 7"):
        (job.out / "log.bytes").write_text(count)
        (job.out / "log.2").write_bytes(b"\0" * 10)
        along = Along(job, 1000)
        assert b"root" not in along.more() + along.more()


@pytest.mark.parametrize("counted", ["", "100 0"])
def test_of_a_log_that_the_run_makes_huge_no_more_is_looked_at_than_it_may_hold(job: Job, counted: str) -> None:
    cap, size = 1_000_000, 50_000_000
    (job.out / "log").write_bytes(b"2026-01-31T23:59:59.123Z begun\n")
    along = Along(job, cap)
    shown = along.more()
    os.truncate(job.out / "log", size)
    (job.out / "log.bytes").write_text(counted)
    shown += along.more() + along.more()
    assert sum(int(number) for _, number in LEFT_OUT.findall(shown)) + shown.count(b"\0") <= cap
