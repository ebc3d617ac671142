"""What holds for every overlay, and what a base or a tree that cannot be trusted does not achieve."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.worker.projects import (
    BACKENDS,
    BASE_SHA,
    FILES,
    Bases,
    laid,
    members,
    same_as_built,
    tar_of,
    with_files,
    write_tar,
)
from worker.build import wheels
from worker.build.overlay import CannotOverlay, Inputs, overlay

_numbers = itertools.count()


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("bases"))


def test_a_signed_wheel_and_one_without_record_are_impossible(bases: Bases, tmp_path: Path) -> None:
    tree, wheel = bases.of(BACKENDS["hatchling"])
    for name, keep in (("RECORD.jws", True), ("none", False)):
        other = tmp_path / name / wheel.name
        other.parent.mkdir()
        with zipfile.ZipFile(other, "w") as archive:
            for member, text in members(wheel).items():
                if keep or not member.endswith("/RECORD"):
                    archive.writestr(member, text)
            if keep:
                archive.writestr("demo_pkg-1.0.dist-info/RECORD.jws", "{}")
        with pytest.raises(CannotOverlay, match=r"signed|no RECORD"):
            overlay(Inputs(other, BASE_SHA, tree, tree), tmp_path)


def test_a_tree_that_is_no_tar_is_impossible(bases: Bases, tmp_path: Path) -> None:
    tree, wheel = bases.of(BACKENDS["hatchling"])
    (tmp_path / "x.tar").write_bytes(b"nonsense" * 200)
    with pytest.raises(CannotOverlay, match="cannot be read"):
        overlay(Inputs(wheel, BASE_SHA, tree, tmp_path / "x.tar"), tmp_path)


def test_links_that_lead_out_of_the_tree_show_nothing(bases: Bases, tmp_path: Path) -> None:
    tree, wheel = bases.of(BACKENDS["hatchling"])
    folder = laid(tmp_path / "linked", BACKENDS["hatchling"])
    (folder / "src/demo_pkg/passwd.py").symlink_to("/etc/passwd")
    (folder / "src/demo_pkg/up.py").symlink_to("../../../../../../etc/passwd")
    (folder / "src/demo_pkg/alias.py").symlink_to("cli.py")
    made = overlay(Inputs(wheel, BASE_SHA, tree, tar_of(folder)), tmp_path)
    found = members(made.wheel)
    assert "demo_pkg/passwd.py" not in found and "demo_pkg/up.py" not in found
    assert found["demo_pkg/alias.py"] == FILES["src/demo_pkg/cli.py"].encode()


def test_compiled_members_are_copied_as_they_lie_there(bases: Bases, tmp_path: Path) -> None:
    """With the times, modes and compression that they have, and without being read."""
    tree, wheel = bases.of(BACKENDS["setuptools"])
    base = tmp_path / "base" / wheel.name
    base.parent.mkdir()
    native = zipfile.ZipInfo("demo_pkg/_native.so", (2021, 2, 3, 4, 5, 6))
    native.compress_type, native.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
    base.write_bytes(wheel.read_bytes())
    with zipfile.ZipFile(base, "a") as archive:
        archive.writestr(native, bytes(range(128, 256)) * 1000)
    after = tar_of(laid(tmp_path / "t", {**BACKENDS["setuptools"], "src/demo_pkg/cli.py": "x = 1\n"}))
    made = overlay(Inputs(base, BASE_SHA, tree, after), tmp_path)
    with zipfile.ZipFile(made.wheel) as archive:
        found = archive.getinfo(native.filename)
        assert archive.read(found) == bytes(range(128, 256)) * 1000
    assert (found.date_time, found.external_attr, found.compress_type) == (
        native.date_time,
        native.external_attr,
        native.compress_type,
    )


def test_a_file_that_becomes_executable_is_so_in_the_wheel(bases: Bases, tmp_path: Path) -> None:
    files = BACKENDS["hatchling"]
    tree, wheel = bases.of(files)
    folder = laid(tmp_path / "t", files)
    (folder / "src/demo_pkg/cli.py").chmod(0o755)
    made = overlay(Inputs(wheel, BASE_SHA, tree, tar_of(folder)), tmp_path)
    with zipfile.ZipFile(made.wheel) as archive:
        modes = {name: archive.getinfo(name).external_attr >> 16 & 0o111 for name in archive.namelist()}
    assert modes["demo_pkg/cli.py"] == 0o111 and modes["demo_pkg/__init__.py"] == 0


# Laws.


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_the_overlay_of_a_wheel_onto_its_own_tree_is_that_wheel(bases: Bases, backend: str, tmp_path: Path) -> None:
    tree, wheel = bases.of(BACKENDS[backend])
    made = overlay(Inputs(wheel, BASE_SHA, tree, tree), tmp_path)
    with zipfile.ZipFile(wheel) as theirs, zipfile.ZipFile(made.wheel) as ours:
        assert ours.testzip() is None
        for one, other in zip(theirs.infolist(), ours.infolist(), strict=True):
            assert (one.filename, one.date_time, one.external_attr, one.compress_size, one.CRC) == (
                (other.filename, other.date_time, other.external_attr, other.compress_size, other.CRC)
            )
    assert (made.changed, made.added, made.removed) == (0, 0, 0)


MODULES = ["src/demo_pkg/cli.py", "src/demo_pkg/sub/deep.py", "src/demo_pkg/sub/deeper/most.py", "tests/test_demo.py"]
NEW = ["src/demo_pkg/new.py", "src/demo_pkg/a.py", "src/demo_pkg/sub/z_9.py", "src/demo_pkg/sub/deeper/é.py"]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)
EDITS = st.dictionaries(st.sampled_from([*MODULES, *NEW]), st.one_of(st.none(), TEXTS), max_size=6)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, backend=st.sampled_from(sorted(BACKENDS)))
def test_any_change_of_python_files_gives_what_a_build_gives(
    bases: Bases, edits: dict[str, str | None], backend: str, tmp_path: Path
) -> None:
    files = BACKENDS[backend]
    same_as_built(bases, files, with_files(files, edits), tmp_path / str(next(_numbers)))


ODD = [
    "3",
    "true",
    '""',
    '"x"',
    '"\\n"',
    "[]",
    "[3]",
    '["x y"]',
    "{}",
    "{x = 3}",
    '{file = "x"}',
    "[[[]]]",
    "1979-05-27",
]
KEYS = [
    *("name", "version", "description", "readme", "requires-python", "license", "license-files", "authors", "urls"),
    *("keywords", "classifiers", "dependencies", "optional-dependencies", "dynamic", "scripts", "entry-points"),
]
PLACES = [f"[project]\n{key}" for key in KEYS] + [
    *("project", "tool", "build-system", "[build-system]\nbuild-backend", "[build-system]\nbackend-path"),
    *("[tool]\nsetuptools", "[tool]\nhatch", "[tool.setuptools]\npackages", "[tool.setuptools.packages]\nfind"),
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(PLACES),
    values=st.tuples(st.sampled_from(ODD), st.sampled_from(ODD)),
    paths=st.sets(st.sampled_from([*NEW, "setup.py", "LICENSE.txt", "src/demo_pkg/x.y", "x", "a/b.py"]), max_size=3),
)
def test_whatever_pyproject_says_there_is_a_wheel_or_a_reason(
    bases: Bases, place: str, values: tuple[str, str], paths: set[str], tmp_path: Path
) -> None:
    """Both commits are of people who are not trusted; nothing else may be raised."""
    _, wheel = bases.of(BACKENDS["hatchling"])
    folder = tmp_path / str(next(_numbers))
    folder.mkdir()
    trees = []
    for name, value, more in (("old", values[0], set()), ("new", values[1], paths)):
        texts = {**FILES, "pyproject.toml": f"{place} = {value}\n", **dict.fromkeys(more, "x = 1\n")}
        trees.append(folder / name)
        write_tar(trees[-1], texts)
    try:
        made = overlay(Inputs(wheel, BASE_SHA, *trees), folder)
    except CannotOverlay as why:
        assert str(why)
    else:
        wheels.check(made.wheel)
