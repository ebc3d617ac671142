"""Runs git in the user's repository, to read it, and in ours."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: What a hook, or another git, may have set: it points git elsewhere than to where we stand.
INHERITED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
UNSET = tuple(part for name in INHERITED for part in ("-u", name))
#: Nobody is asked, no hook of the user's runs for what we do, and reading writes nothing.
_QUIET = ("GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", "-c", "submodule.recurse=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false",
)  # fmt: skip


class NoGit(Exception):
    """git is not there at all."""


@dataclass(frozen=True)
class Output:
    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape").removesuffix("\n")

    @property
    def last_error(self) -> str:
        """The line that tells most of what went wrong."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        told = [line for line in lines if line.startswith(("fatal:", "error:"))]
        return (told or lines or [f"exit status {self.status}"])[-1][:300]


class GitFailed(Exception):
    """Of a command that was expected to work."""


@dataclass(frozen=True)
class Git:
    """`where`: options that say which repository it is; `cwd`: where git starts. `inherit`: as the user's own git
    would, it minds where a variable says that the repository is."""

    cwd: Path
    where: tuple[str, ...] = ()
    inherit: bool = False
    env: tuple[str, ...] = field(default=())

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Output:
        unset = () if self.inherit else UNSET
        command = ["env", *unset, *_QUIET, *self.env, "git", *_OPTIONS, *self.where, *arguments]
        # In a session of its own: Ctrl-C is for us, and a commit is checked out to its end.
        done = subprocess.run(
            command, cwd=self.cwd, input=stdin, capture_output=True, check=False, start_new_session=True
        )
        if done.returncode == 127:
            raise NoGit
        return Output(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def must(self, *arguments: str, stdin: bytes = b"") -> Output:
        """Errors: GitFailed."""
        output = self(*arguments, stdin=stdin)
        if output.status:
            words = [argument for argument in arguments if not argument.startswith("-")]
            raise GitFailed(f"git {words[0] if words else ''}: {output.last_error}")
        return output


def paths(out: bytes) -> Sequence[str]:
    """Of a list that ends each with NUL."""
    return [part.decode("utf-8", "surrogateescape") for part in out.split(b"\0") if part]
