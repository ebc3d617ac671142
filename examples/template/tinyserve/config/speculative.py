"""The value of --speculative-config."""

import json

METHODS = ("mtp", "next_mtp")
MAX_SPECULATIVE_TOKENS = 3


def parse_speculative_config(text: str) -> dict:
    """Raises ValueError with the reason when the text is no usable configuration."""
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--speculative-config is not JSON: {error}") from error
    if not isinstance(config, dict) or config.get("method") not in METHODS:
        raise ValueError(f"--speculative-config needs a method of {', '.join(METHODS)}: {text}")
    tokens = config.get("num_speculative_tokens")
    if not isinstance(tokens, int) or not 1 <= tokens <= MAX_SPECULATIVE_TOKENS:
        raise ValueError(f"num_speculative_tokens must be 1 to {MAX_SPECULATIVE_TOKENS}: {text}")
    return config
