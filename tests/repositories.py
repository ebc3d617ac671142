"""Real git repositories for tests, written by one `git fast-import` stream each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: No one's own settings, and none of what git hands to hooks.
QUIET = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
FIRST_AT = 1_700_000_000


@dataclass(frozen=True)
class NewCommit:
    """`parents`: indexes of earlier commits; the one before when not given. `at`: seconds since 1970."""

    subject: str = "change"
    parents: Sequence[int] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    author: str = "Ada"
    at: int | None = None


def build_repository(
    path: Path,
    commits: Sequence[NewCommit],
    *,
    branches: Mapping[str, int] | None = None,
    tags: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """The commits' SHAs in the order given. Branches and tags point to commits by index; `main` is the last one."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    marks = path / ".git" / "marks"
    stream = b"".join(_commit(index, commit) for index, commit in enumerate(commits))
    for name, index in ({"main": len(commits) - 1} | dict(branches or {})).items():
        stream += f"reset refs/heads/{name}\nfrom :{index + 1}\n\n".encode()
    for name, index in (tags or {}).items():
        stream += f"reset refs/tags/{name}\nfrom :{index + 1}\n\n".encode()
    git(path, "fast-import", "--quiet", "--force", f"--export-marks={marks}", stdin=stream)
    git(path, "update-ref", "-d", "refs/building")
    found = dict(line.split() for line in marks.read_text().splitlines())
    return tuple(found[f":{index + 1}"] for index in range(len(commits)))


def git(path: Path, *arguments: str, stdin: bytes = b"") -> str:
    command = ["git", "-C", str(path), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, env=QUIET)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "replace").strip()


def _commit(index: int, commit: NewCommit) -> bytes:
    at = FIRST_AT + 60 * index if commit.at is None else commit.at
    who = f"{commit.author} <{commit.author.lower()}@example.org> {at} +0000"
    parents = ([index - 1] if index else []) if commit.parents is None else commit.parents
    lines = [
        f"commit refs/building\nmark :{index + 1}\nauthor {who}\ncommitter {who}\n".encode(),
        _data(commit.subject),
    ]
    lines += [f"{'merge' if number else 'from'} :{parent + 1}\n".encode() for number, parent in enumerate(parents)]
    for name, text in commit.files.items():
        lines += [f"M 100644 inline {name}\n".encode(), _data(text)]
    reset = b"reset refs/building\n\n" if not parents else b""
    return reset + b"".join(lines) + b"\n"


def _data(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return b"data %d\n%s\n" % (len(raw), raw)
