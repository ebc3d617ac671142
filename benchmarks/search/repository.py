"""Real git repositories built from lists of parents, and real `git bisect run` on them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.search import Evidence, Range

QUIET = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


@dataclass(frozen=True)
class Bisected:
    """What `git bisect run` said: one answer or several suspects, and the commits it tried with their verdicts."""

    answers: frozenset[str]
    certain: bool
    evidence: Evidence


@dataclass(frozen=True)
class Repository:
    path: Path
    shas: tuple[str, ...]

    @classmethod
    def build(cls, path: Path, parents: Sequence[Sequence[int]]) -> Repository:
        """One fast-import stream: each commit one second younger than the one before."""
        git(path.parent, "init", "-q", "-b", "main", str(path))
        stream = []
        for index, mine in enumerate(parents):
            stream.append(f"commit refs/heads/main\nmark :{index + 1}\ncommitter a <a@b> {1_000_000 + index} +0000\n")
            stream.append(f"data {len(str(index))}\n{index}\n")
            stream += [f"{'merge' if at else 'from'} :{parent + 1}\n" for at, parent in enumerate(mine)]
            stream.append(f"M 100644 inline number\ndata {len(str(index))}\n{index}\n")
        marks = path / ".git" / "marks"
        git(path, "fast-import", "--quiet", f"--export-marks={marks}", stdin="".join(stream))
        pairs = (line.split() for line in marks.read_text().splitlines())
        by_mark = {int(mark[1:]) - 1: sha for mark, sha in pairs}
        git(path, "checkout", "-q", "main")
        return cls(path, tuple(by_mark[index] for index in range(len(parents))))

    def range(self, goods: Sequence[str], bad: str, *options: str) -> Range:
        lines = git(self.path, "rev-list", "--topo-order", "--reverse", "--parents", *options, bad, "--not", *goods)
        rows = [line.split() for line in lines.splitlines()]
        return Range.of([row[0] for row in rows], {row[0]: row[1:] for row in rows})

    def bisect(self, goods: Sequence[str], bad: str, statuses: dict[str, int], *options: str) -> Bisected:
        verdicts = self.path.parent / f"{self.path.name}-verdicts"
        verdicts.mkdir(exist_ok=True)
        for sha, status in statuses.items():
            (verdicts / sha).write_text(str(status))
        log = verdicts / "log"
        log.write_text("")
        script = f'sha=$(cat .git/HEAD); echo $sha >>"{log}"; exit $(cat "{verdicts}/$sha")'
        said = git(self.path, "bisect", "start", *options, bad, *goods)
        if "is the first bad commit" not in said:
            said = git(self.path, "bisect", "run", "sh", "-c", script, check=False)
        git(self.path, "bisect", "reset")
        words = {0: "good", 1: "bad", 125: "skip"}
        tried = [(sha, words[statuses[sha]]) for sha in log.read_text().split()]
        return _read(said, Evidence.of(tried))


def _read(said: str, evidence: Evidence) -> Bisected:
    lines = said.splitlines()
    for at, line in enumerate(lines):
        if line.endswith("is the first bad commit"):
            return Bisected(frozenset({line.split()[0]}), True, evidence)
        if "The first bad commit could be any of" in line:
            shas = [line for line in lines[at + 1 :] if len(line) == 40 and not line.strip("0123456789abcdef")]
            return Bisected(frozenset(shas), False, evidence)
    raise AssertionError(said)


def git(where: Path, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
    done = subprocess.run(
        ["git", "-C", str(where), *arguments], input=stdin, capture_output=True, text=True, env=QUIET, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout
