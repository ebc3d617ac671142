"""Small projects for real build backends: trees as dictionaries, their tars, and the wheels that the backends make."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from installer.sources import WheelFile
from uv import find_uv_bin

from worker.build import wheels
from worker.build.overlay import Inputs, Made, overlay

BASE_SHA = "0123456789abcdef0123456789abcdef01234567"

Files = Mapping[str, str]

HATCH = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "demo-pkg"
version = "1.0"
description = "A demo"
readme = "README.md"
requires-python = ">=3.9"
keywords = ["one"]
classifiers = ["Programming Language :: Python :: 3"]
authors = [{name = "Ann", email = "ann@example.org"}]
dependencies = ["idna>=3"]

[project.urls]
Home = "https://example.org"

[project.scripts]
demo = "demo_pkg.cli:main"

[tool.hatch.build.targets.wheel]
packages = ["src/demo_pkg"]

[tool.ruff]
line-length = 100
"""
SETUPTOOLS = (
    HATCH.replace('requires = ["hatchling"]', 'requires = ["setuptools"]')
    .replace('"hatchling.build"', '"setuptools.build_meta"')
    .replace(
        '[tool.hatch.build.targets.wheel]\npackages = ["src/demo_pkg"]',
        '[tool.setuptools.packages.find]\nwhere = ["src"]\n\n[tool.setuptools.package-data]\ndemo_pkg = ["*.json"]',
    )
)
FILES = {
    "README.md": "# Demo\n\nIt does little.\n",
    "LICENSE": "Free for all.\n",
    "src/demo_pkg/__init__.py": "",
    "src/demo_pkg/cli.py": "def main():\n    print('demo')\n",
    "src/demo_pkg/data.json": "{}\n",
    "src/demo_pkg/py.typed": "",
    "src/demo_pkg/sub/__init__.py": "",
    "src/demo_pkg/sub/deep.py": "DEEP = 1\n",
    "src/demo_pkg/sub/deeper/__init__.py": "",
    "src/demo_pkg/sub/deeper/most.py": "MOST = 2\n",
    "tests/test_demo.py": "def test():\n    pass\n",
    "docs/index.md": "# Docs\n",
}
BACKENDS = {"hatchling": {"pyproject.toml": HATCH, **FILES}, "setuptools": {"pyproject.toml": SETUPTOOLS, **FILES}}


def laid(folder: Path, files: Files) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def write_tar(path: Path, files: Files) -> None:
    """A tree as a tar, without a repository."""
    with tarfile.open(path, "w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def tar_of(folder: Path) -> Path:
    """What `git archive` writes of a tree with these files."""
    archive = folder.with_name(f"{folder.name}.tar")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.excludesFile="]
    for arguments in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "x"], ["archive", "-o", archive, "HEAD"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True, capture_output=True)
    return archive


def built(folder: Path) -> Path:
    """The wheel that the project's own backend makes of the folder."""
    out = folder.with_name(f"{folder.name}-wheel")
    command = [find_uv_bin(), "build", "--quiet", "--wheel", "--no-build-isolation", "--offline", "--python"]
    subprocess.run([*command, sys.executable, "--out-dir", str(out), str(folder)], check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Bases:
    """Wheels of trees, each built once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[frozenset[tuple[str, str]], tuple[Path, Path]] = {}

    def of(self, files: Files) -> tuple[Path, Path]:
        """The tar and the wheel."""
        key = frozenset(files.items())
        if key not in self._made:
            number = len(self._made)
            self._made[key] = (
                tar_of(laid(self.folder / f"tar{number}" / "t", files)),
                built(laid(self.folder / f"built{number}" / "t", files)),
            )
        return self._made[key]

    def overlay(self, before: Files, after: Files, into: Path, sha: str = BASE_SHA) -> Made:
        tree, wheel = self.of(before)
        into.mkdir(parents=True, exist_ok=True)
        return overlay(Inputs(wheel, sha, tree, tar_of(laid(into / "t", after))), into)


def with_files(files: Files, changes: dict[str, str | None]) -> dict[str, str]:
    """None removes a file."""
    merged = {**files, **changes}
    return {path: text for path, text in merged.items() if text is not None}


def same_as_built(bases: Bases, before: Files, after: Files, into: Path) -> None:
    made = bases.overlay(before, after, into)
    _, built = bases.of(after)
    assert made.wheel.name == built.name
    ours, theirs = members(made.wheel), members(built)
    assert list(ours) == list(theirs)
    assert {name: text for name, text in ours.items() if text != theirs[name]} == {}
    wheels.check(made.wheel)
    with WheelFile.open(made.wheel) as source:
        source.validate_record()
