"""What the device offers. There is none: all numbers are those of an invented card."""

DEVICE_NAME = "Tiny H1"
MEMORY_GIB = 80.0


def free_gib(headroom: float) -> float:
    """Free memory before anything is loaded; headroom is the share, between 0 and 1, that others leave."""
    return MEMORY_GIB * (0.95 + 0.04 * headroom)


def kv_cache_tokens(headroom: float, utilization: float) -> int:
    return int(free_gib(headroom) * utilization * 1024) * 16
