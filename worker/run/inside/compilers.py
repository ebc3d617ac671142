# ruff: noqa: PTH112, PTH118 (see __init__)
"""A compiler cache for builds, where the sandbox has ccache or sccache. What the recipe or the image says counts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Links to ccache under the names of the compilers, on Debian and on Fedora.
NAMED = ("/usr/lib/ccache", "/usr/lib64/ccache")
LAUNCHERS = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER")


def cached(env: Mapping[str, str], root: str, size: str, has: Mapping[str, bool], own_path: bool) -> dict[str, str]:
    """The variables of a build. `root`: the job folder; `size`: the cache's most, as "5G"; `has`: the tools that are
    there; `own_path`: the recipe sets PATH, which is then left as it is."""
    wanted: dict[str, str] = {}
    if has["sccache"]:
        wanted.update(_sccache(root, size))
        wanted.update(dict.fromkeys(LAUNCHERS, "sccache"))
    if has["ccache"]:
        wanted.update(_ccache(root, size))
        wanted.update(dict.fromkeys(LAUNCHERS, "ccache"))
    found = {**wanted, **env}
    folder = next((name for name in NAMED if os.path.isdir(name)), None)
    if has["ccache"] and folder is not None and not own_path:
        found["PATH"] = f"{folder}:{env['PATH']}"
    return found


def _ccache(root: str, size: str) -> dict[str, str]:
    return {
        "CCACHE_DIR": os.path.join(root, "cache", "ccache"),
        "CCACHE_BASEDIR": os.path.join(root, "work"),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": size,
        # Through a launcher and the links at once, the compiler whose time ccache would look at is ccache itself.
        "CCACHE_COMPILERCHECK": "%compiler% --version",
    }


def _sccache(root: str, size: str) -> dict[str, str]:
    return {
        "SCCACHE_DIR": os.path.join(root, "cache", "sccache"),
        "SCCACHE_CACHE_SIZE": size,
        # Where the network is shared, the server on the usual port may be that of another build.
        "SCCACHE_SERVER_PORT": str(_free_port()),
        "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
        "RUSTC_WRAPPER": "sccache",
    }


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
