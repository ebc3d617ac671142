"""How each fault is done. Each returns when it is over, with what it decided by its own dice."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import redis
from kombu.exceptions import OperationalError

from service.adapters.probe_queue import sender
from tests.chaos import material
from tests.chaos.proxy import is_result
from tests.chaos.stack import Part, Stack

#: Seconds: of a cut network; of a full disk (after a third fault, 25 s after the first, a probe is given up); of a
#: worker that is stopped, which is longer than its leases last and the sweep waits.
CUT_S, FULL_S, SILENT_S = 30.0, (6.0, 15.0), 75.0
COPIES = 3
Fault = Callable[[Stack, random.Random], str]
_pause = threading.Event()


def worker(stack: Stack, dice: random.Random) -> str:
    killed = dice.choice(stack.workers())
    killed.send(signal.SIGKILL)
    return killed.name


def worker_all(stack: Stack, dice: random.Random) -> str:
    killed = dice.choice(stack.workers())
    with contextlib.suppress(psutil.NoSuchProcess):
        own = psutil.Process(killed.pid)
        for process in (*own.children(recursive=True), own):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    return killed.name


def job(stack: Stack, dice: random.Random) -> str:
    """The sandbox, or the first process in it; there is one within seconds, or the bisection has ended."""
    for _ in range(300):
        running = [found for part in stack.workers() for found in stack.jobs(part)]
        if running:
            break
        _pause.wait(0.05)
    else:
        return "nothing ran"
    chosen = dice.choice(running)
    with contextlib.suppress(psutil.NoSuchProcess):
        inside = chosen.children()
        killed = dice.choice([chosen, *inside])
        killed.kill()
        return "the sandbox" if killed is chosen else "the first process in it"
    return "it had just ended"


def control(stack: Stack, dice: random.Random) -> str:
    killed = dice.choice(stack.controls())
    killed.send(signal.SIGKILL)
    return killed.name


def api(stack: Stack, dice: random.Random) -> str:
    stack.parts["api"].send(signal.SIGKILL)
    return ""


def redis_emptied(stack: Stack, dice: random.Random) -> str:
    stack.parts["redis"].send(signal.SIGKILL)
    return ""


def postgres(stack: Stack, dice: random.Random) -> str:
    mode = dice.choice(("fast", "immediate"))
    command = [material.program("pg_ctl"), "-D", str(stack.folder / "cluster"), "-m", mode, "-w", "stop"]
    # Who looks after it starts it again.
    subprocess.run(command, cwd="/", capture_output=True, check=False, **material.nobody())
    return mode


def network(stack: Stack, dice: random.Random) -> str:
    broken = dice.random() < 0.5
    stack.proxy.cut()
    _pause.wait(CUT_S)
    stack.proxy.mend(broken=broken)
    return "connections ended" if broken else "connections kept"


def engine(stack: Stack, dice: random.Random) -> str:
    hard = dice.random() < 0.5
    # Of a containerd that was killed with it; should another process have that number by now, no new one is started.
    (stack.engine_run / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)
    stack.parts["engine"].send(signal.SIGKILL if hard else signal.SIGTERM)
    return "kill -9" if hard else ""


def disk(stack: Stack, dice: random.Random) -> str:
    seconds = dice.uniform(*FULL_S)
    filler = stack.store / "filler"
    with filler.open("wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    _last_bytes(filler)
    _pause.wait(seconds)
    filler.unlink()
    return f"{seconds:.0f} s"


def _last_bytes(filler: Path) -> None:
    handle = os.open(filler, os.O_WRONLY | os.O_APPEND)
    try:
        while True:
            os.write(handle, bytes(4096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(handle)


def clock(stack: Stack, dice: random.Random) -> str:
    jumps = [dice.choice((1, -1)) * dice.randint(1, 30) for _ in range(2)]
    for hours in (*jumps, 0):
        stack.set_clock(3600 * hours)
        _pause.wait(dice.uniform(2.0, 6.0))
    return ", ".join(f"{hours:+d} h" for hours in jumps)


def results(stack: Stack, dice: random.Random) -> str:
    """Holds results back by stopping who reads them; then each comes three times, in any order, and again later."""
    for part in stack.controls():
        part.send(signal.SIGSTOP)
    before = len(stack.proxy.carried)
    for _ in range(300):
        if len(stack.proxy.carried) > before:
            break
        _pause.wait(0.1)
    _pause.wait(dice.uniform(0.5, 3.0))
    held = _taken(stack)
    _put(stack, dice, held * COPIES)
    for part in stack.controls():
        part.send(signal.SIGCONT)
    again = dice.sample(carried := stack.proxy.carried, min(len(carried), 10))
    for _ in range(COPIES):
        _pause.wait(dice.uniform(1.0, 6.0))
        _put(stack, dice, again)
    return f"{len(held)} held back, {len(again)} again"


def _taken(stack: Stack) -> list[bytes]:
    """The results that wait in the control queue, which lacks them from now on."""
    with contextlib.suppress(redis.RedisError), stack.redis() as client:
        with client.pipeline(transaction=True) as pipe:
            pipe.lrange("control", 0, -1)
            pipe.delete("control")
            waiting, _ = pipe.execute()
        found = [message for message in waiting if is_result(message)]
        others = [message for message in waiting if not is_result(message)]
        if others:
            client.lpush("control", *others)
        return found
    return []


def _put(stack: Stack, dice: random.Random, messages: list[bytes]) -> None:
    shuffled = dice.sample(messages, len(messages))
    with contextlib.suppress(redis.RedisError), stack.redis() as client:
        for message in shuffled:
            client.lpush("control", message)


def race(stack: Stack, dice: random.Random) -> str:
    """Sweeps and results for both at once: they wait until both read again."""
    for part in stack.controls():
        part.send(signal.SIGSTOP)
    _pause.wait(1.0)
    ids = [str(row["id"]) for row in stack.books.rows("SELECT id FROM bisections")]
    with contextlib.suppress(redis.RedisError, OperationalError):
        for task, arguments in [("firstbad.sweep", [])] * 20 + [("firstbad.prepare", [id]) for id in ids] * 4:
            sender(stack.redis_url).send_task(task, args=arguments, queue="control", retry=False)
    _put(stack, dice, stack.proxy.carried[-5:] * 2)
    for part in stack.controls():
        part.send(signal.SIGCONT)
    return ""


def silence(stack: Stack, dice: random.Random) -> str:
    stopped: Part = dice.choice(stack.workers())
    pid = stopped.pid
    os.kill(pid, signal.SIGSTOP)
    _pause.wait(SILENT_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    return stopped.name


DONE_BY: dict[str, Fault] = {
    "worker": worker,
    "worker-all": worker_all,
    "job": job,
    "control": control,
    "api": api,
    "redis": redis_emptied,
    "postgres": postgres,
    "network": network,
    "engine": engine,
    "disk": disk,
    "clock": clock,
    "results": results,
    "race": race,
    "silence": silence,
}
