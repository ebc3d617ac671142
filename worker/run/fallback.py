"""What a process sandbox is without bubblewrap: `unshare`, or no more than processes of its own (macOS)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from worker.run.job import Errand, Job, command
from worker.run.view import interpreter


@dataclass(frozen=True)
class Unshare:
    """Namespaces of its own, but the node's file system. `setpriv`: keeps set-id programs from giving privileges."""

    binary: str
    setpriv: str | None
    net: bool = True
    own_view = False

    @property
    def isolated(self) -> tuple[str, ...]:
        return ("pid", "ipc", "uts")

    def command(self, job: Job, errand: Errand, models: Path | None) -> list[str]:
        flags = ["--pid", "--fork", "--kill-child", "--ipc", "--uts", "--mount-proc"]
        flags += ["--net"] if self.net and not errand.online else []
        flags += ["--user", "--map-root-user"] if os.geteuid() != 0 else []
        return [self.binary, *flags, "--", *bare(job, self.setpriv)]


@dataclass(frozen=True)
class Plain:
    setpriv: str | None
    net = False
    own_view = False

    @property
    def isolated(self) -> tuple[str, ...]:
        return ()

    def command(self, job: Job, errand: Errand, models: Path | None) -> list[str]:
        return bare(job, self.setpriv)


def bare(job: Job, setpriv: str | None) -> list[str]:
    return [*([setpriv, "--no-new-privs"] if setpriv else []), str(interpreter()), *command(str(job.root))]
