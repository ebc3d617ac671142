"""The reproduction: the blocks of code, or the command within a line, that show the failure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from service.application.parse import cues
from service.application.parse.blocks import Block
from service.application.parse.draft import Certainty, Field, Origin
from service.domain.servers import Server

_SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "shell-session", "terminal", "shellscript"})
_PYTHONS = frozenset({"python", "py", "python3", "pycon", "ipython"})
_OTHER = frozenset({"diff", "json", "yaml", "toml", "log", "cpp", "c", "cuda", "dockerfile", "ini", "xml", "html"})
_COMMANDS = [
    "vllm",
    "sglang",
    "python",
    "python3",
    "pip",
    "pip3",
    "uv",
    "curl",
    "docker",
    "podman",
    "git",
    "export",
    "torchrun",
    "bash",
    "sh",
    "pytest",
    "wget",
    "lmdeploy",
    "llama-server",
    "llama-cli",
    "trtllm-serve",
    "make",
    "cmake",
    "npm",
    "npx",
    "node",
    "cargo",
    "go",
    "cd",
    "source",
    "conda",
    "accelerate",
    "deepspeed",
    "nohup",
    "ray",
    "tritonserver",
    "text-generation-launcher",
    "genai-perf",
    "lm_eval",
    "evalscope",
    "sudo",
    "env",
    "time",
    "timeout",
    "sleep",
]
_COMMAND = re.compile(
    r"[ \t]*(?:\$ |# (?=\w+ \w))?(?:[A-Z_][A-Z0-9_]{0,60}=\S{0,200} +){0,12}"
    r"(?:\./[\w./-]+\.sh|(?:/[\w./-]{1,80}/)?([\w-]+))"
    r"(?=\s|$|\\)"
)
_IMPORT = re.compile(r"(?m)^[ \t]*(?:>>> )?(?:from [\w.]+ import |import [\w.]+)")
_OUTPUT = re.compile(
    r"Traceback \(most recent call last\)|(?m:^\S{0,60} ?\(?\w{0,20}\)? ?(?:INFO|WARNING|ERROR) \d)"
    r"|Collecting environment information"
    r"|(?m:^\s*File \"[^\"\n]{1,300}\", line \d)"
)
_INLINE = re.compile(r"`([^`\n]{8,600})`")
_REPRO = re.compile(
    r"(?i)repro|steps|minimal|how to|"
    r"command|script|code|run(?:ning)? |launch|serve|start|describe the bug|example|bisect"
)
_SETUP = re.compile(r"(?i)\b(?:pip3?|uv|conda|git clone|git checkout|git submodule|apt|apt-get|wget)\b")
_GPUS = re.compile(r"(?:--tensor-parallel-size|--tp-size|--tp|-tp|tensor_parallel_size)[ =]{1,3}['\"]?([0-9]{1,3})\b")
_STAGES = re.compile(r"(?:--pipeline-parallel-size|--pp-size|-pp|pipeline_parallel_size)[ =]{1,3}['\"]?([0-9]{1,3})\b")
_CLIENT = re.compile(r"(?i)\bcurl\b|\bbench\b|benchmark|lm_eval|evalscope|requests\.|openai|localhost|127\.0\.0\.1")
#: A script may be so long; more is another file.
LONGEST = 32 * 1024
MOST_LINES = 200
#: Of one paragraph, commands within lines.
MOST_INLINE = 50


@dataclass(frozen=True)
class _Piece:
    block: Block
    text: str
    python: bool
    server: bool
    score: int
    origin: Origin


def find(text: str, blocks: Sequence[Block], servers: Sequence[Server], names: Collection[str]) -> list[Field]:
    pieces = list(_pieces(text, blocks, servers, names))
    if not pieces:
        return []
    best = max(pieces, key=lambda piece: piece.score)
    if best.score < 1:
        return []
    used = _with_client(best, pieces)
    script = "".join(_written(piece) for piece in used)
    certainty = Certainty.HIGH if best.score >= 4 else Certainty.MEDIUM if best.score >= 2 else Certainty.LOW
    why = "the code that shows it" if len(used) == 1 else "the server, and what is asked of it"
    fields = [Field("script", script, certainty, why, tuple(piece.origin for piece in used))]
    return [*fields, *_gpus(used)]


def _pieces(text: str, blocks: Sequence[Block], servers: Sequence[Server], names: Collection[str]) -> Iterator[_Piece]:
    for block in blocks:
        if block.kind == "code":
            if (piece := _of_code(text, block, servers, names)) is not None:
                yield piece
        elif block.kind == "prose":
            yield from _inline(block, servers)


def _of_code(text: str, block: Block, servers: Sequence[Server], names: Collection[str]) -> _Piece | None:
    if not block.text.strip() or len(block.text) > LONGEST or block.language in _OTHER:
        return None
    python = block.language in _PYTHONS or (not block.language and _IMPORT.search(block.text) is not None)
    if _OUTPUT.search(block.text) or (not python and not _is_shell(block)):
        return None
    origin = Origin(block.start, block.end, text[block.start : block.end])
    server = not python and _serves(block.text, servers)
    return _Piece(block, block.text, python, server, _score(block, python, server, names), origin)


def _is_shell(block: Block) -> bool:
    lines = [line for line in block.text.split("\n")[:MOST_LINES] if line.strip()]
    commands = [found for line in lines if (found := _COMMAND.match(line)) is not None]
    return any(found[1] is None or found[1] in _COMMANDS for found in commands[:60]) or block.language in _SHELLS


def _score(block: Block, python: bool, server: bool, names: Collection[str]) -> int:
    score = 1 + 3 * server
    told = f"{block.section}\n{block.lead}"
    score += 2 * (_REPRO.search(told) is not None)
    if python:
        score += 2 * any(
            re.search(rf"(?m)^[ \t]*(?:>>> )?(?:from|import) {re.escape(name.replace('-', '_'))}\b", block.text)
            for name in names
        )
    else:
        lines = [
            line for line in block.text.split("\n")[:MOST_LINES] if line.strip() and not line.lstrip().startswith("#")
        ]
        score -= 4 * all(_SETUP.search(line) for line in lines)
    good = cues.cues(block.lead[-120:])
    score -= 3 * bool(good and good[-1].side == "good")
    if re.search(r"(?i)workaround|environment|expected|versions?\b", block.section):
        score -= 3
    return score - 6 * (re.search(r"\b(?:docker|podman) run\b", block.text) is not None)


def _serves(text: str, servers: Sequence[Server]) -> bool:
    return any(_begins(line, server) for line in text.split("\n")[:MOST_LINES] for server in servers)


def _begins(line: str, server: Server) -> bool:
    words = line.replace("python3", "python").split()
    starts = [" ".join(command) for command in server.commands]
    return any(" ".join(words[at : at + 6]).startswith(start) for at in range(min(len(words), 14)) for start in starts)


def _inline(block: Block, servers: Sequence[Server]) -> Iterator[_Piece]:
    for found in islice(_INLINE.finditer(block.text), MOST_INLINE):
        if _serves(found[1], servers):
            around = block.text[max(found.start() - 100, 0) : found.start()]
            told = cues.cues(around)
            score = 2 - 3 * bool(told and told[-1].side == "good")
            yield _Piece(block, found[1] + "\n", False, True, score, block.origin(found.start(1), found.end(1)))


def _with_client(best: _Piece, pieces: Sequence[_Piece]) -> list[_Piece]:
    """A server alone shows nothing where the text goes on with what is asked of it."""
    if not best.server:
        return [best]
    after = [
        piece
        for piece in pieces
        if piece.origin.start > best.origin.end
        and not piece.server
        and piece.score > 0
        and piece.block.kind == "code"
        and piece.block.section == best.block.section
        and _CLIENT.search(piece.text)
    ]
    return [best, *after[:1]]


def _written(piece: _Piece) -> str:
    text = piece.text if piece.text.endswith("\n") else piece.text + "\n"
    if not piece.python:
        return text
    lines = text.split("\n")
    if any(line.startswith(">>> ") for line in lines):
        text = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... "))) + "\n"
    end = next(mark for mark in ("PY", "PYTHON", "END_OF_PYTHON", "E_O_P") if f"\n{mark}\n" not in text)
    return f"python - <<'{end}'\n{text}{end}\n"


def _gpus(used: Sequence[_Piece]) -> Iterator[Field]:
    for piece in used:
        if (found := _GPUS.search(piece.text)) is None:
            continue
        stages = _STAGES.search(piece.text)
        wanted = int(found[1]) * (int(stages[1]) if stages is not None else 1)
        if wanted >= 1:
            at = piece.origin.quoted.find(found[0])
            start = piece.origin.start + max(at, 0)
            quoted = found[0] if at >= 0 else piece.origin.quoted
            origin = Origin(start, start + len(quoted), quoted)
            yield Field("resources.gpus", wanted, Certainty.HIGH, "the server is split over so many", (origin,))
            return
