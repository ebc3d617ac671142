"""Stands for the LiveLogs port: what each attempt writes, or lets happen, step by step."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Key = tuple[str, str, int]
Steps = list[bytes | Callable[[], object]]


@dataclass
class LiveWorkers:
    """`writes`: by attempt, pieces and what is to happen between them. An attempt without any is silent for ever.

    `pipes`: of attempts that write when a test does.
    """

    writes: dict[Key, Steps] = field(default_factory=dict)
    pipes: dict[Key, queue.Queue[bytes]] = field(default_factory=dict)
    closed: list[Key] = field(default_factory=list)

    def follow(self, kind: str, id: str, attempt: int) -> Iterator[bytes]:
        key = (kind, id, attempt)
        try:
            if key in self.pipes:
                yield from _piped(self.pipes[key])
                return
            steps = self.writes.pop(key, None)
            for step in steps or []:
                if isinstance(step, bytes):
                    yield step
                else:
                    step()
            while steps is None:
                yield b""
        finally:
            self.closed.append(key)

    def pipe(self, kind: str, id: str, attempt: int = 1) -> queue.Queue[bytes]:
        self.pipes[kind, id, attempt] = found = queue.Queue()
        return found


def _piped(pipe: queue.Queue[bytes]) -> Iterator[bytes]:
    while True:
        try:
            yield pipe.get(timeout=0.05)
        except queue.Empty:
            yield b""
