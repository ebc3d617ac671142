"""Turns a step's result into tokens, at the pace of an invented device."""

import time

from tinyserve._native import generate

#: What one token costs, in microseconds: the kernels of its step, and copying it back.
KERNEL_US = 400
COPY_US = 100


def sample(prompt: str, max_tokens: int) -> str:
    time.sleep(max_tokens * (KERNEL_US + COPY_US) / 1e6)
    return generate(prompt, max_tokens)
