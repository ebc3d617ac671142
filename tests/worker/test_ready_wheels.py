"""Wheels that need no build, or one by the project's own short way, and what is done when that does not serve."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import pytest

from tests.repositories import NewCommit, build_repository
from tests.worker.bench import BACKEND, FILES, UV_BUILD, Bench, stored_log
from worker.contract import Base, BuildResult

PROJECT = {
    **FILES,
    "tinypkg.py": "WHERE = 2\n\ndef main():\n    print('other')\n",
    "README.md": "# New\n",
}
NATIVE = {**FILES, "backend.py": BACKEND.replace('wheel.write("tinypkg.py")', "None")}


def with_history(bench: Bench, path: Path) -> Bench:
    """Two commits with the same native code, then one that is set up otherwise."""
    commits = [NewCommit(files=FILES), NewCommit(files=PROJECT), NewCommit(files=NATIVE)]
    return dataclasses.replace(bench, repository=path, shas=build_repository(path, commits))


@pytest.fixture
def history(process_bench: Bench, tmp_path: Path) -> Bench:
    return with_history(process_bench, tmp_path / "history")


def base_of(bench: Bench, number: int = 0) -> Base:
    built = bench.build(number=number)
    assert built.wheel is not None and built.origin == "built" and built.notes == ()
    return Base(source=bench.source(number), wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)


def content(bench: Bench, result: BuildResult, member: str) -> str:
    with zipfile.ZipFile(bench.pipeline.site.store.local / result.wheel.path) as wheel:
        return wheel.read(member).decode()


def log_of(bench: Bench, result: BuildResult) -> str:
    return stored_log(bench.pipeline, result.log).decode()


FAILS = "echo built; exit 3"
OTHER = (
    "python3 -c 'import os, zipfile; "
    'z = zipfile.ZipFile(os.environ["FIRSTBAD_OUT"] + "/a-1-py3-none-any.whl", "w"); '
    """z.writestr("a-1.dist-info/METADATA", "Name: a")'"""
)


def test_a_wheel_with_the_same_native_code_is_put_together_without_a_build(history: Bench) -> None:
    base = base_of(history)
    result = history.build(FAILS, number=1, key="over", base=base, package="TinyPkg")
    assert result.wheel is not None and result.origin == "overlay" and result.notes == ()
    assert "print('other')" in content(history, result, "tinypkg.py")
    assert result.log.path == "logs/over.1.log.zst" and "1 changed, 0 added, 0 removed" in log_of(history, result)
    assert history.shas[0] in log_of(history, result)
    installed = history.outcome("tinypkg", wheel=result.wheel.path, wheel_sha256=result.wheel.sha256)
    assert installed.log.last_lines[-1] == "other"


def test_where_only_a_build_can_tell_it_is_built_and_the_reason_is_a_note(history: Bench) -> None:
    result = history.build(FAILS, number=2, base=base_of(history))
    assert result.failure is not None and result.failure.exit_status == 3
    assert result.notes == (
        f"no overlay of the wheel of {history.shas[0][:12]}: backend.py changed, which steers the build",
    )


@pytest.mark.parametrize(("damage", "said"), [("missing", "not in the store"), ("damaged", "damaged wheel")])
def test_a_base_that_is_not_as_it_was_is_a_fault_of_its_own(history: Bench, damage: str, said: str) -> None:
    """Whether its native code is compiled here is for the service to say, who knows of all others that want it."""
    base = base_of(history)
    stored = history.pipeline.site.store.local / base.wheel
    if damage == "missing":
        stored.unlink()
    else:
        stored.write_bytes(b"x" + stored.read_bytes()[1:])
    result = history.build(number=1, base=base)
    assert result.wheel is None and result.fault is not None
    assert result.fault.kind == "lost-base" and said in result.fault.message


def test_a_base_that_is_no_wheel_by_its_name_is_a_note_and_a_build(history: Bench) -> None:
    base = base_of(history).model_copy(update={"wheel": "wheels/k/1/a.whl"})
    result = history.build(number=1, base=base)
    assert result.origin == "built" and result.wheel is not None and result.fault is None
    assert "no name of a wheel" in result.notes[0]


def test_a_base_commit_that_cannot_be_brought_is_a_note_and_a_build(history: Bench) -> None:
    base = base_of(history)
    lost = base.model_copy(update={"source": base.source.model_copy(update={"sha": "0" * 40})})
    result = history.build(number=1, base=lost)
    assert result.origin == "built" and "0" * 40 in result.notes[0]


OVERLAY = (
    'test -f pyproject.toml; cp "$FIRSTBAD_BASE" "$FIRSTBAD_OUT"; echo "from $(basename "$FIRSTBAD_BASE")"; '
    'test -w "$FIRSTBAD_BASE" && echo writable || echo read-only'
)


def test_the_projects_own_way_finds_the_base_wheel_in_every_sandbox(bench: Bench, tmp_path: Path) -> None:
    history = with_history(bench, tmp_path / "history")
    result = history.build(FAILS, number=2, key="own", base=base_of(history), overlay_command=OVERLAY)
    assert result.wheel is not None and result.origin == "overlay" and result.notes == ()
    assert "from tinypkg-1.0-py3-none-any.whl" in log_of(history, result)
    assert "read-only" in log_of(history, result)
    assert "made by the overlay command" in result.log.last_lines[-1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo left; echo it broke; exit 7", "ended with exit status 7: it broke"),
        ("true", "the build left no wheel"),
        ("kill -9 $$", "died of signal 9"),
        ("sleep 600", "took too long"),
        (OTHER, "the wheel is of a, not of tinypkg"),
    ],
)
def test_the_projects_own_way_that_fails_is_a_note_and_a_build(history: Bench, command: str, said: str) -> None:
    limits = {"timeout_s": 3.0 if command.startswith("sleep") else 60.0}
    result = history.build(
        number=1, base=base_of(history), overlay_command=f"touch junk; {command}", package="tinypkg", limits=limits
    )
    assert result.origin == "built" and result.wheel is not None
    (note,) = result.notes
    assert said in note
    assert history.left() == []


def test_a_build_after_the_projects_own_way_begins_afresh(history: Bench) -> None:
    command = 'test ! -e junk; test -z "$(ls $FIRSTBAD_OUT)"; ' + UV_BUILD
    overlay = "touch junk $FIRSTBAD_OUT/a.whl; exit 1"
    result = history.build(command, number=1, base=base_of(history), overlay_command=overlay)
    assert result.origin == "built", result
