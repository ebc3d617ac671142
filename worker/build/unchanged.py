"""What must be as it was for a wheel to be put together without a build."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from worker.build.additions import check_packages
from worker.build.comparison import Comparison
from worker.build.impossible import CannotOverlay
from worker.build.project import PYPROJECT
from worker.build.sources_of_wheel import Origins
from worker.build.steering import check_steering
from worker.build.trees import kind

#: A generated file of at most this many bytes is searched for what it may record of its commit.
_STAMP_BYTES = 1024 * 1024
#: The same for a version that has changed.
_VERSION_BYTES = 64 * 1024 * 1024
#: As many digits of a commit's SHA as tools write at least.
_SHORT = 7
#: What compilers make. Of bytecode the name says of which file it is.
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".a", ".lib", ".o", ".pyc", ".exe", ".cubin", ".hsaco", ".ptx")
#: How tools call what they make of a file.
_MAKERS = re.compile(r"_(pb2|pb2_grpc|grpc|generated|capnp|thrift|parser|lexer|ui|rc)$")


def check(it: Comparison) -> None:
    """Errors: CannotOverlay."""
    info, names = it.wheel.info, set(it.wheel.members)
    if f"{info}/RECORD" not in names:
        raise CannotOverlay("the base wheel has no RECORD")
    if signed := names & {f"{info}/RECORD.jws", f"{info}/RECORD.p7s"}:
        raise CannotOverlay(f"the base wheel is signed by {min(signed)}")
    check_steering(it.code, it.readme)
    check_packages(it.before.tree, it.after.tree, it.taken)
    for member, path in it.origins.stamped.items():
        if it.differs(path):
            raise CannotOverlay(f"{path} changed, and the build writes into {member} what is not in the tree")
    _check_description(it)
    _check_made(it)
    _check_commit(it)
    if "version" in it.fields:
        _check_version(it)


def _check_description(it: Comparison) -> None:
    if (it.metadata[1] or b"").strip() and it.readme is None:
        for path in it.readmes:
            if it.differs(path):
                raise CannotOverlay(f"{path} changed, and the base wheel's description is not made of it alone")
    if it.readme is not None and it.readme not in it.after.tree.files:
        raise CannotOverlay(f"{it.readme}, the description of the base wheel, was removed")


def _check_made(it: Comparison) -> None:
    """What was made of a file that changed: it lies beside it under its name, or the build's code names both."""
    stems: dict[str, list[str]] = defaultdict(list)
    for member in sorted(it.origins.made):
        stems[_stem(member)].append(member)
    generated = _generated(it)
    for path in _changed(it):
        for made in _candidates(path, stems):
            beside = path.rpartition("/")[0] in set(_folders(made, it.origins))
            if beside or made in generated:
                raise CannotOverlay(f"{path} changed, of which the build may have made {made}")
        if generated and path != it.readme and _is_read(path, it):
            raise CannotOverlay(f"{path} changed, which the build names, and may have made {generated[0]} of")
        if path in it.taken and _is_filled(path, it):
            raise CannotOverlay(f"{path} changed, which the build names, and may change on its way into the wheel")


def _changed(it: Comparison) -> Iterator[str]:
    paths = sorted({*it.before.tree.files, *it.after.tree.files} - {PYPROJECT})
    return (path for path in paths if it.differs(path))


def _generated(it: Comparison) -> list[str]:
    """Members that the build wrote, but for those that say what the wheel is and those that compilers make."""
    inner = (name for name in sorted(it.origins.made) if not name.startswith(f"{it.wheel.info}/"))
    return [name for name in inner if not name.endswith(_COMPILED) and ".so." not in name]


def _is_read(path: str, it: Comparison) -> bool:
    """Whether what makes files names this one, or all of its kind."""
    texts = (it.code.words, it.code.native)
    if path in it.before.named or any(words.names(path) for words in texts):
        return True
    by_folder = any(not it.code.apart(path).isdisjoint(words.folders) for words in texts)
    return kind(path) != ".py" and (by_folder or any(words.has_suffix(path) for words in texts))


def _is_filled(path: str, it: Comparison) -> bool:
    """What is in the wheel as it lies in the tree may be so by chance: nothing was there to be filled in."""
    member = it.taken[path]
    inside = not member.startswith(f"{it.wheel.info}/") and path != it.readme
    return inside and it.code.customises and it.code.names(path) and not path.endswith(".py")


def _candidates(path: str, stems: Mapping[str, list[str]]) -> list[str]:
    found = list(stems.get(_stem(path), []))
    if kind(path) != ".py":
        found += stems.get(f"_{_stem(path)}", [])
    return found if _stem(path) else []


def _stem(path: str) -> str:
    return _MAKERS.sub("", path.rpartition("/")[2].partition(".")[0])


def _folders(member: str, origins: Origins) -> Iterator[str]:
    """The tree's folders of which the member's folder holds files; bytecode lies one folder deeper."""
    there = member.replace("/__pycache__/", "/").rpartition("/")[0]
    return (folder for folder, inside in origins.folders.items() if there in inside)


def _kept(it: Comparison) -> list[str]:
    """Members that the build wrote, and that stay."""
    return sorted({*it.origins.made, *it.origins.stamped} - {f"{it.wheel.info}/RECORD"})


def _check_commit(it: Comparison) -> None:
    """The new wheel would say that it is of the base's commit."""
    short, metadata = it.base_sha[:_SHORT], f"{it.wheel.info}/METADATA"
    if short in it.wheel.version:
        raise CannotOverlay(f"the name of the base wheel records its commit: {it.wheel.version}")
    for member in _kept(it):
        if member == metadata:
            text = "\n".join(line.text for line in it.metadata[0]).encode()
        else:
            text = it.wheel.read(member) if it.wheel.size(member) <= _STAMP_BYTES else b""
        if short.encode() in text:
            raise CannotOverlay(f"{member} of the base wheel records the commit that it was built of")


def _check_version(it: Comparison) -> None:
    old = re.compile(rb"(?<![0-9.])" + re.escape(str(it.before.table.get("version"))).encode() + rb"(?![0-9.])")
    for member in _kept(it):
        small = it.wheel.size(member) <= _VERSION_BYTES
        if not member.startswith(f"{it.wheel.info}/") and small and old.search(it.wheel.read(member)):
            raise CannotOverlay(f"the version changed, and {member} of the base wheel seems to hold the old one")
