"""The table of commands says what the commands are, and loads none of them before it is called."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from service.cli import status
from service.cli.index import ENTRIES
from tests.cli.conftest import Terminal

LOADED = {name: entry.load(name) for name, entry in ENTRIES.items()}
#: With those of groups, as "db upgrade".
WHOLE = {
    **{name: command for name, command in LOADED.items() if not hasattr(command, "commands")},
    **{
        f"{name} {inner}": command
        for name, group in LOADED.items()
        for inner, command in getattr(group, "commands", {}).items()
    },
}


def examples(command: object) -> list[str]:
    told = re.findall(r"Example:\[/dim\] (.*)", getattr(command, "epilog", None) or "")
    return [line.replace("\\[", "[") for line in told]


@pytest.mark.parametrize("name", ENTRIES)
def test_the_line_of_a_command_is_how_its_own_help_begins(name: str) -> None:
    assert (LOADED[name].help or "").startswith(ENTRIES[name].line)


@pytest.mark.parametrize("name", WHOLE)
def test_every_command_has_an_example_that_is_taken(name: str) -> None:
    assert examples(WHOLE[name]), f"firstbad {name} shows no example"
    for example in examples(WHOLE[name]):
        words = shlex.split(example.partition(" | ")[0])
        assert words[: 1 + len(name.split())] == ["firstbad", *name.split()]
        # Errors of usage would come here.
        WHOLE[name].make_context(name, words[1 + len(name.split()) :]).close()


@pytest.mark.parametrize("name", WHOLE)
def test_every_command_that_tells_anything_tells_it_to_programs_too(name: str) -> None:
    options = {option for param in WHOLE[name].params for option in param.opts}
    assert "--json" in options or name == "worker"


def test_every_option_and_argument_says_what_it_is() -> None:
    silent = [f"{name} {param.name}" for name, command in WHOLE.items() for param in command.params if not param.help]
    assert silent == []


def test_the_same_option_has_the_same_words_everywhere() -> None:
    said: dict[str, set[str | None]] = {}
    for command in WHOLE.values():
        for param in command.params:
            if param.opts[0] in ("--url", "--home", "--yes"):
                said.setdefault(param.opts[0], set()).add(param.help)
    assert {option: len(words) for option, words in said.items()} == {"--url": 1, "--home": 1, "--yes": 2}


def test_the_help_loads_no_command(terminal: Terminal) -> None:
    program = (
        "import sys\nfrom service.cli import main\nsys.argv = ['firstbad', '--help']\n"
        "try: main()\nfinally: sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert done.returncode == 0
    loaded = set(done.stderr.split())
    assert "service.cli.index" in loaded
    assert not loaded & {"httpx", "pydantic", "sqlalchemy", "fastapi", "firstbad.client", "service.cli.listing"}


@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_and_lists_fit_the_terminal(terminal: Terminal, columns: str) -> None:
    for name in WHOLE:
        done = terminal.with_env(COLUMNS=columns).run(*name.split(), "--help")
        assert (done.status, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= int(columns)


def test_exit_statuses_are_told_in_the_help_of_what_ends_by_them(terminal: Terminal) -> None:
    wide = terminal.with_env(COLUMNS="400")
    for name in ("submit", "watch", "show"):
        assert status.HELP in " ".join(wide.run(name, "--help").out.split())


def test_only_the_whole_command_sets_up_a_shell() -> None:
    for command in (*LOADED.values(), *WHOLE.values()):
        assert not any("--install-completion" in param.opts for param in command.params), command.name
