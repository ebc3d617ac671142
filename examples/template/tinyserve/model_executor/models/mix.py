"""Mix: full attention, and experts in every second layer."""

EXPERTS = 8


def expert_layers(layers: int) -> list[int]:
    return list(range(1, layers, 2))
