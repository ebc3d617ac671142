"""What must be true when a run is over. Each function returns what is not, a line for each."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import redis

from tests.chaos import material
from tests.chaos.books import Row, parsed
from tests.chaos.cancels import Small
from tests.chaos.material import SMALL_BAD
from tests.chaos.stack import Stack
from tests.waiting import eventually

#: Seconds until nothing is left: leases last 30 after their end, and a container engine takes its time.
CLEAR_S = 60.0
ENDED = ("judged", "faulted", "cancelled")
GROUPS = Path("/sys/fs/cgroup")


def answers(stack: Stack, id: str, small: Small) -> list[str]:
    """The first bad commit, and for cancelled ones that they are."""
    wrong = []
    right = {
        id: stack.material.first_bad,
        **dict.fromkeys([*small.kept, *small.too_late], stack.material.small[SMALL_BAD]),
    }
    for row in stack.books.rows("SELECT id, state, answer, problem FROM bisections"):
        if row["id"] in right:
            answer = parsed(row["answer"]) or {}
            named = answer.get("shas", [])
            if row["state"] != "found" or named != [right[row["id"]]]:
                wrong.append(f"{row['id']} ended as {row['state']} with {named}: {parsed(row['problem']) or answer}")
        elif row["id"] in small.cancelled and row["state"] != "cancelled":
            wrong.append(f"{row['id']} was cancelled and is {row['state']}")
    return wrong


def counted_once(stack: Stack) -> list[str]:
    """No probe counts twice: one verdict, one trial of a number, one start of an attempt."""
    probes = stack.books.rows("SELECT id, bisection_id, sha, trial, state, verdict, attempt, outcome FROM probes")
    events = [{**row, "data": parsed(row["data"])} for row in stack.books.rows("SELECT kind, data FROM events")]
    verdicts = Counter(event["data"]["probe"] for event in events if event["kind"] == "verdict")
    starts = Counter((e["data"]["probe"], e["data"]["attempt"]) for e in events if e["kind"] == "started")
    trials = Counter((row["bisection_id"], row["sha"], row["trial"]) for row in probes if row["state"] == "judged")
    wrong = [f"{probe} has {count} verdict events" for probe, count in verdicts.items() if count != 1]
    wrong += [f"{trial} was judged {count} times" for trial, count in trials.items() if count != 1]
    wrong += [f"{attempt} was begun {count} times" for attempt, count in starts.items() if count != 1]
    wrong += [f"{row['id']} is {row['state']}" for row in probes if row["state"] not in ENDED]
    for row in probes:
        if (row["state"] in ("judged", "faulted")) != (verdicts[row["id"]] == 1):
            wrong.append(f"{row['id']} is {row['state']} and has {verdicts[row['id']]} verdict events")
        if row["state"] == "judged" and row["outcome"] is None:
            wrong.append(f"{row['id']} is judged without an outcome")
    return [*wrong, *_given_up(probes)]


def _given_up(probes: Iterable[Row]) -> list[str]:
    return [f"{row['id']} was given up" for row in probes if row["state"] == "faulted"]


def left_behind(stack: Stack) -> list[str]:
    """Of what the whole stack does when there is nothing to do any more, with its parts still alive."""
    # What takes longest comes first, and spares the others the look.
    looks: tuple[Callable[[Stack], list[str]], ...] = (_keys, _rows, _folders, _processes, _containers, _locks)
    found: list[str] = []

    def clear() -> bool:
        found[:] = next((lines for look in looks if (lines := look(stack))), [])
        return not found

    try:
        eventually(clear, CLEAR_S, "nothing is left", 1.0)
    except AssertionError:
        return [line for look in looks for line in look(stack)]
    return []


def _rows(stack: Stack) -> list[str]:
    waiting = stack.books.rows("SELECT key FROM outbox WHERE delivered_at IS NULL")
    builds = stack.books.rows("SELECT key, state FROM builds WHERE state IN ('waiting', 'queued', 'running')")
    return [f"the outbox holds {row['key']}" for row in waiting] + [
        f"the build {b['key']} is {b['state']}" for b in builds
    ]


def _keys(stack: Stack) -> list[str]:
    """Leases and orders that are under way; all else must end by itself some time."""
    try:
        with stack.redis() as client:
            keys = [key.decode() for key in client.keys("firstbad:*")]
            endless = [key for key in keys if client.ttl(key) == -1 and not key.startswith("firstbad:out:")]
            queues = {name: client.llen(name) for name in ("build", "probe.cpu", "probe.gpu.fake-80gb", "node.node0")}
    except redis.ConnectionError as error:
        # A fault at the very end may have it down while it is looked at.
        return [f"Redis is away: {error}"]
    alive = [key for key in keys if key.startswith(("firstbad:lease:", "firstbad:sent:"))]
    return [f"Redis holds {key}" for key in (*alive, *endless)] + [f"{n} wait in {q}" for q, n in queues.items() if n]


def _folders(stack: Stack) -> list[str]:
    """Jobs, rubbish, results not sent, puts that were not finished, and whatever lies where temporary files do."""
    places = [stack.work(n) / name for n in range(stack.plan.workers) for name in ("jobs", "trash", "outgoing")]
    found = [path for place in (*places, stack.store / "tmp") if place.is_dir() for path in place.iterdir()]
    found += [
        path for path in stack.temporary.iterdir() if not path.name.startswith(("firstbad-ports-", "firstbad-gpus-"))
    ]
    found += list((stack.folder / "home" / "mirrors").rglob("*.lock.tmp"))
    return [f"{path.relative_to(stack.folder)} is left" for path in found]


def _processes(stack: Stack) -> list[str]:
    """Below this process, which orphans fall to, only the parts themselves are to be."""
    parts = {part.pid: name for name, part in stack.parts.items()}
    found = []
    for process in psutil.Process().children():
        if process.pid not in parts:
            found.append(process)
        elif parts[process.pid] not in ("postgres", "engine"):
            found += process.children(recursive=True)
    return [told for process in found if (told := _told(process))]


def orphans() -> list[str]:
    """What is left of all that was started here, once the stack was stopped."""
    found: list[str] = []

    def gone() -> bool:
        found[:] = [told for process in psutil.Process().children(recursive=True) if (told := _told(process))]
        return not found

    try:
        eventually(gone, 20.0, "all processes have ended", 0.2)
    except AssertionError:
        for process in psutil.Process().children(recursive=True):
            process.send_signal(signal.SIGKILL)
        return found
    return []


def _told(process: psutil.Process) -> str:
    """Empty for one that has ended; orphans are asked for their status here, as init does."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            if process.ppid() == os.getpid():
                os.waitpid(process.pid, os.WNOHANG)
            return ""
        return f"process {process.pid} runs: {' '.join(process.cmdline())[:150]}"
    except (psutil.NoSuchProcess, ChildProcessError):
        return ""


def _containers(stack: Stack) -> list[str]:
    if stack.plan.sandbox != "docker":
        return []
    command = ["docker", "-H", material.engine_url(stack.engine_run), "ps", "--all", "--format", "{{.ID}} {{.Status}}"]
    return [f"container {line}" for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]


def _locks(stack: Stack) -> list[str]:
    """Of GPUs and ports: the files stay, nobody holds them."""
    files = [*stack.gpus.rglob("*"), *stack.temporary.glob("firstbad-ports-*/*")]
    return [f"{path.relative_to(stack.folder)} is locked" for path in files if path.is_file() and _held(path)]


def _held(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def outside(stack: Stack) -> list[str]:
    """After the stop: control groups, mounts, ports."""
    names = [(stack.work(n) / "id").read_text() for n in range(stack.plan.workers) if (stack.work(n) / "id").exists()]
    ids = tuple(f"firstbad-{name}-" for name in names)
    groups = [f"{folder}/{name}" for folder, below, _ in os.walk(GROUPS) for name in below if name.startswith(ids)]
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    mounted = [mount for mount in mounts if mount.startswith(f"{stack.folder}/") and mount != str(stack.store)]
    ours = {stack.redis_port, stack.api_port, stack.proxy.port}
    # Another's process may have got one of the numbers meanwhile.
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.pid in own]
    open_ports = {connection.laddr.port for connection in listening}
    left = [f"{path} is left" for path in groups] + [f"{mount} is mounted" for mount in mounted]
    return left + [f"port {port} is open" for port in ours & open_ports]
