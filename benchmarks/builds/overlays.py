"""The same wheel in two ways, in turn: put together from another commit's, and built in full by `uv build`."""

from __future__ import annotations

import statistics
import subprocess
import tarfile
import time
from pathlib import Path

from uv import find_uv_bin

from examples.generate import Commit, Example
from worker.build.overlay import Inputs, overlay


def run(example: Example, folder: Path, pairs: int) -> None:
    base = example.commits[0]
    same = [commit for commit in example.commits[1:] if commit.native_tree == base.native_tree and commit.paths]
    folder.mkdir()
    base_tree = _archived(example, base, folder)
    base_wheel = _built(base_tree, folder / "base")
    ours, theirs = [], []
    for number in range(pairs):
        commit = same[number * len(same) // pairs]
        tree = _archived(example, commit, folder)
        began = time.perf_counter()
        _built(tree, folder / f"full-{number}")
        theirs.append(time.perf_counter() - began)
        into = folder / f"overlay-{number}"
        into.mkdir()
        began = time.perf_counter()
        overlay(Inputs(base_wheel, base.sha, base_tree, tree), into)
        ours.append(time.perf_counter() - began)
    ratio = statistics.median(mine / full for mine, full in zip(ours, theirs, strict=True))
    print(
        f"an overlay: {statistics.median(ours) * 1000:.0f} ms, a full build of the same commit: "
        f"{statistics.median(theirs) * 1000:.0f} ms, {ratio:.2f} of its time ({pairs} pairs)"
    )


def _archived(example: Example, commit: Commit, folder: Path) -> Path:
    tree = folder / f"{commit.sha}.tar"
    subprocess.run(["git", "-C", example.path, "archive", "-o", tree, commit.sha], check=True)
    return tree


def _built(tree: Path, folder: Path) -> Path:
    with tarfile.open(tree) as archive:
        archive.extractall(folder / "tree", filter="data")
    command = [find_uv_bin(), "build", "--wheel", "--offline", "--quiet", "--out-dir", folder / "out"]
    subprocess.run(command, cwd=folder / "tree", check=True)
    return next((folder / "out").glob("*.whl"))
