"""Splits what is asked for into steps."""

from tinyserve.utils import cdiv


def decode_steps(max_tokens: int, query_len: int) -> int:
    """Steps until max_tokens are made when each step makes query_len at best."""
    return cdiv(max_tokens, query_len)
