"""The whole OpenAPI document against what is answered: thousands of requests that follow its schemas, or nearly.

FIRSTBAD_FUZZ: examples of each operation, and sequences of calls; `make fuzz` sets many."""

from __future__ import annotations

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.generation.stateful import run_state_machine_as_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.doors.api.watching import Limits
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow

EXAMPLES = int(os.environ.get("FIRSTBAD_FUZZ", "8"))
LONG = "FIRSTBAD_FUZZ" in os.environ
SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=6,
    deadline=None,
    derandomize=not LONG,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def schema() -> Any:
    flow = FakeFlow()
    flow.find(flow.submit(SUBMISSION, TESTER).id, 5)
    app = create_app(flow, allowed_hosts=["*"], watching=Limits(longest_s=0.1, beat_s=0.05))
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


def quick(case: Any) -> Any:
    """Nobody waits here."""
    (case.query or {}).pop("wait", None)
    return case


def test_every_operation_answers_as_it_is_documented() -> None:
    asked = 0
    for found in schema().get_all_operations():
        operation = found.ok()

        @SETTINGS
        @given(case=operation.as_strategy())
        def answers(case: Any) -> None:
            nonlocal asked
            asked += 1
            answer = quick(case).call()
            case.validate_response(answer, checks=CHECKS)

        answers()
    assert asked > EXAMPLES * 10


def test_what_was_begun_is_asked_for_by_the_links_of_the_document() -> None:
    class Calls(schema().as_state_machine()):  # type: ignore[misc]
        def before_call(self, case: Any) -> None:
            quick(case)

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    run_state_machine_as_test(Calls, settings=SETTINGS)
