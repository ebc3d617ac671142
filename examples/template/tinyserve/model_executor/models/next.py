"""Next: three linear attention layers, then one of full attention."""

FULL_ATTENTION_INTERVAL = 4


def layer_kinds(layers: int) -> list[str]:
    return ["full" if (layer + 1) % FULL_ATTENTION_INTERVAL == 0 else "linear" for layer in range(layers)]
