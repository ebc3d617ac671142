"""For every commit of the example, the wheel that is put together is the wheel that is built."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.generate import Commit, Example, Options, Stretch, generate
from worker.build.overlay import Inputs, overlay

#: Members that may differ because they say something of the build itself, not of the commit. None does.
BUILD_METADATA: frozenset[str] = frozenset()

LONG = bool(os.environ.get("FIRSTBAD_LONG"))
#: What no wheel holds.
APART = ("tests/", "docs/", "benchmarks/", ".ci/", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md")
BUILD = "import sys; sys.path.insert(0, 'build_backend'); import tinyserve_build as b; b.build_wheel(sys.argv[1])"


@dataclass(frozen=True)
class Built:
    tree: Path
    wheel: Path


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The real case's 249 commits, with a stretch that changes what the wheel depends on."""
    options = Options(does_not_install=(Stretch(60, 64),))
    return generate(tmp_path_factory.mktemp("example") / "tinyserve", options)


def built(example: Example, commit: Commit, folder: Path) -> Built:
    """By the commit's own backend, in a fresh folder."""
    tree, checkout, out = folder / f"{commit.sha}.tar", folder / commit.sha, folder / f"out-{commit.number}"
    subprocess.run(["git", "-C", example.path, "archive", "-o", tree, commit.sha], check=True)
    with tarfile.open(tree) as archive:
        archive.extractall(checkout, filter="data")
    out.mkdir()
    subprocess.run([sys.executable, "-S", "-B", "-c", BUILD, out], cwd=checkout, check=True)
    return Built(tree, next(out.iterdir()))


def members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def chosen(example: Example) -> list[Commit]:
    """All of them when FIRSTBAD_LONG is set, else those that change more than code that was there, and every tenth."""
    listed = ["git", "-C", str(example.path), "ls-tree", "-r", "--name-only", example.good]
    known = set(subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines())
    kept = []
    for commit in example.commits:
        plain = all(path in known and path.startswith(("tinyserve/", *APART)) for path in commit.paths)
        known |= set(commit.paths)
        if LONG or not plain or commit.number % 10 == 0:
            kept.append(commit)
    return kept


def test_every_overlay_holds_what_a_full_build_holds(example: Example, tmp_path: Path) -> None:
    first = {}
    for commit in example.commits:
        first.setdefault(commit.native_tree, commit)
    wanted = {commit.sha: commit for commit in [*first.values(), *chosen(example)]}
    with ThreadPoolExecutor(2) as pool:
        jobs = {sha: pool.submit(built, example, commit, tmp_path) for sha, commit in wanted.items()}
        full = {sha: job.result() for sha, job in jobs.items()}
    for sha, commit in wanted.items():
        base = first[commit.native_tree].sha
        into = tmp_path / f"overlay-{commit.number}"
        into.mkdir()
        made = overlay(Inputs(full[base].wheel, base, full[base].tree, full[sha].tree), into)
        assert made.wheel.name == full[sha].wheel.name
        ours, theirs = members(made.wheel), members(full[sha].wheel)
        assert list(ours) == list(theirs), commit
        differing = {name for name in theirs if ours[name] != theirs[name]}
        assert differing <= BUILD_METADATA, commit
