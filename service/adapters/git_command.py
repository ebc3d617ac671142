"""Runs git such that neither the user's settings nor a repository's can change what it does, and nothing can ask."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from git import Git
from git.exc import GitCommandNotFound

from service.adapters.repository_address import shown
from service.application.ports import HistoryFailed

#: After this long a clone or fetch is given up; https and ssh notice a silent peer much earlier.
NETWORK_LIMIT_S = 2 * 3600

#: In a file and not by `-c`: the upload-pack that git starts in a local source repository reads only the file, and
#: refuses a repository that belongs to another user unless safe.directory allows it. Unreachable objects are never
#: pruned, since a bisection may still need a commit that a branch has left.
_CONFIG = """\
[safe]
\tdirectory = *
[core]
\thooksPath = /dev/null
[credential]
\thelper =
[init]
\ttemplateDir =
[submodule]
\trecurse = false
[transfer]
\tfsckObjects = false
[fetch]
\twriteCommitGraph = true
[gc]
\tautoDetach = false
\tcruftPacks = true
\tpruneExpire = never
[http]
\tlowSpeedLimit = 1000
\tlowSpeedTime = 60
"""

#: What `git rev-parse --local-env-vars` names: set where firstbad is started from a hook, they point git elsewhere.
_INHERITED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
_UNSET = tuple(part for name in _INHERITED for part in ("-u", name))


class MirrorFailed(HistoryFailed):
    """Our side failed, not the user's repository: disk full, git missing or killed, a broken mirror."""


@dataclass(frozen=True)
class Output:
    status: int
    out: bytes
    errors: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace").strip()


@dataclass(frozen=True)
class Reach:
    """The way to a repository, as git_reach.py finds it. `url`: for git. `config`, `environment`: for this one command.
    `ssh`: options for OpenSSH, quoted."""

    url: str
    protocol: str
    config: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    ssh: str = ""


class GitCommand:
    """`ssh`: the command that reaches ssh servers, to which options that forbid questions are added."""

    def __init__(self, folder: Path, protocols: Sequence[str], ssh: str = "ssh") -> None:
        self._git = Git(str(folder))
        config = folder / "gitconfig"
        if not config.exists() or config.read_text() != _CONFIG:
            fresh = folder / f"gitconfig.{id(self)}"
            fresh.write_text(_CONFIG)
            fresh.replace(config)
        self._environment = {
            "GIT_ALLOW_PROTOCOL": ":".join(protocols),
            "GIT_ASKPASS": "",
            "GIT_CONFIG_COUNT": "0",
            "GIT_CONFIG_GLOBAL": str(config),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_SSH_COMMAND": f"{ssh} -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=30",
            "GIT_TERMINAL_PROMPT": "0",
            "SSH_ASKPASS": "",
        }

    def __call__(
        self,
        *arguments: str,
        mirror: Path | None = None,
        stdin: bytes = b"",
        limit_s: float | None = None,
        held: Sequence[int] = (),
        into: BinaryIO | None = None,
        reach: Reach | None = None,
    ) -> Output:
        """`held`: open locks that git holds on to as well, should this process die before it. `into`: takes what git
        prints, piece by piece, instead of `out`. `reach`: the way to the repository that this command goes to.

        Errors: MirrorFailed.
        """
        where = [] if mirror is None else [f"--git-dir={mirror}"]
        with tempfile.TemporaryFile() if stdin else nullcontext() as given:
            if given is not None:
                given.write(stdin)
                given.seek(0)
            try:
                status, out, errors = self._git.execute(
                    ["env", *_UNSET, "git", *where, *arguments],
                    istream=given,
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    kill_after_timeout=limit_s,
                    output_stream=into,
                    env=self._environment if reach is None else self._reaching(reach),
                    pass_fds=tuple(held),
                )
            except GitCommandNotFound as error:
                raise MirrorFailed("git or env is not installed where the service runs") from error
        output = Output(status, out if into is None else b"", errors)
        if status in (126, 127) or (status < 0 and "Timeout: the command" not in errors):
            raise MirrorFailed(f"git {arguments[0]} ended with status {status}: {shown(errors)[-500:]}")
        return output

    def _reaching(self, reach: Reach) -> dict[str, str]:
        """What is for one command does not stand in its arguments, which all of the machine may read."""
        config = {"GIT_CONFIG_COUNT": str(len(reach.config))}
        for place, (key, value) in enumerate(reach.config.items()):
            config |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
        ssh = f"{self._environment['GIT_SSH_COMMAND']} {reach.ssh}".strip()
        only = {"GIT_ALLOW_PROTOCOL": reach.protocol, "GIT_SSH_COMMAND": ssh}
        return {**self._environment, **config, **only, **reach.environment}
