"""The front end's view of the engine."""

from tinyserve import logger
from tinyserve.v1.engine.core_client import CoreClient


class AsyncLLM:
    """Starts the engine; use it as a context manager, so that it ends with its front end."""

    def __init__(self, config: dict) -> None:
        self.config = config
        logger.info(f"Initializing an engine for model={config['model']['name']!r}")
        self.core = CoreClient.make_client(config)

    @classmethod
    def from_engine_config(cls, config: dict) -> "AsyncLLM":
        return cls(config)

    def __enter__(self) -> "AsyncLLM":
        return self

    def __exit__(self, *exc: object) -> None:
        self.core.shutdown()

    def generate(self, prompt: str, max_tokens: int) -> str:
        return self.core.call({"prompt": prompt, "max_tokens": max_tokens})["text"]
