"""One worker process a rank."""

import subprocess
import sys

from tinyserve import logger
from tinyserve.distributed.barrier import expected_arrivals
from tinyserve.distributed.channel import Channel, gather

COMMAND = "from tinyserve.v1.executor.worker_proc import worker_main; worker_main()"


class MultiprocExecutor:
    def __init__(self, config: dict, parent: Channel) -> None:
        self.config = config
        self.parent = parent
        self.world_size = config["tensor_parallel_size"]
        self.processes: list[subprocess.Popen] = []
        self.channels: list[Channel] = []

    def start_workers(self) -> None:
        for rank in range(self.world_size):
            self._start_worker(rank)
        self.collective_rpc("init_device")
        self.collective_rpc("load_model")

    def _start_worker(self, rank: int) -> None:
        process = subprocess.Popen([sys.executable, "-P", "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.processes.append(process)
        channel = Channel(process.stdout.fileno(), process.stdin.fileno())
        channel.send({"rank": rank, "config": self.config})
        self.channels.append(channel)

    def collective_rpc(self, method: str, *args: object) -> list:
        """Calls the method on every worker. Raises RuntimeError when one of them failed."""
        for channel in self.channels:
            channel.send({"method": method, "args": args})
        expected = expected_arrivals(self.world_size)
        return [self.get_response(reply) for reply in gather(self.channels, expected, self.parent)]

    def get_response(self, reply: dict) -> object:
        if "error" in reply:
            raise RuntimeError(
                f"Worker failed with error '{reply['error']}', please check the stack trace above for the root cause"
            )
        return reply["result"]

    def shutdown(self) -> None:
        if any(process.poll() is None for process in self.processes):
            logger.info("Shutting down the workers.")
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
