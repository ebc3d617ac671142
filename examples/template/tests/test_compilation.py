"""Sizes of captured graphs."""

from tinyserve.config.compilation import capture_sizes


def test_sizes_are_dense_for_small_batches():
    assert capture_sizes(16) == [1, 2, 4, 8, 16]


def test_no_size_is_above_the_limit():
    assert capture_sizes(3) == [1, 2]
