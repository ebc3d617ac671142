"""Watchers of Server-Sent Events, many in one process.

`python -m benchmarks.api.watchers URL PLAN`: PLAN holds the id of a bisection for each watcher, and the tokens to ask
with. Says `ready` when all streams have begun and ends with a line of JSON when its input does: of each watcher
whether its stream was well, and each event's id with the time of its arrival.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

#: A caller without a token is its address, and may have so many watchers (`watching.Limits`).
EACH = 125
#: Streams begun at a time.
AT_ONCE = 50


class Watcher:
    def __init__(self, id: str) -> None:
        self.id, self.status, self.ended = id, 0, False
        self.arrived: list[tuple[int, float]] = []
        self.begun = asyncio.Event()

    async def watch(self, host: str, port: int, address: str, token: str) -> None:
        try:
            reader, writer = await asyncio.open_connection(host, port, local_addr=(address, 0))
            writer.write(_asked(host, self.id, token))
            self.status = int((await reader.readline()).split(b" ", 2)[1])
            while line := await reader.readline():
                # One is a line of its own, whatever the chunks are.
                if line.startswith(b"id: "):
                    self.arrived.append((int(line[4:]), time.time()))
                elif line.startswith(b"retry:") or self.status != 200:
                    self.begun.set()
        except OSError as error:
            print(f"{self.id}: {error}", file=sys.stderr)
        self.ended = True
        self.begun.set()


def _asked(host: str, id: str, token: str) -> bytes:
    lines = [f"GET /api/v1/bisections/{id}/events HTTP/1.1", f"Host: {host}", "Accept: text/event-stream"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([*lines, "", ""]).encode()


async def watch(url: str, ids: list[str], tokens: list[str]) -> list[Watcher]:
    host, port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
    watchers, tasks = [Watcher(id) for id in ids], []
    for number, watcher in enumerate(watchers):
        token = tokens[number % len(tokens)] if tokens else ""
        tasks.append(asyncio.create_task(watcher.watch(host, port, f"127.0.0.{2 + number // EACH}", token)))
        if number % AT_ONCE == AT_ONCE - 1:
            await watcher.begun.wait()
    await asyncio.gather(*(watcher.begun.wait() for watcher in watchers))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    # Before they are cancelled, which ends them too.
    for watcher, task in zip(watchers, tasks, strict=True):
        watcher.ended = task.done()
        task.cancel()
    return watchers


def main() -> None:
    url, plan = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    watchers = asyncio.run(watch(url, plan["ids"], plan["tokens"]))
    kept = [{"id": one.id, "well": one.status == 200 and not one.ended, "arrived": one.arrived} for one in watchers]
    print(json.dumps(kept))


if __name__ == "__main__":
    main()
