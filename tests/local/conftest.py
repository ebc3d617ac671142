from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.local.terminal import Result, Terminal
from tests.repositories import NewCommit, build_repository, git

#: Commits in the usual history; the first bad one.
MANY, FIRST_BAD = 12, 7
#: Fails from the first bad commit on, saying why.
CHECK = f"""\
#!/bin/sh
number=$(cat number)
test "$number" -lt {FIRST_BAD} || {{ echo "ValueError: $number is too large"; exit 3; }}
"""


@dataclass(frozen=True)
class Checkout:
    path: Path
    shas: tuple[str, ...]
    terminal: Terminal

    def run(self, *arguments: str, folder: str = "") -> Result:
        return Terminal(self.path / folder, self.terminal.env).run("run", *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return Terminal(self.path, self.terminal.env).start("run", *arguments)

    def found(self, *arguments: str, folder: str = "") -> dict[str, Any]:
        """The document of a run that found an answer."""
        result = self.run("--json", *arguments, folder=folder)
        assert result.status == 0, result
        told: dict[str, Any] = json.loads(result.out)
        return told

    def script(self, text: str, name: str = "check.sh") -> str:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return f"./{name}"

    @property
    def home(self) -> Path:
        return Path(self.terminal.env["FIRSTBAD_HOME"])

    def runs(self) -> list[Path]:
        return sorted(path for path in self.home.glob("run/*/*") if path.is_dir())

    def left(self) -> list[Path]:
        """What should be gone after a run."""
        return [path for run in self.runs() for path in (run / "trees", run / "files") if path.exists()]


def answer(told: dict[str, Any]) -> list[str]:
    return [commit["sha"] for commit in told["answer"]["commits"]]


def tried(told: dict[str, Any]) -> list[str]:
    return [probe["sha"] for probe in told["probes"]]


def state(path: Path) -> str:
    """Of everything in a repository and its checkout. A git that borrows objects marks those as used by their time."""
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")):
        at = 0 if "objects" in each.parts else each.lstat().st_mtime_ns
        digest.update(f"{each.relative_to(path)}\0{each.lstat().st_mode}\0{at}\0".encode())
        digest.update(each.read_bytes() if each.is_file() else b"")
    return digest.hexdigest()


def processes_in(path: Path) -> list[str]:
    """Of all processes that stand there."""
    found = subprocess.run(["sh", "-c", "readlink /proc/[0-9]*/cwd"], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if line.startswith(str(path))]


def history(path: Path, commits: Sequence[NewCommit] | None = None) -> tuple[str, ...]:
    usual = [NewCommit(f"change {n}", files={"number": f"{n}\n", "docs/notes": "text\n"}) for n in range(MANY)]
    shas = build_repository(path, commits or usual)
    git(path, "checkout", "--quiet", "--force", "main")
    return shas


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, {"FIRSTBAD_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})


@pytest.fixture
def checkout(tmp_path: Path, terminal: Terminal) -> Checkout:
    path = tmp_path / "project"
    return Checkout(path, history(path), terminal)
