"""Steps of a request."""

from tinyserve.v1.scheduler import decode_steps


def test_drafts_save_steps():
    assert decode_steps(12, 3) == 4
