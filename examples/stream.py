"""Writes drafts to a new repository through one `git fast-import`, whatever git is configured to do here."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from examples.history import Draft, Tag
from examples.tree import render


class GitError(RuntimeError):
    """git could not do what was asked; holds what it said."""


def write_repository(folder: Path, drafts: Iterable[Draft], tags: Iterable[Tag]) -> dict[int, str]:
    """Fills an empty folder. Returns the SHA of each draft's number. Errors: GitError."""
    git(folder, "init", "--quiet", "--template=")
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    marks: dict[int, int] = {}
    with tempfile.NamedTemporaryFile() as exported:
        import_stream(folder, Path(exported.name), stream(drafts, marks, tags))
        shas = dict(line.split() for line in Path(exported.name).read_text().splitlines())
    git(folder, "reset", "--quiet", "--hard")
    return {number: shas[f":{mark}"] for number, mark in marks.items()}


def import_stream(folder: Path, marks: Path, parts: Iterator[bytes]) -> None:
    command = ["git", "fast-import", "--quiet", "--done", "--date-format=raw", f"--export-marks={marks}"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=folder, env=clean_environment(), stdin=subprocess.PIPE, stderr=errors)
        try:
            assert process.stdin
            with process.stdin as pipe:
                pipe.writelines(parts)
        except BrokenPipeError:
            pass  # its exit status and its words say more
        status = process.wait()
        errors.seek(0)
        if status:
            raise GitError(
                f"git fast-import failed with status {status}: {errors.read().decode(errors='replace').strip()}"
            )


def stream(drafts: Iterable[Draft], marks: dict[int, int], tags: Iterable[Tag]) -> Iterator[bytes]:
    """Notes each draft's mark while it is written."""
    for draft in drafts:
        marks[draft.number] = len(marks) + 1
        yield from commit(draft, marks)
    for tag in tags:
        yield tag_command(tag, marks[tag.number]).encode()
    yield b"done\n"


def commit(draft: Draft, marks: Mapping[int, int]) -> Iterator[bytes]:
    parents = zip(("from", *["merge"] * 9), draft.parents, strict=False)
    message = draft.message.encode()
    yield (
        f"commit refs/heads/{draft.branch}\nmark :{marks[draft.number]}\n"
        f"author {draft.author}\ncommitter {draft.committer}\ndata {len(message)}\n"
    ).encode()
    yield message + b"\n" + b"".join(f"{word} :{marks[parent]}\n".encode() for word, parent in parents)
    for path in draft.paths:
        yield file_change(path, draft)
    yield b"\n"


def file_change(path: str, draft: Draft) -> bytes:
    if path not in draft.tree:
        return f"D {path}\n".encode()
    data = render(path, draft.tree[path])
    return f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"


def tag_command(tag: Tag, mark: int) -> str:
    if tag.tagger is None:
        return f"reset refs/tags/{tag.name}\nfrom :{mark}\n\n"
    return f"tag {tag.name}\nfrom :{mark}\ntagger {tag.tagger}\ndata {len(tag.name) + 1}\n{tag.name}\n\n"


def git(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["git", *arguments], cwd=folder, env=clean_environment(), capture_output=True, text=True)
    if done.returncode:
        raise GitError(f"git {arguments[0]} failed with status {done.returncode}: {done.stderr.strip()}")


def clean_environment() -> dict[str, str]:
    """No configuration, no variables of git's, and no language of the machine's reach the repository."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_TERMINAL_PROMPT": "0",
    }
