"""firstbad parse: with a service and without one, and into submit."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.cli.conftest import Terminal
from tests.fakes.flow import FakeFlow

ISSUE = """\
It works in v0.9.2 but fails in v0.10.0.

```bash
vllm serve tiny/model --tensor-parallel-size 2
```
"""


def test_a_text_becomes_a_request_file_with_where_each_value_comes_from(terminal: Terminal, flow: FakeFlow) -> None:
    done = terminal.run("parse", "-", typed=ISSUE.encode())
    assert (done.status, done.err) == (0, "")
    assert yaml.safe_load(done.out) == {
        "good": "v0.9.2",
        "bad": "v0.10.0",
        "script": "vllm serve tiny/model --tensor-parallel-size 2\n",
        "resources": {"gpus": 2},
    }
    assert "# good: high: 'works in' stands near it: 'v0.9.2' at 12" in done.out
    assert "# repo: missing. Which repository is it?" in done.out
    assert not flow.bisections()


def test_without_a_service_it_reads_the_same(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    path.write_text(ISSUE)
    here = terminal.with_env(FIRSTBAD_URL="").run("parse", str(path), "--json")
    there = terminal.run("parse", str(path), "--json")
    assert json.loads(here.out) == json.loads(there.out)


def test_what_it_prints_can_be_submitted(terminal: Terminal, flow: FakeFlow) -> None:
    printed = terminal.run("parse", "-", typed=ISSUE.encode()).out
    repo = "repo=https://git.example.org/team/vllm.git"
    done = terminal.run("submit", "-", "--set", repo, "--wait", "0", typed=printed.encode())
    assert done.status == 0, done.err
    (made,) = flow.bisections()
    assert (made.request.good, made.request.bad) == (("v0.9.2",), "v0.10.0")
    assert made.request.recipe.resources.gpus == 2


def test_nothing_of_a_text_leaves_its_comment_or_reaches_the_terminal(terminal: Terminal) -> None:
    nasty = "Works in 0.9.2\x1b[31m, fails in\r0.10.0.\n\n```bash\nvllm serve x\x1b]0;t\x07\u2028bad: evil\n```\n"
    done = terminal.run("parse", "-", typed=nasty.encode())
    assert done.status == 0
    assert "\x1b" not in done.out
    assert yaml.safe_load(done.out)["bad"] == "0.10.0"


def test_a_file_that_is_not_there_and_a_recipe_that_is_none_are_told(terminal: Terminal) -> None:
    for arguments in (("parse", "none.md"), ("parse", "-", "--project", "none-such")):
        done = terminal.run(*arguments)
        assert done.status == 2
        assert done.err.startswith("firstbad: ")
