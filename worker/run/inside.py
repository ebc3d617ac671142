# Imports are what its start costs, and it runs on old Pythons, so:
# ruff: noqa: PTH100, PTH105, PTH108, PTH110, PTH112, PTH118, PTH120, PTH123, PTH208, UP031, SIM105, TID251, B905
"""Runs inside every sandbox, beside the reproduction: does the phases, keeps the log, writes the outcome.

One file, standard library only, Python 3.9 or newer, because it is copied into images that hold nothing of ours.
It reads ../in/order.json and writes ../out/outcome.json, ../out/log and, once the log is over half its cap,
../out/log.1 and ../out/log.2. In a PID namespace it is process 1: nothing inside can kill it, and all ends with it.
What it writes is not trusted by the worker that reads it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections import deque

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IN, OUT, WORK = (os.path.join(ROOT, name) for name in ("in", "out", "work"))

LINE = 64 * 1024
READ = 64 * 1024
STAMP = 25  # the length of b"2026-01-31T23:59:59.123Z "
DRAIN_S = 2.0
QUIET_S = 0.25
TERM_S = 10.0
GROUPS = []  # of the processes started here, each the leader of its own session


class Fault(Exception):
    """The node's doing: (kind, message, advice)."""


class TimedOut(Exception):
    """The run took longer than it may."""


class Log:
    """A time stamp a line, the head on disk at once, of the rest the last part in constant memory and on two files."""

    def __init__(self, cap, failure):
        self.half = max(cap // 2, 1)
        self.failure = failure.encode("utf-8", "replace") if failure else None
        self.failure_seen = None
        self.total = 0
        self.head_size = 0
        self.open = 0  # length of the unfinished line
        self.carry = b""  # its text, only kept while something is looked for
        self.watch = None  # called with each finished line
        self.pending, self.pending_size, self.tail_size = deque(), 0, 0
        self.head = os.open(os.path.join(OUT, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.full = False
        self.flushed = time.monotonic()

    def add(self, data):
        self.total += len(data)
        self._look(data)
        data, fresh = self._cut(data)
        entry = (_stamp(), data, fresh)
        if not self.full:
            entry = self._to_head(render(entry))
        if entry:
            self._to_tail(entry)

    def _cut(self, data):
        """Ends a line that grew beyond LINE; chunks are no longer than LINE, so that only their first line can."""
        fresh = self.open == 0
        end = data.find(b"\n")
        first = end if end >= 0 else len(data)
        if self.open + first > LINE:
            keep = LINE - self.open
            data = data[:keep] + b"\n" + data[keep:]
        last = data.rfind(b"\n")
        self.open = len(data) - last - 1 if last >= 0 else self.open + len(data)
        return data, fresh

    def _look(self, data):
        """Finds the failure's text and feeds the watcher, also in what the cap leaves out."""
        if self.failure is None and self.watch is None:
            return
        text = self.carry + data
        last = text.rfind(b"\n") + 1
        whole, self.carry = text[:last], text[last:][-LINE:]
        if self.failure is not None and self.failure in text:
            at = text.find(self.failure)
            start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
            if end >= 0:
                self.failure_seen, self.failure = text[start:end][:LINE].decode("utf-8", "replace"), None
        if self.watch is not None:
            for line in whole.splitlines():
                if self.watch is not None:
                    self.watch(line)

    def _to_head(self, rendered):
        room = self.half - self.head_size
        fits = len(rendered) if len(rendered) <= room else rendered.rfind(b"\n", 0, room) + 1
        if fits:
            os.write(self.head, rendered[:fits])
            self.head_size += fits
        if fits == len(rendered):
            return None
        self.full = True
        return (b"", rendered[fits:], False)

    def _to_tail(self, entry):
        self.pending.append(entry)
        self.pending_size += size(entry)
        while self.pending_size > self.half and len(self.pending) > 1:
            self.pending_size -= size(self.pending.popleft())
            self.tail_size = -1  # what lies on disk is too old to be kept
        if time.monotonic() - self.flushed > 0.5:
            self.flush()

    def flush(self):
        self.flushed = time.monotonic()
        if not self.pending:
            return
        old, new = os.path.join(OUT, "log.1"), os.path.join(OUT, "log.2")
        if self.tail_size < 0:
            remove(old), remove(new)
            self.tail_size = 0
        elif self.tail_size > self.half:
            os.replace(new, old)
            self.tail_size = 0
        with open(new, "ab") as tail:
            while self.pending:
                self.tail_size += tail.write(render(self.pending.popleft()))
        self.pending_size = 0
        with open(os.path.join(OUT, "log.bytes"), "w") as count:
            count.write(str(self.total))

    def close(self):
        if self.failure is not None and self.failure in self.carry:
            self.failure_seen = self.carry.decode("utf-8", "replace")
        if self.open:
            self.add(b"\n")
            self.total -= 1
        self.flush()


def _stamp():
    now = time.time()
    return b"%s.%03dZ " % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)).encode(), now % 1 * 1000)


def render(entry):
    stamp, data, fresh = entry
    if not stamp:
        return data
    body, end = (data[:-1], b"\n") if data.endswith(b"\n") else (data, b"")
    return (stamp if fresh else b"") + body.replace(b"\n", b"\n" + stamp) + end


def size(entry):
    stamp, data, _ = entry
    return len(data) + (len(stamp) and STAMP * (data.count(b"\n") + 1))


def remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


class Run:
    """The processes of one order, their common output and the phases, in one thread around one poll()."""

    def __init__(self, order):
        self.order = order
        self.began = time.time()
        self.zero = time.monotonic()
        self.deadline = self.zero + order["timeout_s"]
        self.env = dict(order["env"])
        self.log = Log(order["log_cap_bytes"], order.get("failure"))
        self.phases, self.phase = [], "start"
        self.status = {}  # of the processes of ours that ended
        self.facts = {}
        self.ready = None
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            try:
                fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 1024 * 1024)
            except OSError:
                pass  # the user's share of pipe memory is used up; a small pipe works too
        self.null = os.open(os.devnull, os.O_RDONLY)
        self.woken, waker = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.ended(143))
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self.poll = select.poll()
        self.poll.register(self.reader, select.POLLIN)
        self.poll.register(self.woken, select.POLLIN)

    @staticmethod
    def ended(status):
        kill_all()
        os._exit(status)

    def enter(self, name):
        """Begins a phase, which ends the one before it."""
        self.leave()
        self.phase = name
        self.phases.append({"name": name, "at_s": time.monotonic() - self.zero, "seconds": None})

    def leave(self):
        if self.phases and self.phases[-1]["seconds"] is None:
            self.phases[-1]["seconds"] = time.monotonic() - self.zero - self.phases[-1]["at_s"]

    def spawn(self, argv, cwd, env=None):
        pid = os.fork()
        if pid:
            GROUPS.append(pid)
            return pid
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(self.null, 0), os.dup2(self.writer, 1), os.dup2(self.writer, 2)
            os.chdir(cwd)
            os.execvpe(argv[0], argv, self.env if env is None else env)
        except OSError as error:
            os.write(2, ("firstbad: cannot run %s: %s\n" % (argv[0], error)).encode())
        finally:
            os._exit(127)

    def wait(self, done, until, tick=None):
        """Handles output and ended children until `done()`, or `until`, or the run's own deadline (TimedOut)."""
        while not done():
            now = time.monotonic()
            if now >= self.deadline:
                raise TimedOut
            if now >= until:
                return False
            pause = min(until, self.deadline) - now
            pause = min(pause, 0.5) if self.log.pending else pause
            pause = min(pause, tick()) if tick else pause
            self.pump(pause)
        return True

    def pump(self, pause):
        """One turn: reads what there is. True when the output ended (nobody holds the pipe any more)."""
        ended = False
        for fd, _ in self.poll.poll(max(pause, 0) * 1000 + 0.5):
            if fd == self.reader:
                ended = not self.read()
            elif fd == self.woken:
                os.read(self.woken, 4096)
                self.reap()
        if self.log.pending and time.monotonic() - self.log.flushed > 0.5:
            self.log.flush()
        return ended

    def read(self):
        try:
            data = os.read(self.reader, READ)
        except BlockingIOError:
            return True
        if data:
            self.log.add(data)
        return bool(data)

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.status[pid] = status

    def finish(self, pid):
        """Waits for this child. Its exit status and signal, one of them None."""
        self.wait(lambda: pid in self.status, self.deadline)
        return split(self.status[pid])

    def call(self, argv, cwd):
        return self.finish(self.spawn(argv, cwd))

    def drain(self):
        """Reads what is still on its way, then kills what still holds the pipe."""
        os.close(self.writer)
        end, quiet = time.monotonic() + DRAIN_S, time.monotonic() + QUIET_S
        killed = False
        while time.monotonic() < end:
            before = self.log.total
            if self.pump(min(quiet - time.monotonic(), end - time.monotonic())):
                break
            if self.log.total != before and not killed:
                quiet = time.monotonic() + QUIET_S
            elif time.monotonic() >= quiet:
                if killed:
                    break
                kill_all()
                killed, quiet = True, time.monotonic() + 4 * QUIET_S
        kill_all()
        self.log.close()


def split(status):
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)


def kill_all():
    """Ends every other process of the sandbox: of the PID namespace, or else all descendants (of a subreaper)."""
    if os.getpid() == 1:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return
    for group in GROUPS:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    for _ in range(100):
        found = descendants()
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            try:
                os.waitpid(pid, 0 if pid_parent(pid) == os.getpid() else os.WNOHANG)
            except ChildProcessError:
                pass


def pid_parent(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" and int(fields[1]) != os.getpid() else int(fields[1])


def descendants():
    """Living descendants of this process, children first. Without /proc: none (the worker kills the group then)."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    parents = {pid: pid_parent(pid) for pid in pids}
    found, new = [], [os.getpid()]
    while new:
        new = [pid for pid, parent in parents.items() if parent in new and pid not in found]
        found += new
    return found


def tool(name, path):
    for folder in path.split(":"):
        full = os.path.join(folder, name)
        if os.access(full, os.X_OK) and not os.path.isdir(full):
            return full
    return None


def bash(run):
    found = tool("bash", run.env["PATH"])
    if found is None:
        raise Fault(
            "no-bash", "there is no bash in the sandbox", "Install bash in the image; sh does not know pipefail."
        )
    return [found, "-eo", "pipefail"]


def perform(run):
    """Does the order. The exit status and signal of what it ended in."""
    order = run.order
    shell = bash(run)
    cwd = os.path.join(WORK, "tree")
    if os.path.exists(os.path.join(IN, "tree.tar")):
        run.enter("unpack")
        unpack(run, cwd)
    if order.get("wheel"):
        run.enter("install")
        status = install(run, os.path.join(IN, order["wheel"]))
        if status != (0, None):
            return status
    if order.get("build"):
        run.enter("build")
        return run.call([*shell, "-c", order["build"]], cwd)
    if order.get("script") is not None:
        run.enter("script")
        return run.call([*shell, os.path.join(IN, "script.sh")], cwd)
    return serve(run, shell, cwd)


def unpack(run, cwd):
    tar = tool("tar", run.env["PATH"])
    if tar:
        # Ownership and set-id bits of the archive are of no use here; an archive may hold links to anywhere.
        status = run.call([tar, "-xf", os.path.join(IN, "tree.tar"), "--no-same-owner", "-C", cwd], WORK)
    else:
        script = "import sys, tarfile; t = tarfile.open(sys.argv[1]); t.extraction_filter = getattr(tarfile, "
        script += "'tar_filter', None); t.extractall(sys.argv[2])"
        status = run.call([sys.executable, "-I", "-c", script, os.path.join(IN, "tree.tar"), cwd], WORK)
    if status != (0, None):
        raise Fault(
            "unpack", "the commit's tree could not be unpacked in the sandbox", "See the log; the disk may be full."
        )


def install(run, wheel):
    """A venv with the wheel, on top of the sandbox's own packages; PATH points to it from then on."""
    venv, offline = os.path.join(WORK, "venv"), run.order["offline"]
    uv, python = tool("uv", run.env["PATH"]), tool("python3", run.env["PATH"])
    if uv:
        make = [uv, "venv", "--quiet", "--system-site-packages", "--python", python, venv]
        put = [uv, "pip", "install", *(["--offline"] if offline else []), "--python", venv, wheel]
    else:
        make = [python, "-m", "venv", "--system-site-packages", venv]
        put = [os.path.join(venv, "bin", "pip"), "install", *(["--no-index"] if offline else []), wheel]
    status = run.call(make, WORK)
    if status != (0, None):
        raise Fault("venv", "no virtual environment could be made in the sandbox", "Install python3-venv, or uv.")
    run.env["PATH"] = os.path.join(venv, "bin") + ":" + run.env["PATH"]
    run.env["VIRTUAL_ENV"] = venv
    return run.call(put, WORK)


def serve(run, shell, cwd):
    spec = run.order["serve"]
    port = run.order["port"] = choose_port(spec["port"], run.order["own_network"])
    run.facts["port"] = str(port)
    run.env.update(FIRSTBAD_PORT=str(port), FIRSTBAD_URL="http://127.0.0.1:%d" % port)
    run.enter("start")
    run.ready = False
    ready = Ready(run, spec, port)
    server = run.spawn([*shell, "-c", spec["command"]], cwd)
    until = time.monotonic() + spec["within_s"]
    try:
        run.wait(lambda: ready.reached() or server in run.status, until, ready.tick)
    except TimedOut:
        if run.phase == "start":
            run.enter("ready")
        raise
    finally:
        ready.close()
    if server in run.status:
        return split(run.status[server])
    if run.phase == "start":
        run.enter("ready")
    if not ready.reached():
        raise TimedOut
    run.ready, status = True, (None, None)
    if run.order.get("check"):
        run.enter("check")
        status = run.call([*shell, "-c", run.order["check"]], cwd)
        if server in run.status:
            run.facts["server_ended"] = "%s %s" % (
                ("exit status", "signal")[run.status[server] & 127 > 0],
                max(part for part in split(run.status[server]) if part is not None),
            )
    run.leave()
    stop(run, server)
    return status


def stop(run, server):
    """SIGTERM to the server's group, SIGKILL after TERM_S; what is left of it is killed with the sandbox."""
    for number, seconds in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, 1.0)):
        try:
            os.killpg(server, number)
        except (ProcessLookupError, PermissionError):
            return
        try:
            if run.wait(lambda: server in run.status, time.monotonic() + seconds):
                return
        except TimedOut:
            return


def choose_port(wanted, own):
    """The wanted port; a free one instead when others share this network and it is taken."""
    if own:
        return wanted
    import socket

    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise Fault("no-port", "no free TCP port on this node", "Stop what holds them.")


class Ready:
    """Ready when the log line was seen and the path answered 200, as far as each is asked for."""

    def __init__(self, run, spec, port):
        self.run, self.path, self.port = run, spec.get("ready_http"), port
        self.line_seen = not spec.get("ready_log")
        self.answered = not self.path
        self.again, self.pause, self.socket, self.got = 0.0, 0.05, None, b""
        if not self.line_seen:
            self.expect(spec["ready_log"])

    def expect(self, wanted):
        import re

        try:
            pattern = re.compile(wanted.encode())
        except re.error:
            pattern = re.compile(re.escape(wanted.encode()))

        def watch(line):
            if wanted.encode() in line or pattern.search(line):
                self.line_seen, self.run.log.watch = True, None

        self.run.log.watch = watch

    def reached(self):
        return self.line_seen and self.answered

    def tick(self):
        """Asks the server again when it is time; how long to wait until the next try, in seconds."""
        if self.answered:
            return 60.0
        now = time.monotonic()
        if self.socket is not None and self.look():
            self.answered = True
            return 0.0
        if self.socket is None and now >= self.again:
            self.ask()
        self.again = max(self.again, now + self.pause)
        self.pause = min(self.pause * 1.05, 0.5)
        return self.pause if self.socket is None else 1.0

    def ask(self):
        import socket

        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 1.0)
            if self.run.phase == "start":
                self.run.enter("ready")
            request = "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % (self.path, self.port)
            self.socket.sendall(request.encode())
            self.socket.setblocking(False)
            self.run.poll.register(self.socket, select.POLLIN)
            self.asked = time.monotonic()
        except OSError:
            self.close()

    def look(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            if time.monotonic() - self.asked > 5.0:
                self.close()
            return False
        except OSError:
            data = b""
        self.got += data
        if data and b"\r\n" not in self.got:
            return False
        words = self.got.split(None, 2)
        self.close()
        return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1] == b"200"

    def close(self):
        self.run.log.watch = None if self.line_seen else self.run.log.watch
        if self.socket is not None:
            try:
                self.run.poll.unregister(self.socket)
            except KeyError:
                pass
            self.socket.close()
        self.socket, self.got = None, b""


def loopback():
    """A new network namespace has its loopback down: SIOCGIFFLAGS, SIOCSIFFLAGS with IFF_UP."""
    import socket
    import struct

    with socket.socket() as probe:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(probe, 0x8913, name)[:18])[1]
        fcntl.ioctl(probe, 0x8914, struct.pack("16sh", b"lo", flags | 1))


def subreaper():
    """Makes orphans of the tree children of this process, so that they can be found (PR_SET_CHILD_SUBREAPER)."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def limit(order):
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if order.get("pids"):
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        pids = order["pids"] if hard == resource.RLIM_INFINITY else min(order["pids"], hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (pids, pids))


def prepare(order):
    if order.get("loopback"):
        loopback()
    if order.get("uid") is not None and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(order["uid"])
        os.setuid(order["uid"])
    if os.getpid() != 1 and sys.platform == "linux":
        subreaper()
    limit(order)
    os.umask(0o022)


def main():
    with open(os.path.join(IN, "order.json"), encoding="utf-8") as file:
        order = json.load(file)
    prepare(order)
    run = Run(order)
    facts = {"exit_status": None, "signal": None, "timed_out": False, "fault": None}
    try:
        facts["exit_status"], facts["signal"] = perform(run)
    except TimedOut:
        facts["timed_out"] = True
        kill_all()
    except Fault as fault:
        facts["fault"] = dict(zip(("kind", "message", "advice"), fault.args))
    except OSError as error:
        facts["fault"] = {"kind": "disk-full" if error.errno == 28 else "sandbox", "message": str(error), "advice": ""}
    run.leave()
    ended_in = run.phase
    run.drain()
    facts.update(
        ended_in=ended_in,
        ready=run.ready,
        phases=run.phases,
        began=run.began,
        bytes=run.log.total,
        failure_seen=run.log.failure_seen,
        facts=run.facts,
        python=sys.version.split()[0],
    )
    with open(os.path.join(OUT, "outcome.new"), "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(os.path.join(OUT, "outcome.new"), os.path.join(OUT, "outcome.json"))


if __name__ == "__main__":
    main()
