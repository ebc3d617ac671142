"""Messages between processes: one JSON document a line, over a pair of pipes."""

import json
import os
import selectors


class Channel:
    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd, self.write_fd = read_fd, write_fd
        self._buffer = b""

    def fileno(self) -> int:
        return self.read_fd

    def send(self, message: dict) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.write_fd, data) :]

    def receive(self) -> dict | None:
        """Waits for a message; None when the other side has gone."""
        while b"\n" not in self._buffer:
            chunk = os.read(self.read_fd, 65536)
            if not chunk:
                return None
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)


def own_channel() -> Channel:
    """The channel to the process that started this one: its standard input and output."""
    return Channel(0, 1)


def gather(channels: list[Channel], expected: int, parent: Channel) -> list[dict]:
    """Waits for that many messages, in order of the channels. Ends this process when its parent has gone."""
    replies: dict[int, dict] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(parent, selectors.EVENT_READ)
        for rank, channel in enumerate(channels):
            selector.register(channel, selectors.EVENT_READ, rank)
        while len(replies) < expected:
            for key, _ in selector.select():
                if key.fileobj is parent:
                    raise SystemExit(0)
                replies[key.data] = key.fileobj.receive() or {"error": f"rank {key.data} has died"}
                selector.unregister(key.fileobj)
    return [replies[rank] for rank in sorted(replies)]
