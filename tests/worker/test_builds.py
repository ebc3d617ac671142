"""What counts as a build's result, and what does not."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import eventually
from tests.worker.bench import Background, Bench, running
from tests.worker.conftest import pipeline
from worker.build.store import Store
from worker.contract import BuildOrder, BuildResult, Fixup, Limits, Sandbox
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


NEW_FILE = Fixup(
    name="fix-up 1 (patch)",
    patch="diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n",
)
NOTE = "test -e $UV_CACHE_DIR/note && exit 7; echo kept > $UV_CACHE_DIR/note"


def test_the_same_builds_of_a_repository_share_the_installers_cache(process_bench: Bench) -> None:
    assert process_bench.build(NOTE).failure.exit_status == 0
    assert process_bench.build(NOTE).failure.exit_status == 7
    assert process_bench.build(NOTE, number=1).failure.exit_status == 7


@pytest.mark.parametrize("other", ["repository", "command", "variables", "network", "image", "fix-up"])
def test_other_builds_cannot_prepare_the_installers_cache(process_bench: Bench, other: str) -> None:
    process_bench.build(NOTE)
    sandbox = process_bench.sandbox
    changed = {
        "repository": {"source": process_bench.source().model_copy(update={"repo": "https://example.org/other.git"})},
        "command": {"command": f"{NOTE} # other"},
        "variables": {"env": {"UV_INDEX_URL": "https://example.org"}},
        "network": {"sandbox": sandbox.model_copy(update={"network": "bridge"})},
        "image": {"sandbox": sandbox.model_copy(update={"image": "other"})},
        "fix-up": {"source": process_bench.source().model_copy(update={"fixups": (NEW_FILE,)})},
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


def test_a_build_shows_while_it_runs(process_bench: Bench) -> None:
    probe = Background(process_bench, process_bench.order("echo first; sleep 600"))
    log = process_bench.job(probe.order.probe) / "out" / "log"
    eventually(lambda: log.exists() and b"first" in log.read_bytes())
    probe.stop.press(CANCELLED)
    assert probe.finished() is None


def test_a_wheel_of_another_project_is_a_failure(process_bench: Bench) -> None:
    result = process_bench.build(package="other")
    assert "the wheel is of tinypkg, not of other" in reason(result)


def test_the_name_of_a_project_is_compared_in_its_canonical_form(process_bench: Bench) -> None:
    assert process_bench.build(wheel_of(METADATA, "A_b.c-1-py3-none-any.whl"), package="a-B_C").wheel is not None


def test_the_text_of_a_failed_build_that_is_looked_for_is_found(process_bench: Bench) -> None:
    failed = process_bench.build("echo; echo a.o: undefined symbol f; seq 1 100; exit 1", failure="undefined symbol")
    assert failed.failure.failure_seen == "a.o: undefined symbol f"
    assert process_bench.build("echo another; exit 1", failure="undefined symbol").failure.failure_seen is None
