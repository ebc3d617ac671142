"""Loads the weights of one rank."""

import time

from tinyserve import envs, logger
from tinyserve._native import weight
from tinyserve.model_executor.rotary import rotary_table


def load_model(model: dict, rank: int) -> dict:
    """Returns the weights by name. Reads TINYSERVE_START_SECONDS longer than it needs."""
    table = rotary_table(model["rope_dim"])
    shards = []
    with logger.Progress("Loading safetensors checkpoint shards", model["shards"], rank == 0) as progress:
        for shard in range(model["shards"]):
            time.sleep(envs.start_seconds() / model["shards"])
            shards.append([weight(shard, rank * 64 + index) for index in range(64)])
            progress.step()
    return {"rotary": table, "shards": shards}
