"""The files at a commit: for each path the values of its slots, the edits made and the blocks added.

A tree is data, and so are changes and merges of trees; text is made only when a file is written.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from examples.blocks import render_block, render_new_model
from examples.edits import EDITS
from examples.slots import SLOTS, TRACE_FILES, Slot

TEMPLATE = Path(__file__).parent / "template"
#: Keys of a file's facts that are no slots.
EDIT, BLOCK, LICENSED, NEW_MODEL = "edit/", "block/", "licensed", "new_model"

Facts = Mapping[str, str]
Tree = Mapping[str, Facts]


@cache
def template_texts() -> dict[str, str]:
    """Every file of the template by its path; caches that tools leave there are no part of it."""
    paths = [path for path in sorted(TEMPLATE.rglob("*")) if path.is_file() and not is_cache(path)]
    return {path.relative_to(TEMPLATE).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def is_cache(path: Path) -> bool:
    return any("cache" in part for part in path.relative_to(TEMPLATE).parts)


def first_tree() -> Tree:
    return {path: {} for path in template_texts()}


def with_facts(tree: Tree, path: str, **facts: str) -> Tree:
    return {**tree, path: {**tree.get(path, {}), **facts}}


def with_slot(tree: Tree, key: str, value: str, only: str | None = None) -> Tree:
    """Sets a slot in every file that has it, or in one."""
    for slot in SLOTS:
        if slot.key == key and only in (None, slot.path):
            tree = with_facts(tree, slot.path, **{key: value})
    return tree


def slot_value(tree: Tree, key: str, path: str | None = None) -> str:
    """The slot's value in that file, or in the first that has it."""
    slot = slot_at(key, path)
    return tree[slot.path].get(key, slot.default)


@cache
def slot_at(key: str, path: str | None) -> Slot:
    return next(slot for slot in SLOTS if slot.key == key and path in (None, slot.path))


@cache
def slots_in(path: str) -> list[Slot]:
    return [slot for slot in SLOTS if slot.path == path]


def merged(base: Tree, ours: Tree, theirs: Tree) -> Tree:
    """Their changes since base on top of ours, fact by fact."""
    result = dict(ours)
    for path in base.keys() | theirs.keys():
        if theirs.get(path) == base.get(path):
            continue
        if path not in theirs:
            result.pop(path, None)
        else:
            result[path] = merged_facts(base.get(path, {}), ours.get(path, {}), theirs[path])
    return result


def merged_facts(base: Facts, ours: Facts, theirs: Facts) -> Facts:
    result = dict(ours)
    for key in base.keys() | theirs.keys():
        if theirs.get(key) == base.get(key):
            continue
        if key in theirs:
            result[key] = theirs[key]
        else:
            result.pop(key, None)
    return result


def changed_paths(before: Tree, after: Tree) -> list[str]:
    paths = before.keys() | after.keys()
    return sorted(
        path for path in paths if before.get(path) is not after.get(path) and before.get(path) != after.get(path)
    )


def render(path: str, facts: Facts) -> bytes:
    text = render_new_model(facts[NEW_MODEL]) if NEW_MODEL in facts else template_texts()[path]
    for slot in slots_in(path):
        if slot.key in facts:
            text = replace_once(text, slot.text(slot.default), slot.text(facts[slot.key]))
    for index, edit in enumerate(EDITS if path in TRACE_FILES else ()):
        if edit.path == path and f"{EDIT}{index}" in facts:
            text = replace_once(text, edit.old, edit.new)
    for key in sorted(key for key in facts if key.startswith(BLOCK)):
        text += render_block(path, *parse_block(facts[key]))
    return (license_line(path, facts) + text).encode()


def parse_block(value: str) -> tuple[str, int]:
    name, revision = value.split("#")
    return name, int(revision)


def license_line(path: str, facts: Facts) -> str:
    return "# SPDX-License-Identifier: Apache-2.0\n" if facts.get(LICENSED) else ""


def replace_once(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the template"
    return text.replace(old, new)
