"""The store of wheels and logs: a folder, and a real S3 server."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.s3_server import S3
from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from worker.build.store import Store
from worker.contract import Sandbox
from worker.errors import NodeFault


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """One of each kind."""
    if request.param == "folder":
        return Store(str(tmp_path / "store"))
    return Store(request.getfixturevalue("s3").url)


@pytest.fixture
def away(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> Store:
    other = S3()
    for name, value in other.variables.items():
        monkeypatch.setenv(name, value)
    return Store(other.url)


def file(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


def fault(store: Store, tmp_path: Path, *, write: bool = False) -> NodeFault:
    with pytest.raises(NodeFault) as caught:
        if write:
            store.put(file(tmp_path, b"x"), "wheels/k/a.whl")
        else:
            store.get("wheels/k/a.whl", tmp_path / "back", None)
    assert not (tmp_path / "back").exists()
    return caught.value


@pytest.mark.parametrize("size", [0, 1, 3_000_000, 120_000_000])
def test_what_is_put_comes_back_whole(store: Store, tmp_path: Path, size: int) -> None:
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    digest = store.put(file(tmp_path, content), "wheels/k/a.whl")
    assert digest == hashlib.sha256(content).hexdigest()
    store.get("wheels/k/a.whl", tmp_path / "back", digest)
    assert (tmp_path / "back").read_bytes() == content


def test_a_second_put_replaces_the_first(store: Store, tmp_path: Path) -> None:
    store.put(file(tmp_path, b"longer than the second"), "logs/a.log")
    store.put(file(tmp_path, b"second"), "logs/a.log")
    store.get("logs/a.log", tmp_path / "back", None)
    assert (tmp_path / "back").read_bytes() == b"second"


def test_what_is_not_there_is_missing(store: Store, tmp_path: Path) -> None:
    assert fault(store, tmp_path).kind == "missing-wheel"


def test_what_was_changed_is_damaged_and_not_kept(store: Store, tmp_path: Path) -> None:
    digest = store.put(file(tmp_path, b"as it was built"), "wheels/k/a.whl")
    store.put(file(tmp_path, b"as it became"), "wheels/k/a.whl")
    with pytest.raises(NodeFault, match=digest) as caught:
        store.get("wheels/k/a.whl", tmp_path / "back", digest)
    assert caught.value.kind == "damaged-wheel"
    assert not (tmp_path / "back").exists()


def test_a_put_of_what_cannot_be_read_leaves_nothing(s3: S3, tmp_path: Path) -> None:
    for store in (Store(s3.url), Store(str(tmp_path / "store"))):
        with pytest.raises(NodeFault):
            store.put(tmp_path / "none", "wheels/k/a.whl")
    assert s3.names() == [] and not list((tmp_path / "store").rglob("*"))


def test_objects_lie_under_the_prefix_and_nowhere_else(s3: S3, tmp_path: Path) -> None:
    Store(s3.url).put(file(tmp_path, b"x"), "wheels/k/a.whl")
    assert s3.names() == ["firstbad/wheels/k/a.whl"]


@pytest.mark.parametrize("write", [True, False])
def test_a_store_that_is_away_is_a_fault_that_names_it(away: Store, tmp_path: Path, write: bool) -> None:
    found = fault(away, tmp_path, write=write)
    assert found.kind == "store" and away.url in found.message and "AWS_ENDPOINT_URL" in found.advice


@pytest.mark.parametrize("write", [True, False])
def test_a_bucket_that_is_missing_is_told_apart_from_a_missing_wheel(s3: S3, tmp_path: Path, write: bool) -> None:
    found = fault(Store("s3://team-none/firstbad"), tmp_path, write=write)
    assert found.kind == "store" and "s3://team-none/firstbad" in found.message and "Create the bucket" in found.advice


@pytest.mark.parametrize("write", [True, False])
def test_wrong_keys_are_told(s3: S3, tmp_path: Path, write: bool) -> None:
    s3.know_nobody()
    found = fault(Store(s3.url), tmp_path, write=write)
    assert found.kind == "store" and "AWS_ACCESS_KEY_ID" in found.advice
    assert "lovelace" not in found.message


def test_no_keys_at_all_are_told(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = fault(Store(s3.url), tmp_path, write=True)
    assert found.kind == "store" and "AWS_ACCESS_KEY_ID" in found.advice


def test_an_endpoint_that_is_none_is_told(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    assert "AWS_ENDPOINT_URL" in fault(Store(s3.url), tmp_path, write=True).advice


@pytest.mark.parametrize("url", ["s4://bucket/x", "gs://bucket/x", "s3://ada:lovelace@bucket/x"])
def test_a_store_that_cannot_be_is_told_when_the_worker_starts(tmp_path: Path, url: str) -> None:
    with pytest.raises(NodeFault) as caught:
        pipeline(tmp_path, store_url=url)
    assert caught.value.kind == "store" and "lovelace" not in caught.value.message and caught.value.advice


def test_a_folder_that_is_read_only_is_a_fault_that_names_it(small_disk: Path, tmp_path: Path) -> None:
    store = Store(str(small_disk / "store"))
    store.put(file(tmp_path, b"x"), "wheels/k/a.whl")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    found = fault(store, tmp_path, write=True)
    assert found.kind == "store" and str(small_disk) in found.message and "writable" in found.advice
    store.get("wheels/k/a.whl", tmp_path / "back", None)


def test_a_store_that_can_be_written_is_left_as_it_was(store: Store, s3: S3, tmp_path: Path) -> None:
    store.check()
    assert s3.names() == [] and not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def test_trying_a_store_tells_what_is_wrong_with_it(s3: S3, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for url, advice in (("s3://team-none/firstbad", "Create the bucket"), (str(small_disk / "store"), "writable")):
        with pytest.raises(NodeFault, match=url) as caught:
            Store(url).check()
        assert caught.value.kind == "store" and advice in caught.value.advice
    s3.know_nobody()
    with pytest.raises(NodeFault) as caught:
        Store(s3.url).check()
    assert "AWS_ACCESS_KEY_ID" in caught.value.advice


def test_nothing_is_compiled_for_a_store_that_cannot_be_written(
    s3: S3, small_disk: Path, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]
) -> None:
    needs("bwrap")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for number, url in enumerate(("s3://team-none/firstbad", str(small_disk))):
        bench = Bench(pipeline(tmp_path / str(number), store_url=url), *repository, Sandbox(kind="process"))
        result = bench.build("sleep 600")
        assert result.fault is not None and result.fault.kind == "store" and url in result.fault.message
        assert result.seconds < 60
        assert bench.left() == []


def test_a_folder_that_is_full_keeps_nothing_of_what_did_not_fit(small_disk: Path, tmp_path: Path) -> None:
    store = Store(str(small_disk / "store"))
    with pytest.raises(NodeFault) as caught:
        store.put(file(tmp_path, b"x" * 20_000_000), "wheels/k/a.whl")
    assert caught.value.kind == "disk-full" and str(small_disk) in caught.value.message
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []


@pytest.fixture
def s3_bench(s3: S3, tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    needs("bwrap")
    yield Bench(pipeline(tmp_path, store_url=s3.url), *repository, Sandbox(kind="process"))


def test_wheels_and_logs_go_through_an_s3_store(s3_bench: Bench, s3: S3, tmp_path: Path) -> None:
    built = s3_bench.build(key="k")
    assert built.wheel is not None, built
    script = "python3 -c 'import tinypkg; tinypkg.main()'; env | grep AWS && exit 1; true"
    outcome = s3_bench.outcome(script, wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)
    assert (outcome.exit_status, outcome.log.last_lines[-1]) == (0, "tinypkg says hello")
    assert sorted(s3.names()) == sorted(
        f"firstbad/{path}" for path in (built.wheel.path, built.log.path, outcome.log.path)
    )
    s3_bench.pipeline.site.store.put(file(tmp_path, b"damaged"), built.wheel.path)
    result = s3_bench.probe(script, wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)
    assert result.fault is not None and result.fault.kind == "damaged-wheel"
    assert s3_bench.left() == []
