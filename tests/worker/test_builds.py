"""What counts as a build's result, and what does not."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import threading
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repositories import NewCommit, build_repository
from tests.waiting import eventually
from tests.worker.bench import BACKEND, FILES, UV_BUILD, Background, Bench, running
from tests.worker.conftest import pipeline
from worker.build import wheels
from worker.build.store import Store
from worker.contract import Base, BuildOrder, BuildResult, Limits, Sandbox
from worker.errors import NodeFault
from worker.run.stop import CANCELLED, Stop

MAKE = "python3 -c '{}'"
ZIP = 'import os, zipfile; z = zipfile.ZipFile(os.environ["FIRSTBAD_OUT"] + "/{name}", "w"); {rest}'
METADATA = 'z.writestr("a-1.dist-info/METADATA", "Name: a")'


def wheel_of(rest: str, name: str = "a-1-py3-none-any.whl") -> str:
    return MAKE.format(ZIP.format(name=name, rest=rest))


def reason(result: BuildResult) -> str:
    assert result.fault is None and result.wheel is None
    assert result.failure is not None and result.failure.exit_status == 0
    assert result.failure.log is not None
    return result.failure.log.last_lines[-1]


def test_a_wheel_is_stored_under_its_key(process_bench: Bench) -> None:
    result = process_bench.build(key="abc")
    assert result.wheel is not None and result.failure is None and result.fault is None
    assert result.wheel.path == "wheels/abc/1/tinypkg-1.0-py3-none-any.whl"
    stored = process_bench.pipeline.site.store.local / result.wheel.path
    assert stored.stat().st_size == result.wheel.bytes
    assert (process_bench.pipeline.site.store.local / result.log.path).exists()


def test_a_wheel_that_does_not_appear_is_a_failure(process_bench: Bench) -> None:
    assert "no wheel" in reason(process_bench.build("echo built nothing"))


def test_two_wheels_are_a_failure(process_bench: Bench) -> None:
    command = wheel_of(METADATA) + "; cp $FIRSTBAD_OUT/a-1-py3-none-any.whl $FIRSTBAD_OUT/b-1-py3-none-any.whl"
    assert "2 wheels" in reason(process_bench.build(command))


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (METADATA + '; z.writestr("../../evil", "x")', "leads outside"),
        (METADATA + '; z.writestr("/etc/evil", "x")', "leads outside"),
        (METADATA + '; z.writestr("a\\\\\\\\..\\\\\\\\b", "x")', "leads outside"),
        (METADATA + '; i = zipfile.ZipInfo("l"); i.external_attr = 0o120777 << 16; z.writestr(i, "/etc")', "the link"),
        ('z.writestr("a.py", "")', "METADATA"),
    ],
)
def test_an_evil_wheel_is_a_failure(process_bench: Bench, rest: str, said: str) -> None:
    assert said in reason(process_bench.build(wheel_of(rest)))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (wheel_of(METADATA, "a.whl"), "no name of a wheel"),
        ("echo text > $FIRSTBAD_OUT/a-1-py3-none-any.whl", "no zip file"),
        ("ln -s /etc/passwd $FIRSTBAD_OUT/a-1-py3-none-any.whl", "no plain file"),
        ("mkfifo $FIRSTBAD_OUT/a-1-py3-none-any.whl", "no plain file"),
        ("rm -r $FIRSTBAD_OUT; ln -s /etc $FIRSTBAD_OUT", "removed the folder"),
    ],
)
def test_what_is_no_wheel_is_a_failure(process_bench: Bench, command: str, said: str) -> None:
    assert said in reason(process_bench.build(command))


def test_a_failed_build_shows_its_last_fifty_lines(process_bench: Bench) -> None:
    result = process_bench.build("seq 1 100; exit 3")
    assert result.failure.exit_status == 3
    assert result.failure.log.last_lines == tuple(str(number) for number in range(51, 101))


def test_a_build_over_its_time_is_the_nodes_fault(process_bench: Bench) -> None:
    result = process_bench.build("sleep 600", limits={"timeout_s": 1.0})
    assert result.fault.kind == "build-timeout" and result.failure is None


def test_a_build_that_ran_out_of_memory_is_the_nodes_fault(process_bench: Bench) -> None:
    script = 'python3 -c "x = bytearray(400_000_000)"'
    result = process_bench.build(script, limits={"memory_bytes": 50_000_000})
    assert result.fault.kind == "out-of-memory"


NOTE = "test -e $UV_CACHE_DIR/note && exit 7; echo kept > $UV_CACHE_DIR/note"


def test_the_same_builds_of_a_repository_share_the_installers_cache(process_bench: Bench) -> None:
    assert process_bench.build(NOTE).failure.exit_status == 0
    assert process_bench.build(NOTE).failure.exit_status == 7
    assert process_bench.build(NOTE, number=1).failure.exit_status == 7


@pytest.mark.parametrize("other", ["repository", "command", "variables", "network", "image"])
def test_other_builds_cannot_prepare_the_installers_cache(process_bench: Bench, other: str) -> None:
    process_bench.build(NOTE)
    sandbox = process_bench.sandbox
    changed = {
        "repository": {"source": process_bench.source().model_copy(update={"repo": "https://example.org/other.git"})},
        "command": {"command": f"{NOTE} # other"},
        "variables": {"env": {"UV_INDEX_URL": "https://example.org"}},
        "network": {"sandbox": sandbox.model_copy(update={"network": "bridge"})},
        "image": {"sandbox": sandbox.model_copy(update={"image": "other"})},
    }[other]
    assert process_bench.build(**{"command": NOTE, **changed}).failure.exit_status == 0


def test_a_cancelled_build_reports_nothing(process_bench: Bench) -> None:
    marker, stop, found = f"3602.{os.getpid()}1", Stop(), []
    order = BuildOrder(
        key="slow",
        attempt=1,
        source=process_bench.source(),
        command=f"sleep {marker}",
        sandbox=process_bench.sandbox,
        limits=Limits(timeout_s=60.0),
    )
    build = threading.Thread(target=lambda: found.append(process_bench.pipeline.build(order, stop)), daemon=True)
    build.start()
    eventually(lambda: running(marker))
    stop.press(CANCELLED)
    build.join(30.0)
    assert found == [None]
    assert running(marker) == [] and process_bench.left() == []


def fill(folder: Path) -> None:
    done = subprocess.run(["dd", "if=/dev/zero", f"of={folder}/filler", "bs=4k"], capture_output=True)
    assert b"No space left" in done.stderr


def test_a_disk_that_is_full_while_building_is_the_nodes_fault(small_disk: Path, process_bench: Bench) -> None:
    bench = Bench(pipeline(small_disk), process_bench.repository, process_bench.shas, Sandbox(kind="process"))
    result = bench.build("dd if=/dev/zero of=big bs=1M count=64")
    assert result.fault is not None and result.fault.kind == "disk-full"
    assert bench.left() == []


def test_a_disk_that_is_full_before_the_run_is_the_nodes_fault(small_disk: Path, process_bench: Bench) -> None:
    bench = Bench(pipeline(small_disk), process_bench.repository, process_bench.shas, Sandbox(kind="process"))
    fill(small_disk)
    assert bench.probe("true").fault.kind == "disk-full"
    assert bench.left() == []


def test_a_store_that_is_full_is_the_nodes_fault(small_disk: Path, process_bench: Bench, tmp_path: Path) -> None:
    fill(small_disk)
    full = pipeline(tmp_path / "other", store_url=str(small_disk / "store"))
    bench = Bench(full, process_bench.repository, process_bench.shas, Sandbox(kind="process"))
    result = bench.build()
    assert result.fault is not None and result.fault.kind == "disk-full"
    assert not list((small_disk / "store").rglob("*.whl"))


def test_a_damaged_wheel_is_a_fault(process_bench: Bench) -> None:
    built = process_bench.build().wheel
    stored = process_bench.pipeline.site.store.local / built.path
    stored.write_bytes(b"x" + stored.read_bytes()[1:])
    result = process_bench.probe("true", wheel=built.path, wheel_sha256=built.sha256)
    assert result.fault.kind == "damaged-wheel"
    assert built.path in result.fault.message


def test_a_missing_wheel_is_a_fault(process_bench: Bench) -> None:
    result = process_bench.probe("true", wheel="wheels/none/a-1-py3-none-any.whl", wheel_sha256="0" * 64)
    assert result.fault.kind == "missing-wheel"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "wheels/../../x", "wheels//x", "", "a/./b"])
def test_a_path_cannot_leave_the_store(tmp_path: Path, path: str) -> None:
    store = Store(str(tmp_path / "store"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(NodeFault, match="no path in the store"):
        store.put(tmp_path / "file", path)
    with pytest.raises(NodeFault, match="no path in the store"):
        store.get(path, tmp_path / "out", None)


def test_a_put_is_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.put(_file(tmp_path, b"first"), "logs/a.log")
    with pytest.raises(NodeFault):
        store.put(tmp_path / "is not there", "logs/a.log")
    store.get("logs/a.log", tmp_path / "back", None)
    assert (tmp_path / "back").read_bytes() == b"first"
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


@settings(deadline=None)
@given(content=st.binary(max_size=5000))
def test_what_is_put_comes_back(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = Store(f"file://{folder}/store")
    digest = store.put(_file(folder, content), "wheels/k/a.whl")
    store.get("wheels/k/a.whl", folder / "back", digest)
    assert (folder / "back").read_bytes() == content


def _file(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


PARTS = ["..", ".", "a", "", "C:", "b\\c", "..\\d", "é", " ", "...", "-rf"]


@settings(deadline=None, max_examples=200)
@given(name=st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("/".join).filter(bool))
def test_members_that_lead_outside_are_never_accepted(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    target = tmp_path_factory.mktemp("wheel")
    path = target / "a-1-py3-none-any.whl"
    try:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a-1.dist-info/METADATA", "")
            archive.writestr(name, "")
        wheels.check(path)
    except wheels.NoWheel:
        return
    inside = os.path.normpath(f"/place/{name}") if not name.startswith("/") else name
    assert inside == "/place" or inside.startswith("/place/")


def test_a_build_shows_while_it_runs(process_bench: Bench) -> None:
    probe = Background(process_bench, process_bench.order("echo first; sleep 600"))
    log = process_bench.job(probe.order.probe) / "out" / "log"
    eventually(lambda: log.exists() and b"first" in log.read_bytes())
    probe.stop.press(CANCELLED)
    assert probe.finished() is None


# Wheels that need no build.

PROJECT = {
    **FILES,
    "tinypkg.py": "WHERE = 2\n\ndef main():\n    print('other')\n",
    "README.md": "# New\n",
}
NATIVE = {**FILES, "backend.py": BACKEND.replace('wheel.write("tinypkg.py")', "None")}


@pytest.fixture
def history(process_bench: Bench, tmp_path: Path) -> Bench:
    """Two commits with the same native code, then one that is set up otherwise."""
    commits = [NewCommit(files=FILES), NewCommit(files=PROJECT), NewCommit(files=NATIVE)]
    shas = build_repository(tmp_path / "history", commits)
    return dataclasses.replace(process_bench, repository=tmp_path / "history", shas=shas)


def base_of(bench: Bench, number: int = 0) -> Base:
    built = bench.build(number=number)
    assert built.wheel is not None and built.origin == "built" and built.notes == ()
    return Base(source=bench.source(number), wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)


def content(bench: Bench, result: BuildResult, member: str) -> str:
    with zipfile.ZipFile(bench.pipeline.site.store.local / result.wheel.path) as wheel:
        return wheel.read(member).decode()


def log_of(bench: Bench, result: BuildResult) -> str:
    return (bench.pipeline.site.store.local / result.log.path).read_text()


FAILS = "echo built; exit 3"


def test_a_wheel_with_the_same_native_code_is_put_together_without_a_build(history: Bench) -> None:
    base = base_of(history)
    result = history.build(FAILS, number=1, key="over", base=base, package="TinyPkg")
    assert result.wheel is not None and result.origin == "overlay" and result.notes == ()
    assert "print('other')" in content(history, result, "tinypkg.py")
    assert result.log.path == "logs/over.1.log" and "1 changed, 0 added, 0 removed" in log_of(history, result)
    assert history.shas[0] in log_of(history, result)
    installed = history.outcome("tinypkg", wheel=result.wheel.path, wheel_sha256=result.wheel.sha256)
    assert installed.log.last_lines[-1] == "other"


def test_where_only_a_build_can_tell_it_is_built_and_the_reason_is_a_note(history: Bench) -> None:
    result = history.build(FAILS, number=2, base=base_of(history))
    assert result.failure is not None and result.failure.exit_status == 3
    assert result.notes == (
        f"no overlay of the wheel of {history.shas[0][:12]}: backend.py changed, which steers the build",
    )


@pytest.mark.parametrize("damage", ["missing", "damaged", "no wheel"])
def test_a_base_that_is_not_as_it_was_is_a_note_and_a_build(history: Bench, damage: str) -> None:
    base = base_of(history)
    stored = history.pipeline.site.store.local / base.wheel
    if damage == "missing":
        stored.unlink()
    elif damage == "damaged":
        stored.write_bytes(b"x" + stored.read_bytes()[1:])
    else:
        base = base.model_copy(update={"wheel": "wheels/k/1/a.whl"})
    result = history.build(number=1, base=base)
    assert result.origin == "built" and result.wheel is not None and result.fault is None
    assert result.base_lost == (damage != "no wheel")
    (note,) = result.notes
    assert {"missing": "not in the store", "damaged": "damaged wheel", "no wheel": "no name of a wheel"}[damage] in note


def test_a_base_commit_that_cannot_be_brought_is_a_note_and_a_build(history: Bench) -> None:
    base = base_of(history)
    lost = base.model_copy(update={"source": base.source.model_copy(update={"sha": "0" * 40})})
    result = history.build(number=1, base=lost)
    assert result.origin == "built" and "0" * 40 in result.notes[0]


OVERLAY = (
    'test -f pyproject.toml; cp "$FIRSTBAD_BASE" "$FIRSTBAD_OUT"; echo "from $(basename "$FIRSTBAD_BASE")"; '
    'test -w "$FIRSTBAD_BASE" && echo writable || echo read-only'
)


def test_the_projects_own_way_finds_the_base_wheel(history: Bench) -> None:
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
        (wheel_of(METADATA), "the wheel is of a, not of tinypkg"),
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


def test_a_wheel_of_another_project_is_a_failure(process_bench: Bench) -> None:
    result = process_bench.build(package="other")
    assert "the wheel is of tinypkg, not of other" in reason(result)


def test_the_name_of_a_project_is_compared_in_its_canonical_form(process_bench: Bench) -> None:
    assert process_bench.build(wheel_of(METADATA, "A_b.c-1-py3-none-any.whl"), package="a-B_C").wheel is not None


# Wheels that are no good.


def zipped(folder: Path, *entries: tuple[zipfile.ZipInfo, bytes]) -> Path:
    path = folder / "a-1-py3-none-any.whl"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        archive.writestr("a-1.dist-info/METADATA", "Name: a")
        for entry, text in entries:
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return path


def refused(wheel: Path) -> str:
    with pytest.raises(wheels.NoWheel) as why:
        wheels.check(wheel)
    return str(why.value)


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    entries = [(zipfile.ZipInfo("a.py"), b"1"), (zipfile.ZipInfo("a.py"), b"2")]
    assert "the same member twice" in refused(zipped(tmp_path, *entries))


def test_members_that_differ_by_case_only_are_fine(tmp_path: Path) -> None:
    wheels.check(zipped(tmp_path, (zipfile.ZipInfo("A.py"), b"1"), (zipfile.ZipInfo("a.py"), b"2")))


def with_size(wheel: Path, size: int) -> Path:
    """Says another size of its last member than it has."""
    text = bytearray(wheel.read_bytes())
    at = text.rindex(b"PK\x01\x02")
    text[at + 24 : at + 28] = size.to_bytes(4, "little")
    wheel.write_bytes(text)
    return wheel


@pytest.mark.parametrize("size", [10, 999, 1001, 5000])
def test_a_member_that_is_larger_or_smaller_than_it_says_is_refused(tmp_path: Path, size: int) -> None:
    wheel = with_size(zipped(tmp_path, (zipfile.ZipInfo("a.py"), b"x" * 1000)), size)
    assert "a.py" in refused(wheel)


def test_a_bomb_that_says_how_large_it_is_is_refused_unread(tmp_path: Path) -> None:
    entries = [(zipfile.ZipInfo(f"{number}.py"), b"x") for number in range(5)]
    wheel = zipped(tmp_path, *entries)
    wheel.write_bytes(_all_sizes(wheel.read_bytes(), 2**32 - 2))
    assert "bytes, more than" in refused(wheel)


def _all_sizes(text: bytes, size: int) -> bytes:
    parts = text.split(b"PK\x01\x02")
    return b"PK\x01\x02".join([parts[0], *(part[:20] + size.to_bytes(4, "little") + part[24:] for part in parts[1:])])


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """As in a bomb whose entries all point to the same compressed bytes."""
    entries = [(zipfile.ZipInfo(f"{number}.py"), os.urandom(5000)) for number in range(4)]
    wheel = zipped(tmp_path, *entries)
    parts = wheel.read_bytes().split(b"PK\x01\x02")
    (first,) = (part[38:42] for part in parts[1:] if b"0.py" in part)
    pointing = [part[:38] + first + part[42:] if b".py" in part else part for part in parts[1:]]
    whole = b"PK\x01\x02".join([parts[0][:6000], *pointing])
    wheel.write_bytes(whole)
    assert refused(wheel)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    wheel = zipped(tmp_path, (zipfile.ZipInfo("a.py"), b"x"))
    text = bytearray(wheel.read_bytes())
    text[text.rindex(b"PK\x01\x02") + 8] |= 1
    wheel.write_bytes(text)
    assert "encrypted" in refused(wheel)


@settings(deadline=None, max_examples=200)
@given(at=st.integers(min_value=0, max_value=10_000), value=st.integers(min_value=0, max_value=255))
def test_a_wheel_with_any_byte_changed_is_refused_or_holds_what_it_held(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = zipped(folder, (zipfile.ZipInfo("a.py"), b"print('hello')\n" * 20))
    text = bytearray(wheel.read_bytes())
    text[at % len(text)] = value
    wheel.write_bytes(text)
    try:
        wheels.check(wheel)
    except wheels.NoWheel:
        return
    with zipfile.ZipFile(wheel) as archive:
        held = {archive.read(name) for name in archive.namelist()}
    assert held <= {b"print('hello')\n" * 20, b"Name: a"}
