"""What a process sandbox sees of the node: the system read-only, the interpreter, certificates, and nothing of ours."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

#: The system, as far as it exists. /var, /home, /root, /run, /srv and the like are not part of it.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix/store")

#: The one variable that may name a folder.
CERTIFICATES = "SSL_CERT_DIR"


@dataclass(frozen=True)
class View:
    """`visible`: read-only, besides the system. `hidden`: masked, should a visible folder hold it."""

    visible: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    def shown(self, files: tuple[Path, ...] = ()) -> list[Path]:
        """Folders and files to show, parents first, none within another: the system's own links are not among them."""
        wanted = [Path(name) for name in SYSTEM if Path(name).is_dir() and not Path(name).is_symlink()]
        wanted += [Path(sys.base_prefix), *self.visible, *files]
        shown: list[Path] = []
        for path in sorted(set(wanted), key=lambda path: len(path.parts)):
            if path.exists() and not any(path.is_relative_to(other) for other in shown):
                shown.append(path)
        return shown

    def links(self) -> dict[Path, str]:
        """The system folders that are links, as /bin is to usr/bin."""
        return {Path(name): str(Path(name).readlink()) for name in SYSTEM if Path(name).is_symlink()}

    def masked(self, shown: list[Path]) -> list[Path]:
        """The hidden folders that would be seen."""
        hidden = [path.resolve() for path in self.hidden]
        return [path for path in hidden if path.is_dir() and any(path.is_relative_to(other) for other in shown)]


def files_of(passed: Mapping[str, str], hidden: Iterable[Path]) -> tuple[Path, ...]:
    """The files and certificate folders that the node's own variables name, unless they touch a hidden folder.

    Never to be asked about an order's variables: those would then show any file of the node.
    """
    named = [(name, Path(value)) for name, value in passed.items() if value.startswith("/")]
    found = [path for name, path in named if path.is_file() or (name == CERTIFICATES and path.is_dir())]
    closed = [path.resolve() for path in hidden]
    return tuple(path for path in found if not any(_touch(path.resolve(), other) for other in closed))


def _touch(path: Path, other: Path) -> bool:
    return path.is_relative_to(other) or other.is_relative_to(path)


def resolver() -> tuple[Path, ...]:
    """The resolver's file, which may lie outside of what is shown of the system."""
    path = Path("/etc/resolv.conf").resolve()
    return (path,) if path.is_file() else ()


def interpreter() -> Path:
    """The Python that our own environment stands on, without what our environment adds to it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [path for path in (Path(sys.base_prefix) / "bin" / n for n in ("python3", name)) if path.exists()]
    return found[0] if found else Path(sys.executable).resolve()


@functools.cache
def uv() -> Path | None:
    """The uv that was installed with us."""
    try:
        return Path(find_uv_bin())
    except FileNotFoundError:
        return None
