"""Every environment variable that tinyserve reads."""

import hashlib
import os


def start_seconds() -> float:
    """TINYSERVE_START_SECONDS: how much longer than needed loading the weights takes."""
    return float(os.environ.get("TINYSERVE_START_SECONDS", "0"))


def headroom() -> float:
    """The share of memory that others leave free: another at each start, or from TINYSERVE_SEED when that is set."""
    seed = os.environ.get("TINYSERVE_SEED")
    noise = os.urandom(8) if seed is None else hashlib.sha256(seed.encode()).digest()[:8]
    return int.from_bytes(noise, "big") / 2**64
