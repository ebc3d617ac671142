"""What the executor can ask of a rank."""

import time

from tinyserve import logger, platforms
from tinyserve.v1.worker.model_runner import ModelRunner


class Worker:
    def __init__(self, config: dict, rank: int) -> None:
        self.config = config
        self.rank = rank
        self.model_runner = ModelRunner(config, rank)

    def init_device(self) -> None:
        free = platforms.free_gib(self.config["headroom"])
        logger.info(f"Rank {self.rank} uses {platforms.DEVICE_NAME}, {free:.2f} GiB of memory are free")

    def load_model(self) -> None:
        started = time.perf_counter()
        self.model_runner.load_model()
        logger.info(f"Loading weights took {time.perf_counter() - started:.2f} seconds")

    def compile_or_warm_up_model(self) -> float:
        """Returns the seconds it took."""
        started = time.perf_counter()
        self.model_runner.capture_model()
        seconds = time.perf_counter() - started
        logger.info(f"Graph capturing finished in {seconds:.2f} secs")
        return seconds

    def execute_model(self, prompt: str, max_tokens: int) -> str:
        return self.model_runner.execute_model(prompt, max_tokens)
