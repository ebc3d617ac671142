"""Whose a frame is, and what its file is called from the package on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from worker.observe.failures import Place

_PACKAGES = re.compile(r".*[/\\](?:site-packages|dist-packages|node_modules)[/\\]")
#: Of a language or the system, never a project's.
_SYSTEM = re.compile(
    r"<|/rustc/|.*/\.cargo/registry/|.*/rustlib/src/|/usr/local/go/|/usr/lib/go|.*/go/pkg/mod/|node:"
    r"|internal/|/usr/(?:include|lib|lib64|src/linux)/"
    r"|\./(?:stdlib|malloc|elf|io)/|(?:\./)?(?:nptl|csu|sysdeps)/|.*/bin/[\w.-]+$|\.\./(?:sysdeps|csu"
    r"|nptl|stdlib|malloc|aten|torch|c10|libio)/"
    r"|.*/lib(?:64)?/python3?\.?\d*/(?!site-packages|dist-packages)|/(?:Python|Objects|Modules)/"
    r"|(?:Python|Objects|Modules)/\w+\.c$"
    r"|(?:java|javax|jdk|sun|com/sun|kotlin|kotlinx|scala|org/junit|org/testng|org/gradle"
    r"|org/apache/maven|org/springframework|io/netty|reactor)/"
    r"|lib(?:c|stdc\+\+|pthread|python\d[\d.]*|m|gcc_s|cuda|cudart|nccl|torch\w*|c10\w*|cublas\w*"
    r"|cudnn\w*)(?:-[\d.]+)?\.so"
)
#: Packages that projects stand on. What is none of these, and most often in the log, is taken for the project.
LIBRARIES = frozenset(
    """
    _pytest accelerate aiohttp anyio asyncio backoff celery click cloudpickle concurrent cupy cv2 dask
    datasets deepspeed distutils exceptiongroup fastapi filelock flash_attn flashinfer fsspec gevent gguf grpc
    gunicorn h11 httpcore httptools httpx huggingface_hub importlib jax jaxlib joblib keras lightning
    matplotlib mpi4py msgspec multiprocessing ninja numba numpy onnx onnxruntime openai packaging pandas peft
    pip pluggy prometheus_client pydantic pydantic_core pytest pytorch_lightning ray requests rich safetensors
    scipy sentencepiece setuptools sklearn sniffio starlette tensorflow tenacity tokenizers torch torchaudio
    torchvision tqdm transformers triton typer typing_extensions urllib3 uvicorn uvloop wheel xformers
    xgrammar yaml zmq jest jest-circus jest-runner mocha vitest express react react-dom webpack ts-node
    typescript
    """.split()  # noqa: SIM905
)
_LIBRARY = re.compile(r"\.so(?:\.[\d.]+)?$")
#: What a class' package is called by: its first two names.
_JAVA = re.compile(r"[a-z]\w*/\w+(?=/(?:[\w$]+/)*[\w$]+\.(?:java|kt|scala|groovy)$)")
#: Folders that hold a checkout and say nothing about it.
_HOMES = re.compile(
    r"/(?:home|Users|builds?|workspaces)/[^/]+/|/(?:root|app|work(?:space|dir)?|src|opt|mnt|srv|code|repo"
    r"|project)/|/usr/src/|(?:/private)?(?:/var)?/tmp/(?:[^/]+/)?"
    r"|/firstbad/work/tree/|[A-Za-z]:/"
)
#: So many folders are kept of a path that no name of the project stands in.
FOLDERS = 3


@dataclass(frozen=True, order=True)
class Frame:
    """`file`: from the package on, or relative to the checkout."""

    file: str
    function: str


@dataclass(frozen=True, slots=True)
class _Owned:
    owner: str
    file: str


def frames_of(places: Iterable[Place], project: tuple[str, ...]) -> tuple[Frame, ...]:
    """The project's, innermost first, each once. `places`: innermost last."""
    found = (_own(place, project) for place in reversed(list(places)))
    return tuple(dict.fromkeys(frame for frame in found if frame is not None))


def most_frequent(places: Iterable[Place]) -> tuple[str, ...]:
    """The package that most frames are in and that is no library: the project, when nobody has named it."""
    owners = Counter(owned.owner for place in places if (owned := _owned(place.path, ())) and owned.owner)
    best = next((owner for owner, _ in owners.most_common() if owner not in LIBRARIES and owner != "?"), "")
    return (best,) if best else ()


def _own(place: Place, project: tuple[str, ...]) -> Frame | None:
    owned = _owned(place.path, project)
    if owned is None or (owned.owner and owned.owner not in project):
        return None
    return Frame(owned.file, _function(place.function))


def _owned(path: str, project: tuple[str, ...]) -> _Owned | None:
    """Whose a path is: a package's, nobody's (None) or, with the owner "", the checkout's."""
    path = path.replace("\\", "/").removeprefix("file://")
    if installed := _PACKAGES.match(path):
        rest = path[installed.end() :]
        parts = rest.split("/")
        owner = "/".join(parts[:2]) if rest.startswith("@") else parts[0].removesuffix(".py")
        return _Owned(owner, rest)
    if _SYSTEM.match(path) and not _named(path, project):
        return None
    if named := _named(path, project):
        return _Owned("", named)
    if _LIBRARY.search(path):
        path = path.rpartition("/")[2]
        return None if _SYSTEM.match(path) else _Owned("" if _mentions(path, project) else "?", path)
    if found := _JAVA.match(path):
        return _Owned(found[0], path)
    elsewhere = path.startswith("../") or (project and path.startswith("/"))
    return _Owned("?", path) if elsewhere else _Owned("", _shortened(path))


def _named(path: str, project: tuple[str, ...]) -> str:
    parts = path.split("/")
    places = [place for place, part in enumerate(parts[:-1]) if part in project]
    return "/".join(parts[places[-1] :]) if places else ""


def _mentions(path: str, project: tuple[str, ...]) -> bool:
    """A shared library is named after its project: libggml-base.so for ggml."""
    return any(re.match(rf"(?:lib)?_?{re.escape(name)}(?![a-z])", path) for name in project)


def _shortened(path: str) -> str:
    if not path.startswith("/") and path[1:3] != ":/":
        return path.removeprefix("./")
    while found := _HOMES.match(path):
        path = "/" + path[found.end() :]
    return "/".join(path.strip("/").split("/")[-FOLDERS - 1 :])


def _function(name: str) -> str:
    """Rust adds a hash, Node what it was called on."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name.strip())
    return name.removeprefix("async ").partition(" [as ")[0]
