"""Stands for the LiveLogs port: what each attempt writes, or lets happen, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class LiveWorkers:
    """`writes`: by attempt, pieces and what is to happen between them. An attempt without any is silent for ever."""

    writes: dict[tuple[str, str, int], list[bytes | Callable[[], object]]] = field(default_factory=dict)
    closed: list[tuple[str, str, int]] = field(default_factory=list)

    def follow(self, kind: str, id: str, attempt: int) -> Iterator[bytes]:
        steps = self.writes.pop((kind, id, attempt), None)
        try:
            for step in steps or []:
                if isinstance(step, bytes):
                    yield step
                else:
                    step()
            while steps is None:
                yield b""
        finally:
            self.closed.append((kind, id, attempt))
