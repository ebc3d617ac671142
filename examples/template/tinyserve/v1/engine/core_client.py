"""Starts the engine process and talks to it."""

import subprocess
import sys

from tinyserve.distributed.channel import Channel

STOP_WITHIN_S = 5
COMMAND = "from tinyserve.v1.engine.core import run_engine_core; run_engine_core()"


class CoreClient:
    def __init__(self, config: dict) -> None:
        # -P: a checkout that happens to be the working directory must not hide the installed package.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.channel = Channel(self.process.stdout.fileno(), self.process.stdin.fileno())
        try:
            self.launch_core_engine(config)
        except BaseException:
            self.shutdown()
            raise

    @staticmethod
    def make_client(config: dict) -> "CoreClient":
        return CoreClient(config)

    def launch_core_engine(self, config: dict) -> None:
        self.channel.send(config)
        self.wait_for_engine_startup()

    def wait_for_engine_startup(self) -> None:
        if self.channel.receive() is None:
            failed: dict[str, int] = {}
            raise RuntimeError(
                f"Engine core initialization failed. See root cause above. Failed core proc(s): {failed}"
            )

    def call(self, request: dict) -> dict:
        self.channel.send(request)
        reply = self.channel.receive()
        if reply is None:
            raise RuntimeError("EngineCore died while it answered a request. See above.")
        return reply

    def shutdown(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
