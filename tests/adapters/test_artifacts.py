"""Reading from the artifact store."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from service.adapters.artifacts import LOG_BYTES, PIECE_BYTES, Artifacts
from service.application.ports import StoreBusy
from service.domain.errors import NotFound
from tests.s3_server import S3
from worker.contract import Limits


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    root = folder / "store"
    (root / "logs" / "b1").mkdir(parents=True)
    (root / "logs" / "b1" / "1.log").write_bytes(b"x" * (PIECE_BYTES * 2 + 1))
    (root / "logs" / "empty.log").touch()
    (folder / "secret").write_text("secret")
    (folder / "store-of-another").mkdir()
    (folder / "store-of-another" / "secret").write_text("secret")
    (root / "logs" / "link").symlink_to(folder / "secret")
    (root / "out").symlink_to(folder / "store-of-another")
    (root / "logs" / "near").symlink_to("b1/1.log")
    return root


def test_a_file_comes_in_pieces(store: Path) -> None:
    pieces = list(Artifacts(str(store)).read("logs/b1/1.log"))
    assert [len(piece) for piece in pieces] == [PIECE_BYTES, PIECE_BYTES, 1]
    assert list(Artifacts(f"file://{store}").read("logs/empty.log")) == []
    assert b"".join(Artifacts(str(store)).read("logs/near")) == b"".join(pieces)


def test_any_store_that_fsspec_knows_will_do() -> None:
    fsspec.filesystem("memory").pipe("/kept/logs/1.log", b"hello")
    assert list(Artifacts("memory://kept").read("logs/1.log")) == [b"hello"]
    with pytest.raises(NotFound):
        Artifacts("memory://kept").read("../kept/logs/1.log")


@pytest.mark.parametrize(
    "path",
    [
        "", "/", ".", "..", "logs", "logs/", "logs/none.log", "logs/b1/1.log/x", "../secret", "logs/../../secret",
        "/etc/passwd", "logs/link", "out/secret", "logs\\b1", "logs/b1/1.log\0", "~/x", "a" * 300, "a/" * 2000 + "b",
        "\ud800", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_what_is_not_there_or_lies_outside_is_not_found(store: Path, path: str) -> None:
    with pytest.raises(NotFound) as caught:
        Artifacts(str(store)).read(path)
    assert caught.value.status == 404


@settings(max_examples=300, deadline=None)
@given(st.text() | st.lists(st.sampled_from(["..", ".", "", "logs", "b1", "out", "secret", "\0"])).map("/".join))
def test_no_path_reads_what_lies_outside(store: Path, path: str) -> None:
    try:
        content = b"".join(Artifacts(str(store)).read(path))
    except NotFound:
        return
    assert b"secret" not in content


def test_an_s3_store_is_read_in_pieces(s3: S3) -> None:
    content = bytes(range(256)) * 40_000
    s3.put("logs/b1/1.log", content)
    pieces = list(Artifacts(s3.url).read("logs/b1/1.log"))
    assert b"".join(pieces) == content
    assert {len(piece) for piece in pieces[:-1]} == {PIECE_BYTES}


@pytest.mark.parametrize("path", ["logs", "logs/b1", "logs/none.log", "../x", "", "logs/b1/1.log/x"])
def test_what_an_s3_store_does_not_hold_is_not_found(s3: S3, path: str) -> None:
    s3.put("logs/b1/1.log", b"x")
    with pytest.raises(NotFound):
        Artifacts(s3.url).read(path)


def test_what_is_removed_is_gone_and_may_be_removed_again(s3: S3, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a.whl").write_bytes(b"x")
    s3.put("wheels/a.whl", b"x")
    for root in (s3.url, str(tmp_path)):
        artifacts = Artifacts(root)
        for path in ("wheels/a.whl", "wheels/a.whl", "wheels/none.whl", "wheels", "wheels/a.whl/x", "../x"):
            artifacts.remove(path)
        with pytest.raises(NotFound):
            artifacts.read("wheels/a.whl")
    assert s3.names() == []


def test_nothing_outside_of_the_store_is_removed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "store" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "store" / "link").symlink_to(tmp_path / "outside" / "kept")
    artifacts = Artifacts(str(tmp_path / "store"))
    for path in ("out/kept", "../outside/kept", str(tmp_path / "outside" / "kept"), "link"):
        artifacts.remove(path)
    assert (tmp_path / "outside" / "kept").exists()
    assert not (tmp_path / "store" / "link").is_symlink()


def test_a_store_that_fails_is_busy_not_empty(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.put("wheels/a.whl", b"x")
    elsewhere = Artifacts("s3://team-none/firstbad")
    s3.know_nobody()
    closed = Artifacts(s3.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", S3().endpoint)
    for artifacts in (elsewhere, closed, Artifacts(s3.url)):
        with pytest.raises(StoreBusy, match="the artifact store s3://"):
            list(artifacts.read("wheels/a.whl"))
        with pytest.raises(StoreBusy, match="the artifact store s3://"):
            artifacts.remove("wheels/a.whl")


@pytest.mark.parametrize("url", ["s4://bucket/x", "gs://bucket/x", "s3://ada:lovelace@bucket/x"])
def test_a_store_that_cannot_be_is_told_at_the_start(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        Artifacts(url)
    assert "lovelace" not in str(caught.value)


def packed(text: bytes, said: int | None = None) -> bytes:
    """As workers compress a log. `said`: the length that stands in its header."""
    into = io.BytesIO()
    size = len(text) if said is None else said
    with zstandard.ZstdCompressor(write_checksum=True).stream_writer(into, size=size, closefd=False) as frame:
        frame.write(text)
    return into.getvalue()


TEXT = b"".join(b"line %d of a log\n" % number for number in range(60_000))


@pytest.mark.parametrize("text", [b"", b"one\n", TEXT, bytes(range(256)) * 5000])
def test_a_compressed_log_comes_as_it_was(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "1.log.zst").write_bytes(packed(text))
    pieces = list(Artifacts(str(tmp_path)).read("1.log.zst"))
    assert b"".join(pieces) == text
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is no zstd frame"),
        (b"this is no zstd at all, but text", "it is no zstd frame"),
        (packed(TEXT)[:-2000], f"it ends after [0-9]+ of {len(TEXT)} bytes"),
        (packed(TEXT)[:30], f"it ends after 0 of {len(TEXT)} bytes"),
        (packed(TEXT)[:2000] + b"\0\1\2\3" + packed(TEXT)[2004:], f"after [0-9]+ of {len(TEXT)} bytes: zstd"),
        (zstandard.ZstdCompressor(write_content_size=False).compress(TEXT), "does not say how long"),
        (packed(bytes(LOG_BYTES + 1)), f"it holds {LOG_BYTES + 1} bytes, and no log has more"),
        (
            packed(TEXT).replace(len(TEXT).to_bytes(4, "little"), (1000).to_bytes(4, "little"), 1),
            "after 0 of 1000|more",
        ),
    ],
)
def test_a_damaged_log_is_told_and_never_more_than_it_may_be(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "1.log.zst").write_bytes(content)
    with pytest.raises(NotFound, match=f"is damaged: .*({why})"):
        list(Artifacts(str(tmp_path)).read("1.log.zst"))


def test_a_compressed_log_in_s3_comes_as_it_was(s3: S3) -> None:
    s3.put("1.log.zst", packed(TEXT))
    assert b"".join(Artifacts(s3.url).read("1.log.zst")) == TEXT
    s3.put("2.log.zst", packed(TEXT)[:-2000])
    with pytest.raises(NotFound, match="it ends after"):
        list(Artifacts(s3.url).read("2.log.zst"))


def test_orders_cap_logs_below_what_is_read_back() -> None:
    assert 2 * Limits(timeout_s=1.0).log_cap_bytes <= LOG_BYTES


def test_a_log_is_read_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "1.log.zst").write_bytes(packed(bytes(LOG_BYTES)))
    tracemalloc.start()
    size = sum(len(piece) for piece in Artifacts(str(tmp_path)).read("1.log.zst"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == LOG_BYTES
    assert peak < 4 * 1024 * 1024
