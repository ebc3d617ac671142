"""Synthetic repositories by `git fast-import`: a line, or a history in which every tenth commit is a merge."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Of a block of ten commits: nine in turn, of which one is beside the line, and the merge of the two.
BLOCK, BESIDE, LEAVES, MERGE = 10, 5, 3, 9
_WHO = "Ada <ada@example.org>"


@dataclass(frozen=True)
class Made:
    """`shas`: parents first. The first is the good end, the last the bad end."""

    path: Path
    shas: tuple[str, ...]


def line(path: Path, commits: int) -> Made:
    return _made(path, (_commit(number, [number - 1] if number else []) for number in range(commits)), commits)


def merged(path: Path, commits: int) -> Made:
    """In numbers: all commits after the first of a block descend from it, and none before it does."""
    assert commits % BLOCK == 0
    return _made(path, (_commit(number, _parents(number)) for number in range(commits)), commits)


def grow(made: Made) -> Made:
    """One more commit at its end."""
    git = ["git", "-C", str(made.path)]
    tree = f"{made.shas[-1]}^{{tree}}"
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    told = subprocess.run(
        [*git, *author, "commit-tree", tree, "-p", made.shas[-1], "-m", "one more"], check=True, capture_output=True
    )
    sha = told.stdout.decode().strip()
    subprocess.run([*git, "update-ref", "refs/heads/main", sha], check=True)
    return Made(made.path, (*made.shas, sha))


def _parents(number: int) -> list[int]:
    start, place = number - number % BLOCK, number % BLOCK
    if place == 0:
        return [number - 1] if number else []
    if place == BESIDE:
        return [start + LEAVES]
    if place == BESIDE + 1:
        return [number - 2]
    return [number - 1, start + BESIDE] if place == MERGE else [number - 1]


def _commit(number: int, parents: list[int]) -> bytes:
    told, text = f"change {number}", f"value = {number}\n"
    lines = ["commit refs/heads/main", f"mark :{number + 1}", f"committer {_WHO} {1_700_000_000 + number * 60} +0000"]
    lines += [f"data {len(told)}", told]
    lines += [f"{'merge' if place else 'from'} :{parent + 1}" for place, parent in enumerate(parents)]
    lines += [f"M 100644 inline src/part{number % 40}/file{number % 7}.py", f"data {len(text)}", text]
    return ("\n".join(lines) + "\n").encode()


def _made(path: Path, commits: Iterator[bytes], count: int) -> Made:
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    marks = path / "marks"
    command = ["git", "-C", str(path), "fast-import", "--quiet", f"--export-marks={marks}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    for commit in commits:
        process.stdin.write(commit)
    process.stdin.close()
    assert process.wait() == 0
    subprocess.run(["git", "-C", str(path), "commit-graph", "write", "--reachable"], check=True)
    found = dict(row.split() for row in marks.read_text().splitlines())
    marks.unlink()
    return Made(path, tuple(found[f":{number + 1}"] for number in range(count)))
