"""The architectures that tinyserve knows, by the part of a model's name that tells them."""

ARCHITECTURES = {
    "next": {"layers": 48, "hidden": 2048, "shards": 8, "rope_dim": 64},
    "llama": {"layers": 32, "hidden": 4096, "shards": 4, "rope_dim": 128},
    "mix": {"layers": 32, "hidden": 4096, "shards": 6, "rope_dim": 128},
}
