"""The user's own files in a command: what git does not have, or has in another version, is fixed and lies over each
commit, as it would with `git bisect run` in the checkout itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import BadRequest
from service.local.history import Checkout

#: What is larger, or holds NUL bytes, is no script: it is used where it lies.
LARGEST = 1 << 20


@dataclass(frozen=True)
class Laid:
    """`command`: as it is run. `files`: paths from the top of the checkout on, to lie over each commit."""

    command: tuple[str, ...]
    files: tuple[str, ...]

    def sums(self, top: Path) -> tuple[tuple[str, str], ...]:
        return tuple((name, hashlib.sha256((top / name).read_bytes()).hexdigest()) for name in self.files)


def laid_over(checkout: Checkout, command: Sequence[str], more: Sequence[str]) -> Laid:
    """`more`: files and folders that the user names beside the command. Errors: BadRequest."""
    parts = [_word(checkout, word, first=not place) for place, word in enumerate(command)]
    named = [name for path in more for name in _all_below(checkout, path)]
    files = dict.fromkeys([*(name for _, name in parts if name is not None), *named])
    return Laid(tuple(word for word, _ in parts), tuple(files))


def _word(checkout: Checkout, word: str, *, first: bool) -> tuple[str, str | None]:
    """The word as it is run, and the file to lay over, if it names one that git does not have so."""
    if word.startswith(("/", "-")) or not word or (first and "/" not in word):
        return word, None
    path = checkout.top / checkout.folder / word
    inside = _inside(checkout, path)
    if not _is_file(path):
        return word, None
    if inside is None:
        return str(path.absolute()), None
    if not checkout.bare and checkout.tracked_as_is(inside):
        return word, None
    if _inside(checkout, path.resolve()) is None or not _is_text(path):
        # Of a virtual environment, or built: it needs what lies around it.
        return (str(path.absolute()) if first else word), None
    return word, inside


def _inside(checkout: Checkout, path: Path) -> str | None:
    """From the top of the checkout on; None outside."""
    plain = Path(os.path.normpath(path))
    below = plain.is_relative_to(checkout.top) and plain != checkout.top
    return str(plain.relative_to(checkout.top)) if below else None


def _is_file(path: Path) -> bool:
    """Not so of a whole program after -c, which may be too long for a name."""
    with contextlib.suppress(OSError, ValueError):
        return path.is_file()
    return False


def _is_text(path: Path) -> bool:
    return path.stat().st_size <= LARGEST and b"\0" not in path.read_bytes()


def _all_below(checkout: Checkout, path: str) -> Iterator[str]:
    full = checkout.top / checkout.folder / path
    if _inside(checkout, full) is None or not full.exists():
        advice = "name a file or folder of this checkout; what lies outside is found where it is"
        raise BadRequest(f"--with {path}: there is no such thing in this checkout", value=path, advice=advice)
    for each in [full] if full.is_file() else sorted(full.rglob("*")):
        inside = _inside(checkout, each)
        if each.is_file() and inside is not None and not inside.startswith(".git/"):
            yield inside


def keep(top: Path, files: Sequence[str], folder: Path) -> None:
    """Copies them as they are now, so that no later change of the user's reaches a probe."""
    for name in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(top / name, target)


def lay(files: Sequence[str], folder: Path, tree: Path) -> None:
    for name in files:
        target = tree / name
        for above in reversed(target.relative_to(tree).parents):
            _make_way(tree / above, folder=True)
        _make_way(target, folder=False)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, target)


def _make_way(path: Path, *, folder: bool) -> None:
    """A script, or a commit, may have put something else there, a link out of the work tree too."""
    if path.is_symlink() or (path.is_file() and folder):
        path.unlink()
    elif path.is_dir() and not folder:
        shutil.rmtree(path)
