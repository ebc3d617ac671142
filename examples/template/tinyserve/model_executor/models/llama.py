"""Llama: full attention everywhere."""


def layer_kinds(layers: int) -> list[str]:
    return ["full"] * layers
