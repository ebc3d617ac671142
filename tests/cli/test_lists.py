"""Lists of bisections and recipes, narrowed, and what programs get of them."""

from __future__ import annotations

import json
from dataclasses import replace

from service.domain.access import Caller, Scope
from service.domain.recipe import Recipe
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow


def listed(terminal: Terminal, *arguments: str) -> list[str]:
    done = terminal.run("list", "--json", *arguments)
    assert (done.status, done.err) == (0, "")
    return [item["id"] for item in json.loads(done.out)]


def test_a_list_is_narrowed_by_who_submitted_what(terminal: Terminal, flow: FakeFlow) -> None:
    ann = flow.submit(SUBMISSION, Caller("ann", Scope.SUBMIT)).id
    bob = flow.submit(replace(SUBMISSION, bad="v9.9.9"), Caller("bob", Scope.SUBMIT)).id
    assert listed(terminal) == [bob, ann]
    assert listed(terminal, "--submitter", "ann") == [ann]
    assert listed(terminal, "--text", "V9.9") == [bob]
    assert listed(terminal, "--sort", "created") == [ann, bob]
    assert listed(terminal, "--project", flow.kept[ann].project) == [bob, ann]
    none = terminal.run("list", "--project", "none")
    assert (none.status, none.out) == (0, "")
    assert "No bisection is like that" in none.err


def test_more_than_a_page_is_listed_where_more_is_asked_for(terminal: Terminal, flow: FakeFlow) -> None:
    made = [flow.submit(SUBMISSION, TESTER).id for _ in range(230)]
    assert listed(terminal, "-n", "220") == made[::-1][:220]
    assert len(listed(terminal)) == 20


def test_recipes_are_listed_and_shown(terminal: Terminal, flow: FakeFlow) -> None:
    flow.known_recipes["python"] = Recipe("python", build_command="uv build\nmv x y", secrets=("HF_TOKEN",))
    lines = terminal.run("recipes", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "python", "source"]
    shown = terminal.run("recipes", "show", "python").out
    assert "HF_TOKEN" in shown and "mv x y" in shown
    assert json.loads(terminal.run("recipes", "show", "python", "--json").out)["name"] == "python"
    assert [one["name"] for one in json.loads(terminal.run("recipes", "list", "--json").out)] == ["python", "source"]
    unknown = terminal.run("recipes", "show", "nonsense")
    assert (unknown.status, unknown.err.splitlines()[0]) == (2, "firstbad: there is no recipe 'nonsense'")
