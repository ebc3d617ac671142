"""Refs that stand in a text, each as it is written there: nothing is named that is not in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from service.application.parse.blocks import Block
from service.domain import refs
from service.domain.refs import Form, Named, Pair, Pull, Release, Sha, Until

#: More of them are not looked at.
MOST = 300
LONGEST = 300
_TOKEN = re.compile(r"[^\s()\[\]<>\"'`,;|*{}\u2192\u21d2\u201c\u201d]+")
#: good=072d7e5, but not engine==1.2.3.
_SET = re.compile(r"^[A-Za-z_]{1,20}=(?!=)")
_DIGIT = re.compile(r"[0-9]")
_SHA = re.compile(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}|[0-9a-f]{40}|[0-9A-F]{40}")
_DESCRIBED = re.compile(r"v?[0-9][\w.]*-[0-9]+-g[0-9a-f]{7,40}")
_ADDRESS = re.compile(r"(?:127|10|192|172|0|255)\.[0-9]+\.[0-9]+\.[0-9]+")
_WORD = re.compile(r"[A-Za-z][\w.-]*")
#: Between the name of a package and its version.
_FILLERS = frozenset(
    [
        "version",
        "versions",
        "ver",
        "v",
        "release",
        "tag",
        "the",
        "is",
        "at",
        "of",
        "in",
        "on",
        "to",
        "with",
        "using",
        ":",
        "=",
        "==",
        "from",
        "and",
    ]
)
_PULL = frozenset({"pr", "prs", "pull", "request", "mr", "pull-request"})
_NIGHT = re.compile(r"(?i)night|wheel|\bbuilds?\b|\bmain\b|\bdev\b|image|commit")
#: What else has versions in reports.
OTHERS = frozenset(
    [
        "accelerate",
        "aiohttp",
        "aws",
        "bitsandbytes",
        "clang",
        "cmake",
        "compressed-tensors",
        "conda",
        "cublas",
        "cuda",
        "cudnn",
        "cutlass",
        "datasets",
        "debian",
        "deepspeed",
        "diffusers",
        "docker",
        "driver",
        "fastapi",
        "fedora",
        "flash-attn",
        "flash-attention",
        "flashinfer",
        "flashinfer-python",
        "gcc",
        "glibc",
        "huggingface-hub",
        "kernel",
        "libc",
        "linux",
        "llvm",
        "macos",
        "mistral-common",
        "nccl",
        "node",
        "nodejs",
        "numpy",
        "nvcc",
        "nvidia",
        "nvidia-smi",
        "openai",
        "outlines",
        "pandas",
        "pip",
        "protobuf",
        "pydantic",
        "pyarrow",
        "python",
        "pytorch",
        "pyzmq",
        "ray",
        "rhel",
        "rocm",
        "ros",
        "safetensors",
        "scipy",
        "sentence-transformers",
        "setuptools",
        "tensorrt",
        "tiktoken",
        "tokenizers",
        "torch",
        "torchaudio",
        "torchvision",
        "transformers",
        "triton",
        "triton-kernels",
        "ubuntu",
        "uv",
        "windows",
        "xformers",
        "xgrammar",
    ]
)
#: Of models, not of software: Qwen2.5, Llama-3.1.
_MODEL = re.compile(r"(?i)(?:qwen|llama|gemma|phi|mistral|mixtral|glm|deepseek|internvl|minicpm|whisper|gpt|kimi)\b")


@dataclass(frozen=True)
class Mention:
    """`start`, `end`: in the block's text. `package`: by its canonical name, where one is named."""

    block: Block
    start: int
    end: int
    form: Form
    package: str | None = None
    home: str | None = None
    site: str | None = None

    @property
    def value(self) -> str:
        return self.block.text[self.start : self.end]


@dataclass(frozen=True)
class _Token:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def find(block: Block) -> Iterator[Mention]:
    before: list[_Token] = []
    for token in _tokens(block.text):
        if len(token.text) <= LONGEST and _DIGIT.search(token.text):
            found = _mention(block, token, before)
            if found is not None:
                yield found
        before = [*before[-3:], token]


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        bare = found[0].rstrip(".:!?-/=&")
        kept = _SET.sub("", bare.lstrip(":=~@-\u2265>").removeprefix("commit/"))
        yield _Token(found.start() + len(bare) - len(kept), kept)


def _mention(block: Block, token: _Token, before: list[_Token]) -> Mention | None:
    words = [each.text.lower() for each in before]
    last = words[-1] if words else ""
    if token.text.isdigit():
        if last not in _PULL or len(token.text) > 9:
            return None
        return Mention(block, before[-1].start, token.end, Pull(int(token.text)))
    reading = refs.read(token.text)
    form = reading.form
    found = Mention(block, token.start, token.end, form, home=reading.home, site=reading.site)
    match form:
        case Named(name) if reading.home is None:
            is_sha = _SHA.fullmatch(name) or _DESCRIBED.fullmatch(name)
            return found if is_sha and "revision" not in last and "sha256" not in last else None
        case Named() | Sha() | Pair():
            return found if not isinstance(form, Pair) or _is_pair(form) else None
        case Pull():
            start = before[-1].start if last in _PULL else token.start
            return replace(found, start=start)
        case Release():
            return _released(found, form, before)
        case Until():
            return _dated(found, form, before) if _is_build(form, block.text, token) else None
        case _:
            return None


def _is_build(form: Until, text: str, token: _Token) -> bool:
    """A day may be any day."""
    return form.package is not None or ".dev" in token.text or _NIGHT.search(_around(text, token)) is not None


def _dated(found: Mention, form: Until, before: list[_Token]) -> Mention:
    package = form.package or next(_named(before), None)
    name = str(canonicalize_name(package)) if package is not None else None
    return replace(found, package=name if form.package is not None or name in OTHERS else None)


def _is_pair(form: Pair) -> bool:
    """And no path, and nothing that trails off in dots."""
    return all(_SHA.fullmatch(ref) or isinstance(refs.read(ref).form, Release | Sha) for ref in (form.good, form.bad))


def _released(found: Mention, form: Release, before: list[_Token]) -> Mention | None:
    if _ADDRESS.fullmatch(found.value) or _MODEL.search(found.value):
        return None
    package = form.package or next(_named(before), None)
    if package is not None and _MODEL.search(package):
        return None
    name = str(canonicalize_name(package)) if package is not None else None
    return Mention(found.block, found.start, found.end, form, name, found.home, found.site)


def _named(before: list[_Token]) -> Iterator[str]:
    """The word before that may be the name of what the version is of."""
    for token in reversed(before):
        if token.text.lower() in _FILLERS or not token.text:
            continue
        if _WORD.fullmatch(token.text):
            yield token.text
        return


def _around(text: str, token: _Token) -> str:
    return text[max(token.start - 60, 0) : token.end + 40]
