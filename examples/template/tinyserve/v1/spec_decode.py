"""Draft tokens of the multi-token prediction head."""


def decode_query_len(num_speculative_tokens: int) -> int:
    """Tokens that one request brings to a decode step: its last one and its drafts."""
    return num_speculative_tokens + 1
