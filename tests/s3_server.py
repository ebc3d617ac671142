"""A throwaway S3 server that can go away, and that can begin to ask who is there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import httpx

from tests.waiting import eventually

BUCKET = "team-wheels"


class S3:
    """moto's server as a process of its own. What it holds is gone when it stops."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.url = f"s3://{BUCKET}/firstbad"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """What a client needs."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "ada",
            "AWS_SECRET_ACCESS_KEY": "lovelace",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        env = {**os.environ, **self.variables}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers)
        self.reset()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.endpoint}/moto-api/").is_success
        except httpx.TransportError:
            return False

    def reset(self) -> None:
        """Empty, but for the bucket."""
        httpx.post(f"{self.endpoint}/moto-api/reset-auth", content="inf").raise_for_status()
        httpx.post(f"{self.endpoint}/moto-api/reset").raise_for_status()
        httpx.put(f"{self.endpoint}/{BUCKET}").raise_for_status()

    def know_nobody(self) -> None:
        """From now on every key is wrong."""
        httpx.post(f"{self.endpoint}/moto-api/reset-auth", content="0").raise_for_status()

    def put(self, path: str, content: bytes) -> None:
        httpx.put(f"{self.endpoint}/{BUCKET}/firstbad/{path}", content=content).raise_for_status()

    def names(self) -> list[str]:
        listing = httpx.get(f"{self.endpoint}/{BUCKET}?list-type=2").text
        return [part.partition("</Key>")[0] for part in listing.split("<Key>")[1:]]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
