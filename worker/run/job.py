"""The job folder: what a sandbox gets (`in`, read-only), what it writes (`out`), and where it works (`work`)."""

from __future__ import annotations

import compileall
import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from worker import contract
from worker.errors import NodeFault, fault_of
from worker.run.processors import Pinned
from worker.run.secrets import forms

INSIDE = Path(__file__).with_name("inside")
FOLDERS = ("out/wheels", "work/tree", "work/home", "work/tmp")
OUTCOME_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,150}")


@dataclass(frozen=True)
class Job:
    root: Path

    @property
    def inputs(self) -> Path:
        return self.root / "in"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def container(self) -> Path:
        """A file that is there when a container was made for this job: that may outlive the worker."""
        return self.root / "container"


@dataclass(frozen=True)
class Errand:
    """What a sandbox shall do in a job: what it reads inside, and what only the sandbox itself must know."""

    order: dict[str, Any]
    timeout_s: float
    image: str | None = None
    #: "none", "bridge", or the name of a network that the container engine has.
    network: str = "none"
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    cpus: float | None = None
    #: The CPUs that it is bound to.
    pinned: Pinned | None = None
    pids: int = contract.PIDS
    #: Those that are leased for this run.
    gpus: tuple[contract.Gpu, ...] = ()
    #: Value by variable: never to be written where it stays, nor to be shown.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: How the node's folder of models is seen.
    model_cache: Literal["none", "read-only", "shared"] = "none"
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    #: Of the node, to be seen under the same paths where there is a network; never what an order names.
    files: tuple[Path, ...] = ()
    #: A folder that jobs of the same kind share, to be seen inside as `cache`.
    cache: Path | None = None
    #: A folder to be seen inside as `env`. Only the job that `prepares` it can write there.
    environment: Path | None = None
    prepares: bool = False

    @property
    def online(self) -> bool:
        return self.network != "none"


class InsidePhase(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str = Field(max_length=20)
    at_s: float = Field(ge=0, le=1e9)
    seconds: float | None = Field(ge=0, le=1e9)


Distribution = Annotated[str, Field(max_length=200, pattern=r"^[a-z0-9.+!-]+$")]
Version = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9._+!-]+$")]


class InsideReplaced(BaseModel):
    """`path`: the variable that leads to another package, or empty."""

    model_config = ConfigDict(frozen=True)
    was: str = Field(max_length=300)
    now: str = Field(max_length=2000)
    path: bool


#: What our own code inside tells as a fact. What else stands there is no fact: an image's Python can write anything.
INSIDE_FACTS = frozenset({"port", "server_ended", "cpus_allowed"})


def _known(facts: Any) -> Any:
    return {name: facts[name] for name in INSIDE_FACTS & facts.keys()} if isinstance(facts, dict) else facts


class InsideOutcome(BaseModel):
    """outcome.json, as far as it is believed: it was written where the reproduction could write too."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    exit_status: int | None = Field(ge=0, le=255)
    signal: int | None = Field(ge=1, le=64)
    timed_out: bool
    fault: dict[str, Annotated[str, Field(max_length=2000)]] | None
    ended_in: str = Field(max_length=20)
    ready: bool | None
    phases: tuple[InsidePhase, ...] = Field(max_length=20)
    #: Of the epoch, in seconds.
    began: float = Field(ge=0, le=1e11)
    bytes: int = Field(ge=0, le=2**60)
    failure_seen: str | None = Field(max_length=70_000)
    facts: Annotated[dict[str, Annotated[str, Field(max_length=500)]], BeforeValidator(_known)]
    python: str = Field(max_length=50)
    installed: dict[Distribution, Version] = Field(max_length=2000)
    told: str | None = Field(default=None, max_length=2000)
    replaced: InsideReplaced | None = None


def install_inside(work_dir: Path) -> Path:
    """A compiled copy of `inside` that every user can read, to be mounted into all sandboxes of this worker.

    Each content has a folder of its own, which stays as it is: runs that go on without their worker still import it.
    """
    files = sorted(INSIDE.glob("*.py"))
    content = hashlib.sha256(sys.version.encode() + b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    place = work_dir / "inside" / content
    if not (place / "inside").exists():
        fresh = place.with_name(f"{content}.new")
        delete(fresh)
        shutil.copytree(INSIDE, fresh / "inside", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(fresh / "inside", quiet=2)
        for path in [fresh.parent, fresh, *fresh.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        delete(place)
        fresh.rename(place)
    return place


def forget_other_insides(work_dir: Path) -> None:
    """Removes the copies of other versions, when nothing that runs imports them any more."""
    current = install_inside(work_dir)
    for folder in current.parent.iterdir():
        if folder.is_dir() and folder != current:
            delete(folder)


def identity(work_dir: Path) -> str:
    """The name of the worker of this folder, by which it finds what it left: no other worker has it."""
    path = work_dir / "id"
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists() or not path.read_text(encoding="ascii"):
            path.write_text(uuid.uuid4().hex, encoding="ascii")
        return path.read_text(encoding="ascii")
    except OSError as error:
        raise fault_of(error, f"naming the worker in {path}") from error


def command(place: str) -> list[str]:
    """The arguments of Python that start what runs inside; both folders as seen there."""
    start = f"import sys; sys.path.insert(0, {place + '/inside'!r}); from inside.phases import main; main({place!r})"
    return ["-I", "-S", "-c", start]


def create(jobs: Path, name: str, uid: int | None) -> Job:
    """A fresh folder. `uid`: user and group of who works inside, when that is not the worker's user.

    No other user of the node can look into it: orders hold what the node passes into sandboxes. Errors: NodeFault.
    """
    if not _NAME.fullmatch(name):
        raise NodeFault("order", f"the id {name!r} cannot name a folder", "Use letters, digits, '.', '_', ':' and '-'.")
    job = Job(jobs / name)
    try:
        jobs.mkdir(parents=True, exist_ok=True)
        delete(job.root)
        job.root.mkdir(mode=0o711)
        job.inputs.mkdir(mode=0o700)
        if uid is not None:
            os.chown(job.inputs, -1, uid)
            job.inputs.chmod(0o750)
        for folder in (job.out, job.work, *(job.root / name for name in FOLDERS)):
            folder.mkdir(mode=0o700)
            if uid is not None:
                os.chown(folder, uid, uid)
    except OSError as error:
        raise fault_of(error, f"making the folder {job.root}") from error
    return job


def fill(job: Job, order: dict[str, Any]) -> None:
    """Writes what inside reads. Errors: NodeFault."""
    try:
        if order.get("script") is not None:
            (job.inputs / "script.sh").write_text(order["script"], encoding="utf-8")
        (job.inputs / "order.json").write_text(json.dumps(order, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise fault_of(error, f"writing {job.inputs}") from error


def hand_over(job: Job, secrets: Mapping[str, str], uid: int | None) -> None:
    """Writes what inside reads and removes before it starts anything: it lies where inside may remove it.

    Errors: NodeFault.
    """
    if not secrets:
        return
    told = {"values": dict(secrets), "hidden": [(form.decode("latin1"), name) for form, name in forms(secrets)]}
    try:
        handle = os.open(job.work / "secrets.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if uid is not None:
                os.fchown(handle, uid, uid)
            json.dump(told, file)
    except OSError as error:
        raise fault_of(error, "handing over secrets") from error


def open_output(job: Job, name: str) -> BinaryIO | None:
    """A file that the sandbox wrote: a plain file or None, never what a link or a pipe left there leads to."""
    try:
        folder = os.open(job.out, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EACCES):
            return None
        raise fault_of(error, f"reading {name}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def read_outcome(job: Job) -> InsideOutcome | None:
    """What was written inside; None when it did not come to that, or wrote what cannot be believed."""
    file = open_output(job, "outcome.json")
    if file is None:
        return None
    with file:
        text = file.read(OUTCOME_BYTES + 1)
    try:
        return InsideOutcome.model_validate_json(text) if len(text) <= OUTCOME_BYTES else None
    except ValidationError:
        return None


def said(job: Job) -> str:
    """The last of what the sandbox itself had to say, and a Python that failed inside it."""
    try:
        with (job.root / "sandbox.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 1000))
            return log.read().decode("utf-8", "replace").strip() or "it said nothing"
    except FileNotFoundError:
        return "it said nothing"


def delete(folder: Path) -> None:
    """Removes the folder whatever was made in it: unreadable folders, deep trees, names that are no text."""
    if not folder.exists() and not folder.is_symlink():
        return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


def leftovers(jobs: Path) -> list[Path]:
    """The folders of jobs that a worker left when it was killed, also of those that go on."""
    return list(jobs.iterdir()) if jobs.is_dir() else []
