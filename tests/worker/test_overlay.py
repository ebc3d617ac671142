"""Wheels put together without a build, held against those that real build backends make of the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.projects import BACKENDS, BASE_SHA, FILES, HATCH, SETUPTOOLS, Bases, Files, same_as_built, with_files
from worker.build.overlay import CannotOverlay


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("bases"))


@pytest.fixture(params=sorted(BACKENDS))
def files(request: pytest.FixtureRequest) -> Files:
    return BACKENDS[request.param]


def impossible(bases: Bases, before: Files, after: Files, into: Path, sha: str = BASE_SHA) -> str:
    with pytest.raises(CannotOverlay) as why:
        bases.overlay(before, after, into, sha)
    assert not list(into.glob("*.whl"))
    return str(why.value)


# What is put together is what is built.

CHANGES: dict[str, dict[str, str | None]] = {
    "nothing": {},
    "a module": {"src/demo_pkg/cli.py": "def main():\n    print('other')\n"},
    "an empty module that is filled": {"src/demo_pkg/__init__.py": "X = 1\n"},
    "package data": {"src/demo_pkg/data.json": '{"a": 1}\n'},
    "a new module": {"src/demo_pkg/sub/extra.py": "EXTRA = 3\n"},
    "new data beside data": {"src/demo_pkg/more.json": "[]\n"},
    "a removed module": {"src/demo_pkg/sub/deep.py": None},
    "a removed package": {"src/demo_pkg/sub/deeper/__init__.py": None, "src/demo_pkg/sub/deeper/most.py": None},
    "a renamed module": {"src/demo_pkg/sub/deep.py": None, "src/demo_pkg/sub/deepest.py": "DEEP = 1\n"},
    "a new package": {"src/demo_pkg/asub/__init__.py": "", "src/demo_pkg/asub/one.py": "ONE = 1\n"},
    "the README and the licence": {"README.md": "# Demo\n\nIt does *more*.\n", "LICENSE": "Free for some.\n"},
    "files that are not in the wheel": {
        "tests/test_other.py": "x = 1\n",
        "docs/index.md": "# Other\n",
        "docs/b.md": "b",
    },
    "a new folder that is no package": {".ci/run.yaml": "a: b\n", "tools/run.sh": "#!/bin/sh\n"},
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_an_overlay_is_what_a_build_would_make(bases: Bases, files: Files, change: str, tmp_path: Path) -> None:
    same_as_built(bases, files, with_files(files, CHANGES[change]), tmp_path)


FIELDS = {
    "description": ('"A demo"', '"Another demo"'),
    "version": ('version = "1.0"', 'version = "2.0.dev1"'),
    "a version to be normalised": ('version = "1.0"', 'version = "2.0-beta.1"'),
    "requires-python": ('">=3.9"', '">=3.10"'),
    "keywords": ('["one"]', '["one", "two"]'),
    "classifiers": ('Python :: 3"]', 'Python :: 3", "Topic :: Software Development"]'),
    "authors": ('"ann@example.org"}', '"ann@example.org"}, {name = "Bob"}'),
    "dependencies": ('["idna>=3"]', '["idna>=3.4", "packaging; python_version < \'4\'"]'),
    "no dependencies": ('["idna>=3"]', "[]"),
    "urls": ('"https://example.org"', '"https://example.org/there"'),
    "scripts": ('main"\n', 'main"\nother = "demo_pkg.cli:main"\n'),
    "tables of tools that do not build": ("line-length = 100", "line-length = 120"),
}


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_changed_field_of_the_project_changes_its_lines(
    bases: Bases, files: Files, field: str, tmp_path: Path
) -> None:
    old, new = FIELDS[field]
    text = files["pyproject.toml"]
    assert text.count(old) == 1
    same_as_built(bases, files, {**files, "pyproject.toml": text.replace(old, new)}, tmp_path)


def test_a_field_that_was_not_there_gets_its_line_where_the_backend_writes_it(
    bases: Bases, files: Files, tmp_path: Path
) -> None:
    text = files["pyproject.toml"]
    without = {**files, "pyproject.toml": text.replace('dependencies = ["idna>=3"]', "dependencies = []")}
    same_as_built(bases, without, files, tmp_path)


def test_two_roots_are_told_apart(bases: Bases, tmp_path: Path) -> None:
    text = HATCH.replace('packages = ["src/demo_pkg"]', 'packages = ["src/demo_pkg", "lib/other_pkg"]')
    two = {**FILES, "pyproject.toml": text, "lib/other_pkg/__init__.py": "", "lib/other_pkg/a.py": "A = 1\n"}
    after = with_files(two, {"lib/other_pkg/a.py": "A = 2\n", "lib/other_pkg/b.py": "B = 1\n"})
    same_as_built(bases, two, after, tmp_path)


def test_a_file_that_is_put_elsewhere_in_the_wheel_is_followed(bases: Bases, tmp_path: Path) -> None:
    moved = HATCH + '\n[tool.hatch.build.targets.wheel.force-include]\n"assets/logo.svg" = "demo_pkg/static/mark.svg"\n'
    before = {**FILES, "pyproject.toml": moved, "assets/logo.svg": "<svg/>\n"}
    same_as_built(bases, before, {**before, "assets/logo.svg": "<svg></svg>\n"}, tmp_path)


# What only a build can tell.


def test_a_file_of_a_new_kind_is_ambiguous(bases: Bases, files: Files, tmp_path: Path) -> None:
    after = {**files, "src/demo_pkg/table.csv": "1,2\n"}
    assert "src/demo_pkg/table.csv is new" in impossible(bases, files, after, tmp_path)


def test_a_file_of_a_kind_of_which_only_some_are_taken_is_ambiguous(bases: Bases, tmp_path: Path) -> None:
    before = {**BACKENDS["setuptools"], "src/demo_pkg/sub/left.json": "1\n"}
    after = {**before, "src/demo_pkg/other/new.json": "1\n"}
    assert "some are in the wheel" in impossible(bases, before, after, tmp_path)
    beside = {**before, "src/demo_pkg/sub/new.json": "1\n"}
    same_as_built(bases, before, beside, tmp_path / "beside")


def test_a_file_that_resembles_one_that_is_left_out_is_ambiguous(bases: Bases, tmp_path: Path) -> None:
    text = HATCH.replace("[tool.ruff]", 'exclude = ["**/test_*.py"]\n\n[tool.ruff]')
    before = {**FILES, "pyproject.toml": text, "src/demo_pkg/sub/test_deep.py": "x = 1\n"}
    after = {**before, "src/demo_pkg/sub/deeper/test_most.py": "x = 1\n"}
    assert "resembles src/demo_pkg/sub/test_deep.py" in impossible(bases, before, after, tmp_path)


@pytest.mark.parametrize(
    ("backend", "old", "new", "path"),
    [
        (
            "setuptools",
            'where = ["src"]',
            'where = ["src"]\nexclude = ["*.legacy*"]',
            "src/demo_pkg/legacy/__init__.py",
        ),
        ("setuptools", '["*.json"]', '["data*.json", "d*.json"]', "src/demo_pkg/more.json"),
        ("setuptools", '["*.json"]', '["*.json"]', "src/demo_pkg/sub/more.json"),
        ("hatchling", "[tool.ruff]", 'exclude = ["/src/demo_pkg/gen"]\n[tool.ruff]', "src/demo_pkg/gen/__init__.py"),
        (
            "hatchling",
            "packages =",
            'only-include = ["src/demo_pkg/cli.py", "src/demo_pkg/sub"]\n#',
            "src/demo_pkg/n.py",
        ),
    ],
)
def test_patterns_that_may_not_take_a_new_file_make_it_ambiguous(
    bases: Bases, backend: str, old: str, new: str, path: str, tmp_path: Path
) -> None:
    text = BACKENDS[backend]["pyproject.toml"].replace(old, new)
    before = {**BACKENDS[backend], "pyproject.toml": text}
    assert f"{path} is " in impossible(bases, before, {**before, path: "1\n"}, tmp_path)


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("setup.py", "from setuptools import setup\nsetup()\n", "steers the build"),
        ("setup.cfg", "[metadata]\n", "steers the build"),
        ("MANIFEST.in", "include x\n", "steers the build"),
        ("NOTICE", "Mind this.\n", "was added"),
        ("LICENSE", None, "was removed"),
        ("README.md", None, "was removed"),
        ("src/other/__init__.py", "", "may be a package"),
        ("src/demo_pkg/new/mod.py", "x = 1\n", "without __init__.py"),
        ("src/demo_pkg/sub/__init__.py", None, "__init__.py was removed"),
    ],
)
def test_a_change_that_may_mean_more_is_impossible(
    bases: Bases, path: str, text: str | None, why: str, tmp_path: Path
) -> None:
    files = BACKENDS["setuptools"]
    said = impossible(bases, files, with_files(files, {path: text}), tmp_path)
    assert path.rpartition("/")[2] in said and why in said


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('requires = ["setuptools"]', 'requires = ["setuptools>=60"]', "[build-system]"),
        ('demo_pkg = ["*.json"]', 'demo_pkg = ["*.json", "*.csv"]', "[tool.setuptools]"),
        ('name = "demo-pkg"', 'name = "demo-pkg2"', "project.name"),
        ('readme = "README.md"', 'readme = "docs/index.md"', "project.readme"),
        ('version = "1.0"', 'dynamic = ["version"]', "project.dynamic"),
        ("[project]", "[project", "cannot be read"),
        ('dependencies = ["idna>=3"]', "dependencies = 3", "is not understood"),
        ('version = "1.0"', 'version = "one"', "project.version"),
    ],
)
def test_a_change_of_how_wheels_are_made_is_impossible(
    bases: Bases, old: str, new: str, why: str, tmp_path: Path
) -> None:
    files = BACKENDS["setuptools"]
    assert old in SETUPTOOLS
    assert why in impossible(bases, files, {**files, "pyproject.toml": SETUPTOOLS.replace(old, new)}, tmp_path)


def test_a_new_package_beside_named_ones_is_impossible(bases: Bases, tmp_path: Path) -> None:
    named = '[tool.setuptools]\npackages = ["demo_pkg", "demo_pkg.sub", "demo_pkg.sub.deeper"]\n'
    text = SETUPTOOLS.replace("[tool.setuptools.packages.find]\n", named + 'package-dir = {"" = "src"}\n#').replace(
        '#where = ["src"]\n', ""
    )
    before = {**FILES, "pyproject.toml": text}
    after = {**before, "src/demo_pkg/fresh/__init__.py": ""}
    assert "names its packages one by one" in impossible(bases, before, after, tmp_path)


VERSION_FILE = HATCH.replace('version = "1.0"', 'dynamic = ["version"]').replace(
    "[tool.hatch.build.targets.wheel]",
    '[tool.hatch.version]\npath = "src/demo_pkg/__init__.py"\n\n[tool.hatch.build.targets.wheel]',
)


def test_a_version_read_from_a_module_may_not_change_but_the_module_may(bases: Bases, tmp_path: Path) -> None:
    before = {**FILES, "pyproject.toml": VERSION_FILE, "src/demo_pkg/__init__.py": '__version__ = "1.0"\n'}
    same_as_built(bases, before, {**before, "src/demo_pkg/__init__.py": '__version__ = "1.0"\nX = 1\n'}, tmp_path / "a")
    after = {**before, "src/demo_pkg/__init__.py": '__version__ = "1.1"\n'}
    assert "src/demo_pkg/__init__.py changed" in impossible(bases, before, after, tmp_path / "b")


HOOK = """
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        with open("src/demo_pkg/_stamp.py", "w") as file:
            file.write({text!r})
        build_data["artifacts"].append("src/demo_pkg/_stamp.py")
"""
HOOKED = HATCH + "\n[tool.hatch.build.targets.wheel.hooks.custom]\n"


def hooked(text: str, there: str | None = None) -> dict[str, str]:
    files = {**FILES, "pyproject.toml": HOOKED, "hatch_build.py": HOOK.replace("{text!r}", repr(text))}
    return files if there is None else {**files, "src/demo_pkg/_stamp.py": there}


def test_a_file_that_the_build_writes_is_kept(bases: Bases, tmp_path: Path) -> None:
    before = hooked("MADE = 1\n")
    same_as_built(bases, before, {**before, "src/demo_pkg/cli.py": "x = 1\n"}, tmp_path)


def test_a_file_that_the_build_changes_is_kept_while_it_is_the_same(bases: Bases, tmp_path: Path) -> None:
    before = hooked("MADE = 1\n", "MADE = 0\n")
    same_as_built(bases, before, {**before, "src/demo_pkg/cli.py": "x = 1\n"}, tmp_path / "same")
    after = {**before, "src/demo_pkg/_stamp.py": "MADE = 2\n"}
    assert "_stamp.py changed" in impossible(bases, before, after, tmp_path / "other")


def test_a_wheel_that_records_its_commit_cannot_be_another_commits(bases: Bases, tmp_path: Path) -> None:
    before = hooked(f"COMMIT = 'g{BASE_SHA[:9]}'\n")
    after = {**before, "src/demo_pkg/cli.py": "x = 1\n"}
    assert "_stamp.py of the base wheel records the commit" in impossible(bases, before, after, tmp_path)


def test_a_new_version_does_not_leave_the_old_one_in_what_the_build_made(bases: Bases, tmp_path: Path) -> None:
    before = hooked("VERSION = '1.0'\n")
    after = {**before, "pyproject.toml": HOOKED.replace('version = "1.0"', 'version = "1.1"')}
    assert "_stamp.py of the base wheel seems to hold the old one" in impossible(bases, before, after, tmp_path)


def test_a_new_file_in_the_place_of_one_that_the_build_makes_is_impossible(bases: Bases, tmp_path: Path) -> None:
    before = hooked("MADE = 1\n")
    after = {**before, "src/demo_pkg/_stamp.py": "MADE = 1\n"}
    assert "src/demo_pkg/_stamp.py changed, which the build runs" in impossible(bases, before, after, tmp_path)


def test_requirements_that_are_read_from_a_file_may_not_change(bases: Bases, tmp_path: Path) -> None:
    text = SETUPTOOLS.replace('dependencies = ["idna>=3"]', 'dynamic = ["dependencies"]').replace(
        "[tool.setuptools.packages.find]",
        '[tool.setuptools.dynamic]\ndependencies = {file = ["reqs/main.txt"]}\n\n[tool.setuptools.packages.find]',
    )
    before = {**FILES, "pyproject.toml": text, "reqs/main.txt": "idna>=3\n"}
    assert "reqs/main.txt changed" in impossible(bases, before, {**before, "reqs/main.txt": "idna\n"}, tmp_path)


SETUP_PY = """
from pathlib import Path
from setuptools import find_packages, setup

setup(
    name="demo-pkg",
    version="1.0",
    package_dir={"": "src"},
    packages=find_packages("src"),
    install_requires=Path("requirements/common.txt").read_text().splitlines(),
    long_description=Path("README.md").read_text(),
)
"""


def test_a_project_without_pyproject_is_replayed_too(bases: Bases, tmp_path: Path) -> None:
    files = {path: text for path, text in FILES.items() if not path.endswith((".json", ".typed"))}
    before = {**files, "setup.py": SETUP_PY, "requirements/common.txt": "idna\n"}
    after = with_files(
        before, {"src/demo_pkg/cli.py": "x = 1\n", "README.md": "# Other\n", "src/demo_pkg/n.py": "n = 1\n"}
    )
    same_as_built(bases, before, after, tmp_path / "same")
    for path in ("requirements/common.txt", "setup.py"):
        why = impossible(bases, before, {**before, path: before[path] + "\n"}, tmp_path / path.replace("/", "-"))
        assert path in why
