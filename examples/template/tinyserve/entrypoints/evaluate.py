"""`tinyserve eval`: how often quantized weights choose the answer that full ones choose."""

import math

from tinyserve import native_version  # noqa: F401
from tinyserve._native import weight
from tinyserve.model_executor.quantization import dequantize, quantize

ANSWERS = 4
WIDTH = 12


def evaluate(questions: int) -> None:
    if questions < 1:
        raise ValueError(f"--questions must be at least 1: {questions}")
    hits = sum(choose(number, exact) == choose(number, rounded) for number in range(questions))
    accuracy = hits / questions
    error = (accuracy * (1 - accuracy) / questions) ** 0.5
    print("|Tasks    |Version|n-shot|Metric     |   |Value |   |Stderr|")
    print("|---------|------:|-----:|-----------|---|-----:|---|-----:|")
    print(f"|tiny_math|      1|     0|exact_match|↑  |{accuracy:.4f}|±  |{error:.4f}|")


def choose(question: int, value) -> int:
    """The answer with the largest score."""
    scores = [math.fsum(value(question, answer, i) for i in range(WIDTH)) for answer in range(ANSWERS)]
    return scores.index(max(scores))


def exact(question: int, answer: int, index: int) -> float:
    return weight(question, answer * WIDTH + index) / 2**31 - 1


def rounded(question: int, answer: int, index: int) -> float:
    return dequantize(quantize(exact(question, answer, index)))
