"""The engine process: owns the workers, answers the front end."""

import signal
import sys

from tinyserve import envs, logger, platforms
from tinyserve.distributed.channel import Channel, own_channel
from tinyserve.v1.executor.multiproc_executor import MultiprocExecutor


class EngineCore:
    def __init__(self, config: dict, parent: Channel) -> None:
        self.headroom = envs.headroom()
        self.config = config | {"headroom": self.headroom}
        self.executor = MultiprocExecutor(self.config, parent)

    def start(self) -> None:
        """Returns when the first request can be taken."""
        self.executor.start_workers()
        self._initialize_kv_caches()
        self._warm_up()

    def _initialize_kv_caches(self) -> None:
        tokens = platforms.kv_cache_tokens(self.headroom, self.config["gpu_memory_utilization"])
        logger.info(f"GPU KV cache size: {tokens:,} tokens")
        concurrency = tokens / self.config["max_model_len"]
        logger.info(f"Maximum concurrency for {self.config['max_model_len']:,} tokens: {concurrency:.2f}x")

    def _warm_up(self) -> None:
        seconds = self.executor.collective_rpc("compile_or_warm_up_model")
        logger.info(f"init engine (profile, create kv cache, warm up model) took {max(seconds):.2f} seconds")

    def step(self, request: dict) -> dict:
        texts = self.executor.collective_rpc("execute_model", request["prompt"], request["max_tokens"])
        return {"text": texts[0]}


def run_engine_core() -> None:
    parent = own_channel()
    config = parent.receive()
    if config is None:
        return
    logger.decorate("EngineCore_0")
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = EngineCore(config, parent)
    try:
        start_or_report(engine)
        run_busy_loop(engine, parent)
    finally:
        engine.executor.shutdown()


def start_or_report(engine: EngineCore) -> None:
    try:
        engine.start()
    except Exception:
        logger.exception("EngineCore failed to start.")
        sys.stderr.write("Process EngineCore_0:\n")
        raise


def run_busy_loop(engine: EngineCore, parent: Channel) -> None:
    """Answers until the front end has gone."""
    parent.send({"status": "ready"})
    while request := parent.receive():
        parent.send(engine.step(request))


def _stop(signum: int, frame: object) -> None:
    sys.exit(0)
