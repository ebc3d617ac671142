"""The fake that the doors are tested on has the methods of the real flow."""

from __future__ import annotations

import inspect

import pytest

from service.application.flow import Flow
from tests.fakes.flow import FakeFlow

WRITING = (
    "submit",
    "cancel",
    "pause",
    "resume",
    "prioritize",
    "bring_back",
    "judge_again",
    "create_webhook",
    "remove_webhook",
    "ping_webhook",
    "override",
    "reprobe",
    "extend",
    "adjust",
    "clone",
)
READING = (
    "draft",
    "bisection",
    "bisections",
    "probes",
    "probe",
    "report",
    "findings",
    "git_log",
    "curve",
    "builds",
    "log",
    "build_log",
    "events",
    "nodes",
    "page",
    "probe_page",
    "build_page",
    "node_page",
    "build_of",
    "node_of",
    "happened",
    "last_event",
    "version",
    "recipes",
    "recipe",
    "checks",
    "figures",
)


@pytest.mark.parametrize("name", WRITING + READING)
def test_a_method_has_the_same_signature(name: str) -> None:
    assert inspect.signature(getattr(FakeFlow, name)) == inspect.signature(getattr(Flow, name))
