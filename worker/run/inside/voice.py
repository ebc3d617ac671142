"""What the script or the check says itself: its output apart from a server's."""

from __future__ import annotations

from _collections import deque  # type: ignore[import-not-found]

#: Of the output so many bytes are kept for the metric, its end.
MOST = 1024 * 1024
#: Longer lines tell nothing.
LINE = 2000
#: What it says is told in the end, also when it is no verdict: a slip of the pen shall not pass for nothing said.
MARK = b"firstbad:"
#: Said in the place of a command that cannot be run, by us.
OURS = b"firstbad: cannot run "


class Voice:
    """`keep`: how many bytes of it are wanted afterwards. `told`: the last line that begins as one with a verdict."""

    def __init__(self, keep: int = 0) -> None:
        self.keep = keep
        self.told: bytes | None = None
        self.carry = b""
        self.kept: deque[bytes] = deque()
        self.size = 0

    def hear(self, data: bytes) -> None:
        """Constant memory, and next to no time for what says nothing."""
        if self.keep:
            self.remember(data)
        text = self.carry + data
        end = text.rfind(b"\n") + 1
        if text.find(MARK, 0, end) >= 0:
            self.look(text[:end])
        # Of a line that has no end yet its beginning tells whether it can be one.
        self.carry = text[end : end + LINE + 1]

    def close(self) -> None:
        """Its last line may have no end."""
        self.look(self.carry)
        self.carry = b""

    def look(self, text: bytes) -> None:
        for line in text.split(b"\n"):
            if line.startswith(MARK) and not line.startswith(OURS) and len(line) <= LINE:
                self.told = line

    def remember(self, data: bytes) -> None:
        self.kept.append(data)
        self.size += len(data)
        while self.size - len(self.kept[0]) >= self.keep:
            self.size -= len(self.kept.popleft())

    def text(self) -> bytes:
        return b"".join(self.kept)[-self.keep :] if self.keep else b""
