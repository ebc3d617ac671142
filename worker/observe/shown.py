"""All that a stored log shows, in one pass over its lines: the root failure's signature, and signs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from worker.observe.blocks import blocks_of
from worker.observe.reading import Reading
from worker.observe.sighting import Lookout, Sign
from worker.observe.signature import Signature, extent, signature_of


@dataclass(frozen=True)
class Shown:
    """`signature`: None when nothing in the log says that it failed. `signs`: each rule once, at its first line."""

    signature: Signature | None
    signs: tuple[Sign, ...]


def shown(lines: Iterable[bytes], project: tuple[str, ...], *, hang: bool = False) -> Shown:
    """Lines are numbered from 1. `project`, `hang`: as of `signature`."""
    reading, lookout = Reading(project), Lookout(project)
    settled = False
    for block in blocks_of(lines):
        lookout.read(block)
        if not settled:
            reading.read(block)
            settled = reading.settled(block.first)
    found = signature_of(reading, project, hang=hang)
    if found is None:
        return Shown(None, lookout.signs((0, 0), ""))
    return Shown(found, lookout.signs(extent(reading, found), found.said))
