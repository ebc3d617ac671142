"""By what a wheel is known: everything that can change it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.git_history import GitHistory
from service.application.keys import Keys, build_settings, scope_of
from service.domain.bisection import Bisection, Builder, Reproduction, Request, Setup
from service.domain.lifecycle import BisectionState
from service.domain.recipe import Recipe, SandboxKind
from tests.adapters.samples import T0
from tests.repositories import NewCommit, build_repository

FIRST = {
    "pkg/a.py": "1",
    "csrc/a.c": "1",
    "docs/a.md": "1",
    "tools/build.sh": "1",
    "setup.py": "1",
    "pyproject.toml": "[project]\nname = 'a'\n",
}
RECIPE = Recipe(
    "r", build_command="bash tools/build.sh", native_paths=("/csrc/**",), wheel_paths=("/pkg/**", "/csrc/**")
)


def keys(folder: Path, changed: Mapping[str, str], recipe: Recipe = RECIPE) -> tuple[Keys, Keys]:
    """Of a commit, and of the next one, which changes these files."""
    shas = build_repository(folder / "repository", [NewCommit(files=FIRST), NewCommit(files=changed)])
    request = Request(str(folder / "repository"), ("a",), "b", Reproduction("x"), recipe, SandboxKind.PROCESS)
    setup = Setup(builder=Builder(None, "3.11", "x86_64"))
    bisection = Bisection("b1", BisectionState.SEARCHING, request, "me", T0, T0, (shas[0],), shas[1], setup=setup)
    found = scope_of(GitHistory(folder / "mirrors", allow_file=True), bisection).keys
    return found[shas[0]], found[shas[1]]


@pytest.mark.parametrize(
    ("changed", "content", "native"),
    [
        ({"docs/a.md": "2"}, False, False),
        ({"pkg/a.py": "2"}, True, False),
        ({"csrc/a.c": "2"}, True, True),
        ({"tools/build.sh": "2"}, True, True),
        ({"setup.py": "2"}, True, True),
        ({"setup.cfg": "2"}, True, True),
        ({"MANIFEST.in": "2"}, True, True),
        ({".gitattributes": "*.c text eol=crlf\n"}, True, True),
        ({"csrc/.gitattributes": "*.c text eol=crlf\n"}, True, True),
        ({"pyproject.toml": "[project]\nname = 'a'\ndependencies = ['b']\n"}, True, False),
        ({"pyproject.toml": "[project]\nname = 'a'\n[tool.ruff]\nselect = []\n"}, True, False),
        ({"pyproject.toml": "[project]\nname = 'a'\n[tool.cibuildwheel]\nskip = 'x'\n"}, True, True),
        ({"pyproject.toml": "[project]\nname = 'a'\n[build-system]\nrequires = ['x']\n"}, True, True),
        ({"pyproject.toml": "[project]\nname = 'a'\ndynamic = ['version']\n"}, True, True),
    ],
    ids=lambda value: next(iter(value.items()))[1][-24:] if isinstance(value, dict) else str(value),
)
def test_what_changes_a_key(tmp_path: Path, changed: dict[str, str], content: bool, native: bool) -> None:
    before, after = keys(tmp_path, changed)
    assert ((before.content != after.content), (before.native != after.native)) == (content, native)


def test_a_commit_that_is_told_to_the_build_is_content(tmp_path: Path) -> None:
    told = replace(RECIPE, build_command="bash tools/build.sh $FIRSTBAD_COMMIT")
    before, after = keys(tmp_path, {"docs/a.md": "2"}, told)
    assert before.content != after.content
    assert before.native == after.native


def test_a_commit_that_git_fills_in_is_content(tmp_path: Path) -> None:
    filled = {".gitattributes": "pkg/_v.py export-subst\n"}
    shas = build_repository(
        tmp_path / "repository", [NewCommit(files={**FIRST, **filled}), NewCommit(files={"docs/a.md": "2"})]
    )
    request = Request(str(tmp_path / "repository"), ("a",), "b", Reproduction("x"), RECIPE, SandboxKind.PROCESS)
    bisection = Bisection("b1", BisectionState.SEARCHING, request, "me", T0, T0, (shas[0],), shas[1])
    found = scope_of(GitHistory(tmp_path / "mirrors", allow_file=True), bisection).keys
    assert found[shas[0]].content != found[shas[1]].content


def test_a_projects_own_way_to_overlays_reads_settings_itself(tmp_path: Path) -> None:
    own = replace(RECIPE, overlay_command="make overlay")
    before, after = keys(tmp_path, {"setup.py": "2"}, own)
    assert (before.content != after.content, before.native == after.native) == (True, True)


@pytest.mark.parametrize(
    "odd",
    [
        b"tool = 3",
        b"[project]\ndynamic = 5",
        b"[project]\ndynamic = ['version', 1]",
        b"project = 1",
        b"x = " + b"[" * 5000,
        b"\xff",
        b"x = " + b"1" * 5000,
        b"a." * 40_000 + b"b = 1",
        b"x = 1\n" * 20_000,
    ],
)
def test_an_odd_pyproject_has_settings_too(odd: bytes) -> None:
    assert build_settings(odd) == build_settings(odd) != build_settings(b"")


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_settings_of_any_text(one: bytes, other: bytes) -> None:
    assert build_settings(one) == build_settings(one)
    assert isinstance(build_settings(other), str)
