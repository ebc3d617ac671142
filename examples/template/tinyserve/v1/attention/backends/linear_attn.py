"""Linear attention: a recurrent state for each request instead of a cache of keys and values."""

from tinyserve.v1.attention.backends.utils import AttentionMetadata

STATE_BYTES = 65536


class LinearAttentionBuilder:
    """Prepares what the kernels read."""

    def __init__(self, decode_query_len: int) -> None:
        self.decode_query_len = decode_query_len
        self.built = 0

    def build(self, batch: AttentionMetadata) -> list[int]:
        """Where the queries of each request begin."""
        self.built += 1
        return [index * batch.query_len for index in range(batch.num_reqs + 1)]

    def build_for_graph_capture(self, batch: AttentionMetadata) -> list[int]:
        """A captured graph has no room for queries of other lengths than decode_query_len."""
        starts = self.build(batch)
        assert starts[-1] == batch.num_tokens, (
            f"Linear attention supports graph capture of uniform decode batches only: "
            f"{batch.num_tokens} tokens cannot be {batch.num_reqs} queries of {self.decode_query_len}"
        )
        return starts

    def state_bytes(self, num_reqs: int) -> int:
        return num_reqs * STATE_BYTES
