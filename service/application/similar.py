"""How alike two signatures are, and from where on they are the same failure."""

from __future__ import annotations

import re
from collections import Counter

from service.domain.evidence import Frame, Signature

#: The kind of a run that was ended since it took too long; nothing failed in it.
HANG = "hang"
PYTEST = "pytest failure"
#: The most that two can come to whose messages name different things.
OTHER_NAMES = 0.6
_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|[`‘]([^`'’\n]{1,80})['`’]")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
#: From here on two signatures are of the same failure; docs/signatures.md shows what was measured.
THRESHOLD = 0.7
#: What type, message and frames count. A message counts the more, the more words it has, frames the more there are.
TYPE, COMMON_TYPE, FEW_WORDS, MANY_WORDS, FRAMES = 1.0, 0.5, 1.0, 3.0, 1.5
ENOUGH_WORDS, ENOUGH_FRAMES = 12, 3
#: A placeholder says little: what stood there varies. A frame counts this much of the one further in.
PLACEHOLDER, OUTWARD = 0.2, 0.6
#: A frame of the same file in another function, of the same function in a file that was moved, and beside it.
SAME_FILE, MOVED, SAME_FOLDER = 0.5, 0.8, 0.2

#: Types that say little, and messages that any place of a program may end with, however long they are.
_COMMON_TYPES = {"AssertionError", "Error", "Exception", "RuntimeError", "TypeError", "ValueError", "error", "panic"}
_COMMON = re.compile(
    r"out of memory|illegal memory access|device-side assert|NCCL error|segmentation|watchdog", re.IGNORECASE
)
_LITTLE = frozenset(
    "a an and are assert at be but by can cannot expected for got in is it not of on or that the this to with".split()  # noqa: SIM905
)
_TOKENS = re.compile(r"<\w+>|[^\W_]+(?:[_.][^\W_]+)*|[=!<>]=")


def similarity(one: Signature, other: Signature) -> float:
    """0 to 1: the weighed mean of type, message and frames. What only one of the two has counts as different.

    Messages that name different things are about different failures, however much else they share.
    """
    found = _similarity(one, other)
    return min(found, OTHER_NAMES) if _named(one) != _named(other) else found


def _named(signature: Signature) -> tuple[frozenset[str], str]:
    """What the message puts in quotes, but for what varies; of a test, which one it is."""
    quoted = {name for groups in _QUOTED.findall(signature.message) for name in groups if name}
    test = signature.frames[0].function if signature.kind == PYTEST and signature.frames else ""
    return frozenset(name for name in quoted if _NAME.fullmatch(name)), test


def _similarity(one: Signature, other: Signature) -> float:
    if (one.kind == HANG) != (other.kind == HANG):
        return 0.0
    words = _tokens(one.message), _tokens(other.message)
    types = {_type(one), _type(other)}
    parts = [(COMMON_TYPE if types & _COMMON_TYPES else TYPE, float(len(types) == 1))]
    if all(words):
        many = _telling(f"{one.message} {other.message}", words)
        parts.append((FEW_WORDS + (MANY_WORDS - FEW_WORDS) * many, _dice(*words) ** 2))
    elif any(words):
        parts.append((FEW_WORDS, 0.0))
    if one.frames or other.frames:
        many = min(max(len(one.frames), len(other.frames)) / ENOUGH_FRAMES, 1.0)
        parts.append((FRAMES * (1 + many) / 2, _overlap(one.frames, other.frames)))
    return sum(weight * alike for weight, alike in parts) / sum(weight for weight, _ in parts)


def _telling(messages: str, words: tuple[dict[str, float], dict[str, float]]) -> float:
    """0 to 1: how much two messages say about which failure it is."""
    return 0.0 if _COMMON.search(messages) else min(max(sum(bag.values()) for bag in words) / ENOUGH_WORDS, 1.0)


def same(one: Signature, other: Signature) -> bool:
    return similarity(one, other) >= THRESHOLD


def _type(signature: Signature) -> str:
    return signature.type.rpartition(".")[2].rpartition("::")[2]


def _tokens(message: str) -> dict[str, float]:
    counted = Counter(_TOKENS.findall(message.lower()))
    return {word: (PLACEHOLDER if _says_little(word) else 1.0) * count for word, count in counted.items()}


def _says_little(word: str) -> bool:
    return word in _LITTLE or word[0] in "<=!>"


def _dice(one: dict[str, float], other: dict[str, float]) -> float:
    shared = sum(min(weight, other.get(word, 0.0)) for word, weight in one.items())
    return 2 * shared / (sum(one.values()) + sum(other.values()))


def _overlap(one: tuple[Frame, ...], other: tuple[Frame, ...]) -> float:
    """Each frame of one looks for its best in the other, and the other way round; the innermost counts most."""
    return (_covered(one, other) + _covered(other, one)) / 2 if one and other else 0.0


def _covered(one: tuple[Frame, ...], other: tuple[Frame, ...]) -> float:
    weights = [OUTWARD**depth for depth in range(len(one))]
    found = sum(weight * max(_alike(mine, its) for its in other) for weight, mine in zip(weights, one, strict=True))
    return found / sum(weights)


def _alike(one: Frame, other: Frame) -> float:
    if one == other:
        return 1.0
    if one.file == other.file:
        return SAME_FILE if one.function and other.function else MOVED
    moved = one.function == other.function != "" and one.function not in ("__init__", "forward", "__call__", "main")
    beside = one.file.rpartition("/")[0] == other.file.rpartition("/")[0] != ""
    return MOVED if moved else SAME_FOLDER if beside else 0.0
