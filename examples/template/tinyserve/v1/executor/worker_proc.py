"""The process of one rank: does what the executor calls, until that has gone."""

import signal

from tinyserve import logger, native_version  # noqa: F401
from tinyserve.distributed.channel import Channel, own_channel
from tinyserve.v1.worker.worker import Worker


def worker_main() -> None:
    parent = own_channel()
    start = parent.receive()
    if start is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    world_size = start["config"]["tensor_parallel_size"]
    logger.decorate(f"Worker_TP{start['rank']}" if world_size > 1 else "Worker")
    worker_busy_loop(Worker(start["config"], start["rank"]), parent)


def worker_busy_loop(worker: Worker, parent: Channel) -> None:
    while call := parent.receive():
        try:
            result = getattr(worker, call["method"])(*call["args"])
        except Exception as error:
            logger.exception("WorkerProc hit an exception.")
            parent.send({"error": str(error) or type(error).__name__})
        else:
            parent.send({"result": result})
