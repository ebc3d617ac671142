"""Which models of GPUs a request's pattern takes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from service.application.nodes import gpu_class
from service.domain.bisection import Gpu, Node
from service.domain.recipe import Recipe, Resources
from service.domain.recipe_rules import first_flaw

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODES = [
    Node(model, 1, NOW, "alive", gpus=(Gpu(0, model, model.lower(), 80 << 30),))
    for model in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB")
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("h100|h800", "nvidia h100 80gb hbm3"), ("A100.*80GB$", "nvidia a100-sxm4-80gb"), ("H200", None), ("é", None)],
)
def test_a_model_is_found_by_a_part_of_its_name(pattern: str, found: str | None) -> None:
    wanted = Resources(1, pattern)
    assert first_flaw(Recipe("models", resources=wanted)) is None
    assert gpu_class(wanted, NODES, NOW) == found


@pytest.mark.timeout(30)
def test_no_pattern_keeps_the_service_busy() -> None:
    assert gpu_class(Resources(1, r"(\w* ?)*(\w* ?)*(\w* ?)*!"), NODES, NOW) is None
