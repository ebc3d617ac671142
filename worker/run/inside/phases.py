# ruff: noqa: B905, UP031, PTH101, PTH105, PTH108, PTH110, PTH112, PTH118, PTH119, PTH120, PTH123, PTH208 (see __init__)
"""The order's phases, from unpacking to the script or the check, and the outcome."""

from __future__ import annotations

import os
import sys
import time

from .hidden import take
from .log import write
from .processes import Fault, Run, TimedOut, kill_all, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .processes import Status

LOOPBACK = b"lo"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
EIO, ENOSPC, EROFS, EDQUOT = 5, 28, 30, 122
DISK = (EIO, ENOSPC, EROFS, EDQUOT)
RESERVED = 16 * 1024
UNTAR = """
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    archive.extraction_filter = getattr(tarfile, "tar_filter", None)
    archive.extractall(sys.argv[2])
"""


class Phases:
    def __init__(self, root: str, run: Run, reserved: int) -> None:
        """`reserved`: the file that the outcome has space in."""
        self.root, self.run, self.order, self.reserved = root, run, run.order, reserved
        self.inputs, self.work = os.path.join(root, "in"), os.path.join(root, "work")
        self.tree = os.path.join(self.work, "tree")

    def perform(self) -> Status:
        """The exit status and signal of what the order ended in. Errors: Fault, TimedOut."""
        self.same_python()
        bash = tool("bash", self.run.env["PATH"])
        if bash is None:
            raise Fault("no-bash", "there is no bash in the sandbox", "Install bash: sh does not know pipefail.")
        shell = [bash, "-eo", "pipefail"]
        if os.path.exists(os.path.join(self.inputs, "tree.tar")):
            self.run.enter("unpack")
            self.unpack(os.path.join(self.inputs, "tree.tar"))
        if self.order.get("environment") is not None:
            from .install import prepare

            return prepare(self.run, self.root)
        if self.order.get("wheel"):
            from .install import install

            self.run.enter("install")
            status = install(self.run, self.root, os.path.join(self.inputs, self.order["wheel"]))
            reserve_for(self.reserved, self.run.installed)
            if status != (0, None):
                return status
            from .provenance import Package

            self.run.package = Package(self.run.env, self.work, self.order)
        return self.reproduce(shell)

    def same_python(self) -> None:
        """A bisection's builds and runs all have the Python with which it was begun. Errors: Fault."""
        wanted, found = self.order.get("python"), f"{sys.version_info[0]}.{sys.version_info[1]}"
        if wanted is not None and wanted != found:
            message = f"this node has Python {found}, the bisection was begun with {wanted}"
            raise Fault("other-python", message, "Give it to a node with that version, or name an image.")

    def reproduce(self, shell: list[str]) -> Status:
        if self.order.get("build") is not None:
            self.run.enter("build")
            self.use_compiler_cache()
            return self.run.call([*shell, "-c", self.order["build"]], self.tree)
        from .voice import MOST, Voice

        self.run.env.update(self.run.secrets)
        self.run.voice = Voice(MOST if self.order.get("metric") else 0)
        if self.order.get("script") is not None:
            from .warmup import warmed_up

            argv = [*shell, os.path.join(self.inputs, "script.sh")]
            return warmed_up(self.run, "script", lambda: self.run.call(argv, self.tree, self.run.voice))
        from .server import serve

        return serve(self.run, shell, self.tree)

    def use_compiler_cache(self) -> None:
        wanted, path = self.order.get("compiler_cache"), self.run.env["PATH"]
        has = {name: tool(name, path) is not None for name in ("ccache", "sccache")}
        if wanted is None or not any(has.values()):
            return
        from .compilers import cached

        found = cached(self.run.env, os.path.dirname(self.work), wanted["size"], has, wanted["own_path"])
        self.run.env.update(found)

    def unpack(self, archive: str) -> None:
        tar = tool("tar", self.run.env["PATH"])
        if tar is not None:
            argv = [tar, "-xf", archive, "--no-same-owner", "-C", self.tree]
        else:
            argv = [sys.executable, "-I", "-c", UNTAR, archive, self.tree]
        if self.run.call(argv, self.work) != (0, None):
            raise Fault("unpack", "the commit's tree could not be unpacked", "The disk may be full.")


def begin(order: dict[str, Any]) -> None:
    """What this process must do to itself before it starts others."""
    if order.get("loopback"):
        raise_loopback()
    if order.get("uid") is not None and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(order["uid"])
        os.setuid(order["uid"])
    elif sys.platform == "linux":
        # Who became another user cannot be traced by that user; who did not must say so.
        control(PR_SET_DUMPABLE, 0)
    if order.get("affinity"):
        os.sched_setaffinity(0, order["affinity"])
    if os.getpid() != 1 and sys.platform == "linux":
        control(PR_SET_CHILD_SUBREAPER, 1)
    if order.get("pids"):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        pids = order["pids"] if most == resource.RLIM_INFINITY else min(order["pids"], most)
        resource.setrlimit(resource.RLIMIT_NPROC, (pids, pids))
    os.umask(0o022)


def allowed() -> str:
    """The CPUs of this process and all that it starts, written as worker.run.processors.listed does, not in here."""
    cpus = sorted(os.sched_getaffinity(0))
    starts = [cpu for cpu in cpus if cpu - 1 not in cpus]
    ends = [cpu for cpu in cpus if cpu + 1 not in cpus]
    parts = ("%d" % first if first == last else "%d-%d" % (first, last) for first, last in zip(starts, ends))
    return ",".join(parts)[:500]


def control(option: int, value: int) -> None:
    try:
        import ctypes
    except ImportError:
        return  # some images have a Python without it
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def raise_loopback() -> None:
    """A new network namespace has its loopback down."""
    import fcntl
    import socket
    import struct

    with socket.socket() as any_socket:
        asked = struct.pack("16sh14x", LOOPBACK, 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", LOOPBACK, flags | IFF_UP))


def load(path: str) -> dict[str, Any]:
    """`json.loads` without what the module json brings with it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return dict(json.loads(text))

    class Context:
        strict, object_hook, object_pairs_hook = True, None, None
        parse_float, parse_int, parse_constant = float, int, float
        memo: dict[str, str] = {}

    scan: Any = make_scanner
    return dict(scan(Context)(text, 0)[0])


def node_fault(error: OSError) -> dict[str, str]:
    full = error.errno in (ENOSPC, EDQUOT)
    return {"kind": "disk-full" if full else "sandbox", "message": str(error), "advice": "Look at the node's disk."}


def reserve(out: str) -> int:
    """Space for the outcome, which must be told also when the reproduction has filled the disk: it is kept as long as
    the file is open, whatever becomes of its name. No other outcome is there until ours is.
    """
    clear(os.path.join(out, "outcome.json"))
    handle = fresh(os.path.join(out, "outcome.new"))
    os.write(handle, b" " * RESERVED)
    return handle


def reserve_for(handle: int, installed: dict[str, str]) -> None:
    """More of it, for what is as long as it is."""
    os.write(handle, b" " * sum(len(name) + len(version) + 8 for name, version in installed.items()))


def fresh(path: str) -> int:
    """A file of our own under this name, whatever the reproduction left there: a folder, a pipe, a link."""
    clear(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def clear(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:  # a folder, which may hold anything
        os.replace(path, f"{path}.{time.monotonic_ns()}")


def is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def publish(out: str, reserved: int, text: bytes) -> None:
    """Whole or not at all."""
    new, path = os.path.join(out, "outcome.new"), os.path.join(out, "outcome.json")
    handle = reserved
    if not is_at(reserved, new):
        os.ftruncate(reserved, 0)  # its space is for the other one
        handle = fresh(new)
    os.lseek(handle, 0, os.SEEK_SET)
    write(handle, text)
    os.ftruncate(handle, len(text))
    clear(path)
    os.replace(new, path)


def told(run: Run, out: str) -> str | None:
    """What the script or the check told; its output, when there is a metric to be found in it, goes into a file."""
    if run.voice is None:
        return None
    run.voice.close()
    if run.voice.keep:
        handle = fresh(os.path.join(out, "said"))
        write(handle, run.voice.text())
        os.close(handle)
    return run.voice.told.decode("utf-8", "replace") if run.voice.told is not None else None


def finish(run: Run, facts: dict[str, Any], out: str, reserved: int) -> None:
    """Ends the log and writes the outcome, whole or not at all."""
    from .warmup import ended_in

    run.leave()
    phase = ended_in(run)
    run.drain()
    # A folder in the log's place is the reproduction's doing.
    if run.log.broken is not None and run.log.broken.errno in DISK and facts["fault"] is None:
        facts["fault"] = node_fault(run.log.broken)
    facts.update(ended_in=phase, ready=run.ready, phases=run.phases, began=run.began, facts=run.facts)
    facts.update(installed=run.installed, replaced=run.package.replaced() if run.package else None)
    facts.update(bytes=run.log.total, failure_seen=run.log.failure_seen, python=sys.version.split()[0])
    try:
        os.chmod(out, 0o700)
        facts.update(told=told(run, out))
    except OSError as error:
        facts["fault"] = facts["fault"] or node_fault(error)
    import json  # was imported while the reproduction ran

    publish(out, reserved, json.dumps(facts).encode())


def main(root: str) -> None:
    """`root`: the job folder."""
    out = os.path.join(root, "out")
    order = load(os.path.join(root, "in", "order.json"))
    begin(order)
    secrets, hidden = take(root)
    facts: dict[str, Any] = {"exit_status": None, "signal": None, "timed_out": False, "fault": None}
    reserved = reserve(out)
    run = Run(order, out, secrets, hidden)
    if hasattr(os, "sched_getaffinity"):
        run.facts["cpus_allowed"] = allowed()
    try:
        facts["exit_status"], facts["signal"] = Phases(root, run, reserved).perform()
    except TimedOut:
        facts["timed_out"] = True
        kill_all()
    except Fault as fault:
        kind, message, advice = fault.args
        facts["fault"] = {"kind": kind, "message": message, "advice": advice}
    except OSError as error:
        facts["fault"] = node_fault(error)
    finish(run, facts, out, reserved)
