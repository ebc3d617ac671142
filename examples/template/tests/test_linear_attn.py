"""Metadata of linear attention."""

from tinyserve.v1.attention.backends.linear_attn import LinearAttentionBuilder
from tinyserve.v1.attention.backends.utils import AttentionMetadata


def test_queries_begin_one_after_another():
    batch = AttentionMetadata(num_reqs=2, num_tokens=8, query_len=4)
    assert LinearAttentionBuilder(4).build(batch) == [0, 4, 8]
