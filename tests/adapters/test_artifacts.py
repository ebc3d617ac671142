"""Reading from the artifact store."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.adapters.artifacts import PIECE_BYTES, Artifacts
from service.domain.errors import NotFound


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
