"""What attention backends are told about a batch."""

from typing import NamedTuple


class AttentionMetadata(NamedTuple):
    num_reqs: int
    num_tokens: int
    #: Tokens of each request in this step.
    query_len: int
