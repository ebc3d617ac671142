"""An open loop: each request is sent when it is due, whether others are answered or not.

`python -m benchmarks.api.client URL PLAN`: PLAN holds what is asked for (`Asked`), a rate, and the tokens to ask with;
the answer is a line of JSON. Plain HTTP/1.1 on connections that stay open, so that it takes little of the processors
that it shares with the service.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Load:
    def __init__(self, url: str, tokens: list[str]) -> None:
        self._host, self._port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
        self._tokens = tokens
        self._idle: list[Connection] = []
        self.connections = 0
        #: By route: seconds from when it was due to its whole answer; statuses that were not right; bytes.
        self.found: dict[str, dict[str, Any]] = {}

    async def run(self, asked: list[dict[str, Any]], rate: float) -> None:
        chance, due, tasks = random.Random(3), time.perf_counter(), []
        for number, each in enumerate(asked):
            due += chance.expovariate(rate)
            if (left := due - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            tasks.append(asyncio.create_task(self._one(each, number, due)))
        await asyncio.wait_for(asyncio.gather(*tasks), 120)

    async def _one(self, asked: dict[str, Any], number: int, due: float) -> None:
        try:
            status, size = await self._answer(self._written(asked, number))
        except (OSError, EOFError) as error:
            status, size = 599, len(str(error))
        kept = self.found.setdefault(asked["route"], {"seconds": [], "wrong": [], "bytes": 0})
        kept["seconds"].append(time.perf_counter() - due)
        kept["bytes"] += size
        if status != asked["right"]:
            kept["wrong"].append(status)

    def _written(self, asked: dict[str, Any], number: int) -> bytes:
        headers = {"Host": self._host, "Accept": "application/json", **dict(asked["headers"])}
        if self._tokens:
            headers["Authorization"] = f"Bearer {self._tokens[number % len(self._tokens)]}"
        if body := asked["body"].encode():
            headers["Content-Length"] = str(len(body))
        lines = [
            f"{asked['method']} {asked['path']} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def _answer(self, request: bytes) -> tuple[int, int]:
        while self._idle:
            reader, writer = self._idle.pop()
            # The service closes what has been idle for some seconds.
            if not reader.at_eof() and not writer.is_closing():
                break
            writer.close()
        else:
            reader, writer = await self._connect()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = await _body(reader, head)
        if "connection: close" in head:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(head.split(" ", 2)[1]), size

    async def _connect(self) -> Connection:
        self.connections += 1
        return await asyncio.open_connection(self._host, self._port)


async def _body(reader: asyncio.StreamReader, head: str) -> int:
    if "transfer-encoding: chunked" in head:
        total = 0
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
            total += size
        await reader.readline()
        return total
    _, found, rest = head.partition("content-length: ")
    size = int(rest.partition("\r\n")[0]) if found else 0
    await reader.readexactly(size)
    return size


def main() -> None:
    url, plan = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    load = Load(url, plan["tokens"])
    asyncio.run(load.run(plan["asked"], plan["rate"]))
    print(json.dumps({"routes": load.found, "cpu_s": time.process_time(), "connections": load.connections}))


if __name__ == "__main__":
    main()
