"""Wheels that lead outside, or hold other than they say, are none."""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.build import wheels

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
