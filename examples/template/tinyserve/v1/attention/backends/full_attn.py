"""Full attention over blocks of cached keys and values."""

from tinyserve.utils import cdiv

BLOCK_SIZE = 16


def blocks_for(num_tokens: int) -> int:
    return cdiv(num_tokens, BLOCK_SIZE)
