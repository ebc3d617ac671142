"""The server that a script starts: which one it is, where it listens, and how it is started in the foreground."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from service.application.pasted.shell import Command, Part, expanded, text_of
from service.domain.servers import Server

#: What stands before a command and runs it.
_WRAPPERS = frozenset(
    [
        "nohup",
        "setsid",
        "env",
        "exec",
        "time",
        "stdbuf",
        "numactl",
        "taskset",
        "nice",
        "ionice",
        "chrt",
        "timeout",
        "uv",
        "poetry",
        "pdm",
        "hatch",
        "conda",
        "mamba",
        "sudo",
        "mpirun",
        "mpiexec",
        "torchrun",
        "trtllm-llmapi-launch",
        "command",
        "nsys",
    ]
)
#: Of these, what makes it a process of its own, which it is without.
_DETACHING = ("nohup", "setsid")
#: And what runs it in another environment than the one with the package under test.
_ELSEWHERE = ("uv", "poetry", "pdm", "hatch", "conda", "mamba")
#: What is given a command as text.
_RUNNERS = ("tmux", "screen", "bash", "sh", "eval", "ssh", "srun", "parallel", "xargs", "docker", "podman")
_NO_PORT = ("--uds", "--fd", "--unix-socket")
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_PORT = re.compile(r"(?:.*:)?(\d{1,5})")
_HOST_PORT = re.compile(r":(?:\d{1,5}|\$\{?FIRSTBAD_PORT\}?)$")
_FIRSTBAD_PORT = re.compile(r"\$\{?FIRSTBAD_PORT\b")
_SHOWING_HELP = ("-h", "--help", "--version")


@dataclass(frozen=True)
class Hit:
    """`at`: the place of the server's own first word among the command's; `behind`: of the first after them."""

    server: Server
    command: Command
    at: int
    behind: int


@dataclass(frozen=True)
class Foreground:
    """How the server is started so that it stays, and that its output is seen; `changes`: what was done for that."""

    text: str
    changes: tuple[str, ...] = ()


def hit(command: Command, servers: Sequence[Server]) -> Hit | None:
    texts = command.texts
    if any(text in _SHOWING_HELP for text in texts):
        return None
    last = len(texts) if command.name in _WRAPPERS else min(1, len(texts))
    for at in range(last):
        for server in servers:
            for known in server.commands:
                behind = _behind(texts, at, known)
                if behind:
                    return Hit(server, command, at, behind)
    return None


def _behind(texts: Sequence[str], at: int, known: Sequence[str]) -> int:
    """Where the words that are known end; 0 when they are not there. Options of python may stand before its -m."""
    program = texts[at].rpartition("/")[2]
    if known[0] != "python":
        matches = program == known[0] and tuple(texts[at + 1 : at + len(known)]) == tuple(known[1:])
        return at + len(known) if matches else 0
    if _PYTHON.fullmatch(program) is None or "-m" not in texts[at : at + 6]:
        return 0
    module = texts.index("-m", at)
    ends = module + len(known) - 1
    return ends if tuple(texts[module:ends]) == tuple(known[1:]) else 0


def hides(part: Part, servers: Sequence[Server]) -> bool:
    """It hands the command of a server to something else that runs it."""
    texts = [" ".join(each.texts) for each in part.commands if each.name in _RUNNERS]
    known = [" ".join(words[words[0] == "python" :]) for server in servers for words in server.commands if words[1:]]
    return any(re.search(rf"\b{re.escape(words)}\b", text) for text in texts for words in known)


def is_in_front(part: Part, found: Hit) -> bool:
    """The server is the command itself, or the first of a pipe, whose others read what it prints."""
    node = part.node
    while node.type in ("pipeline", "redirected_statement"):
        node = node.children[0]
    return node == found.command.node


def port(found: Hit, variables: Mapping[str, str]) -> int | None:
    """None when it cannot be told before the run. `variables`: known ones, the command's own among them."""
    server = found.server
    written = next((variables[name] for name in server.port_variables if _says_port(variables.get(name))), None)
    words = found.command.texts[found.behind :]
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in server.port_options:
            written = value if equals else (words[place + 1] if place + 1 < len(words) else "")
    if server.port_is_an_argument and written is None:
        written = next((word for word in words if not word.startswith("-")), None)
    if server.ready_http is not None and any(word.partition("=")[0] in _NO_PORT for word in words):
        return None
    if written is None or _FIRSTBAD_PORT.search(written):
        return server.port
    told = _PORT.fullmatch(expanded(written, variables))
    number = int(told[1]) if told is not None else 0
    return number if 0 < number < 65536 else None


def doubt(found: Hit, variables: Mapping[str, str]) -> str:
    """With what it may never be seen to be ready; empty without such an option or variable."""
    words = found.command.texts[found.behind :]
    given = [(name, variables[name], f"{name}={variables[name]}") for name in found.server.doubts if name in variables]
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        following = words[place + 1] if place + 1 < len(words) else ""
        given.append((option, value if equals else following, word if equals else f"{word} {following}"))
    for name, value, written in given:
        allowed = _allowed(found.server, name)
        if allowed is not None and _HOST_PORT.sub("", expanded(value, variables)).lower() not in allowed:
            return written if allowed else name
    return ""


def _allowed(server: Server, name: str) -> Sequence[str] | None:
    """Options are known with underscores, too."""
    plain = name.replace("_", "-") if name.startswith("-") else name
    return server.doubts.get(plain)


def _says_port(value: str | None) -> bool:
    """A host alone leaves the port as it is."""
    return value is not None and (not value or "$" in value or _PORT.fullmatch(value) is not None)


def foreground(part: Part, found: Hit) -> Foreground | None:
    """None when it cannot be started in another way with the same meaning."""
    wrapped = found.command.words[: found.at]
    cut: list[tuple[int, int]] = []
    changes = []
    if wrapped and wrapped[0].text in _DETACHING + _ELSEWHERE:
        first = wrapped[0].text
        elsewhere = first in _ELSEWHERE
        cut.append((wrapped[0].start, found.command.words[found.at if elsewhere else 1].start))
        changes.append(f"without {first}{' run' if elsewhere else ''}")
    base, tail = part.node, ""
    if part.node.type == "redirected_statement":
        redirected = _redirected(part)
        if redirected is None:
            return None
        base, tail = part.node.children[0], redirected
        if tail != part.text.encode()[base.end_byte - base.start_byte :].decode().strip():
            changes.append("with its output in the log, too")
    return Foreground(_without(base, part.data, cut) + (f" {tail}" if tail else ""), tuple(changes))


def _without(node: Node, data: bytes, cut: Sequence[tuple[int, int]]) -> str:
    text = data[node.start_byte : node.end_byte]
    for start, end in reversed(cut):
        text = text[: start - node.start_byte] + text[end - node.start_byte :]
    return text.decode()


def _redirected(part: Part) -> str | None:
    """What stands in the place of the redirections, so that the output goes on to where it is looked at."""
    out: tuple[str, str] | None = None
    errors = ""
    kept: list[str] = []
    for redirect in part.node.children[1:]:
        if redirect.type != "file_redirect":
            return None
        descriptor, operator, target = _pieces(redirect, part.data)
        if operator == "<":
            kept.append(text_of(redirect, part.data))
        elif operator == ">&" and (descriptor, target) == ("2", "1"):
            errors = "2>&1"
        elif operator in ("&>", "&>>") or (operator == ">&" and not descriptor and not target.isdigit()):
            out, errors = (operator, target), "2>&1"
        elif operator in (">", ">>", ">|") and descriptor in ("", "1"):
            out = (operator, target)
        elif operator in (">", ">>", ">|") and descriptor == "2":
            errors = "" if target == "/dev/null" else f"2> >({_tee(operator, target)} >&2)"
        else:
            return None
    shown = [f"| {_tee(*out)}"] if out is not None and out[1] != "/dev/null" else []
    return " ".join([*kept, *([errors] if errors else []), *shown])


def _pieces(redirect: Node, data: bytes) -> tuple[str, str, str]:
    """Descriptor, operator and target."""
    descriptor, operator, target = "", "", ""
    for child in redirect.children:
        if child.type == "file_descriptor":
            descriptor = text_of(child, data)
        elif child.is_named:
            target = text_of(child, data)
        else:
            operator = child.type
    return descriptor, operator, target


def _tee(operator: str, target: str) -> str:
    return f"tee -a {target}" if operator.endswith(">>") else f"tee {target}"
