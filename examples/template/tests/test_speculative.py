"""The value of --speculative-config."""

from tinyserve.config.speculative import parse_speculative_config


def test_a_valid_value_is_returned_as_it_is():
    config = parse_speculative_config('{"method": "mtp", "num_speculative_tokens": 3}')
    assert config["num_speculative_tokens"] == 3
