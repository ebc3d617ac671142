"""A probe in a container: the work tree at the same place, as the same user, and removed whatever happens."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.domain.errors import BadRequest
from service.local.asked import Container
from service.local.processes import NotStarted

ENGINE = "docker"
#: By this label the next run finds what a killed one has left.
LABEL = "firstbad.run"


@dataclass(frozen=True)
class Engine:
    """`user`: who writes in the container; empty where the engine itself runs as the user, who is its root."""

    user: str

    @classmethod
    def found(cls) -> Engine:
        """Errors: BadRequest."""
        told = _engine("info", "--format", "{{json .SecurityOptions}}")
        if told.returncode:
            said = (told.stderr.strip().splitlines() or ["it is not installed"])[-1]
            raise BadRequest(
                f"--container needs docker: {said}", field="container", advice="start docker, or install it"
            )
        return cls("" if "rootless" in told.stdout else f"{os.getuid()}:{os.getgid()}")

    def check(self, image: str) -> None:
        """Errors: BadRequest."""
        if _engine("image", "inspect", image).returncode:
            raise BadRequest(
                f"--container {image}: there is no such image here", value=image, field="container",
                advice=f"fetch it first: docker pull {image}",
            )  # fmt: skip

    def create(self, container: Container, place: Place, name: str, env: Sequence[tuple[str, str]]) -> None:
        """Errors: NotStarted."""
        mounts = [_mount(path, writable=True) for path in place.writable]
        mounts += [_mount(path, writable=False) for path in place.readable]
        user = ["--user", self.user] if self.user else []
        # The image's own entry point would take the command for its arguments.
        created = _engine(
            "create", "--name", name, "--label", f"{LABEL}={place.run}", "--init", "--pull", "never",
            "--network", container.network, *user, "--workdir", str(place.cwd), "--entrypoint", "",
            *(part for mount in mounts for part in ("--mount", mount)),
            *(part for key, value in env for part in ("--env", f"{key}={value}")),
            container.image, *place.command,
        )  # fmt: skip
        if created.returncode:
            raise NotStarted(f"docker: {created.stderr.strip()[-300:]}")

    def ended(self, name: str) -> Ended:
        """How it ended, by what the engine says of it, and not by the status of its command. It is removed."""
        told = _engine("inspect", "--format", "{{json .State}}", name)
        remove([name])
        if told.returncode:
            raise NotStarted(f"docker has lost the container: {told.stderr.strip()[-300:]}")
        state: dict[str, Any] = json.loads(told.stdout)
        if state.get("Error") and state.get("ExitCode") not in (126, 127):
            raise NotStarted(f"docker: {state['Error'][:300]}")
        return Ended(int(state["ExitCode"]), bool(state.get("OOMKilled")))


@dataclass(frozen=True)
class Place:
    """`run`: whose container it is."""

    run: str
    cwd: Path
    command: Sequence[str]
    writable: Sequence[Path]
    readable: Sequence[Path]


@dataclass(frozen=True)
class Ended:
    exit_status: int
    out_of_memory: bool


def removal(names: Sequence[str]) -> list[str]:
    return [ENGINE, "rm", "--force", "--volumes", *names]


def start(name: str) -> list[str]:
    return [ENGINE, "start", "--attach", name]


def remove(names: Sequence[str]) -> None:
    _engine(*removal(names)[1:])


def remove_all_of(run: str) -> None:
    """What a killed run has left."""
    listed = _engine("ps", "--all", "--quiet", "--filter", f"label={LABEL}={run}").stdout.split()
    if listed:
        remove(listed)


def _mount(path: Path, *, writable: bool) -> str:
    parts = ["type=bind", f"source={path}", f"target={path}", *([] if writable else ["readonly"])]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(parts)
    return line.getvalue()


def _engine(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [ENGINE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        return subprocess.CompletedProcess([], 127, "", "docker is not installed")
