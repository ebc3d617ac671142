"""Which batch sizes are captured as graphs."""


def capture_sizes(max_num_seqs: int) -> list[int]:
    """Numbers of tokens: dense for small batches, then every eighth."""
    return [size for size in (1, 2, 4, *range(8, max_num_seqs + 1, 8)) if size <= max_num_seqs]
