"""What only the build can tell: files that it makes of others, and metadata that it reads or computes.

A wheel that is put together must be the one that is built, or not be made at all. Real backends build both.
"""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.worker.projects import (
    BACKENDS,
    BASE_SHA,
    FILES,
    HATCH,
    SETUPTOOLS,
    Bases,
    Files,
    laid,
    members,
    same_as_built,
    write_tar,
)
from worker.build.overlay import CannotOverlay, Inputs, overlay

S = {"pyproject.toml": SETUPTOOLS, **FILES}
NO_VERSION = SETUPTOOLS.replace('version = "1.0"\n', 'dynamic = ["version"]\n')
NO_DEPENDENCIES = SETUPTOOLS.replace('dependencies = ["idna>=3"]\n', 'dynamic = ["dependencies"]\n')


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("bases"))


def refused(bases: Bases, before: Files, path: str, text: str, into: Path) -> None:
    """No overlay where this file changed, and the reason names it; one where only a module did."""
    with pytest.raises(CannotOverlay) as why:
        bases.overlay(before, {**before, path: text}, into / "refused")
    assert path in str(why.value) and not list(into.rglob("*.whl"))
    same_as_built(bases, before, {**before, "src/demo_pkg/sub/deep.py": "DEEP = 9\n"}, into / "other")


def makes(source: str, made: str, text: str = "'T = %r\\n' % t") -> str:
    """A setup.py that writes a file of the wheel, from one of the tree."""
    return f"""
from pathlib import Path
from setuptools import setup
from setuptools.command.build_py import build_py


class Build(build_py):
    def run(self):
        super().run()
        t = Path({source}).read_text()
        Path(self.build_lib, "demo_pkg", {made!r}).write_text({text})


setup(cmdclass={{"build_py": Build}})
"""


NATIVE = "cli.cpython-311-x86_64-linux-gnu.so"
PROTO = SETUPTOOLS.replace('["*.json"]', '["*.json", "*.proto"]')
GENERATING: dict[str, tuple[Files, str, str]] = {
    "a source that is in the wheel too, under the same name": (
        {"pyproject.toml": PROTO, "setup.py": makes("*['src', 'demo_pkg', 'msg.' + 'proto']", "msg_pb2.py")},
        "src/demo_pkg/msg.proto",
        "two\n",
    ),
    "a module that is compiled as well": (
        {"setup.py": makes("'/'.join(['src', 'demo_pkg', 'c' 'li.py'])", NATIVE)},
        "src/demo_pkg/cli.py",
        "def main():\n    print('other')\n",
    ),
    "data in the wheel that setup.py names": (
        {"setup.py": makes("'src/demo_pkg/data.json'", "_table.py")},
        "src/demo_pkg/data.json",
        "[2]\n",
    ),
    "data in the wheel whose suffix setup.py names": (
        {"setup.py": makes("next(Path('src/demo_pkg').glob('*.json'))", "_table.py")},
        "src/demo_pkg/data.json",
        "[2]\n",
    ),
    "a template": (
        {"setup.py": makes("'conf/default.in'", "config.py", "t.replace('@X@', '1')"), "conf/default.in": "A = @X@\n"},
        "conf/default.in",
        "A = @X@\nB = 2\n",
    ),
    "a template that nothing was filled into": (
        {"setup.py": makes("'conf/default.in'", "config.py", "t.replace('@X@', '1')"), "conf/default.in": "A = 1\n"},
        "conf/default.in",
        "A = @X@\n",
    ),
    "data in the wheel that nothing was filled into": (
        {"setup.py": makes("'src/demo_pkg/data.json'", "data.json", "t.replace('@X@', '1')")},
        "src/demo_pkg/data.json",
        '"@X@"\n',
    ),
    "what a module that setup.py imports reads": (
        {
            "setup.py": makes("__import__('gen').SOURCE", "_table.py").replace(
                "class", "import sys\nsys.path.insert(0, 'tools')\nimport gen\n\n\nclass", 1
            ),
            "tools/gen.py": "SOURCE = 'conf/table.csv'\n",
            "conf/table.csv": "1\n",
        },
        "conf/table.csv",
        "2\n",
    ),
    "a script in which the build sets the interpreter": (
        {
            "setup.py": "from glob import glob\nfrom setuptools import setup\nsetup(scripts=glob('bin/*'))\n",
            "bin/tool": "#!/usr/bin/env python3\nprint(1)\n",
        },
        "bin/tool",
        "#!/usr/bin/env python3\nprint(2)\n",
    ),
}


@pytest.mark.parametrize("case", sorted(GENERATING))
def test_a_change_of_what_the_build_makes_files_of_needs_a_build(bases: Bases, case: str, tmp_path: Path) -> None:
    files, path, text = GENERATING[case]
    before = {**S, "src/demo_pkg/msg.proto": "one\n", **files} if path.endswith(".proto") else {**S, **files}
    refused(bases, before, path, text, tmp_path)


def about(attribute: str) -> str:
    return NO_VERSION + f'\n[tool.setuptools.dynamic]\nversion = {{attr = "demo_pkg.about.{attribute}"}}\n'


def hatch_version(settings: str) -> str:
    text = HATCH.replace('version = "1.0"\n', 'dynamic = ["version"]\n')
    return text + f'\n[tool.hatch.version]\npath = "src/demo_pkg/about.py"\n{settings}'


IMPORTING = "import sys\nsys.path.insert(0, '.')\nfrom tools.numbers import more\nfrom setuptools import setup\n"
READING = """
from pathlib import Path
from setuptools import setup


def listed(name):
    return Path("deps", name + ".txt").read_text().split()


setup(install_requires=listed("cuda"))
"""
FOUND = r"""
import re
from setuptools import setup

text = open("src/demo_pkg/__init__.py").read()
setup(version=".".join(re.findall(r"(?:MAJOR|MINOR) = '?(\d+)", text)))
"""
F_STRING = "MAJOR = {}\nMINOR = 0\n__version__ = f'{{MAJOR}}.{{MINOR}}'\n"
SEVERAL_LINES = "VERSION = (\n    {},\n    0,\n)\n"
JOINED = "version_info = ({}, 0)\n__version__ = '.'.join(map(str, version_info))\n"
ABOUT = "src/demo_pkg/about.py"
#: What is there besides, the file that changes, and its text, in which a number is another.
COMPUTED: dict[str, tuple[Files, str, str]] = {
    "a module that setup.py imports for the version": (
        {"pyproject.toml": NO_VERSION, "setup.py": IMPORTING + "setup(version=more())\n", "tools/__init__.py": ""},
        "tools/numbers.py",
        "def more():\n    return '{}.0'\n",
    ),
    "a module that setup.py imports for the dependencies": (
        {"pyproject.toml": NO_DEPENDENCIES, "setup.py": IMPORTING + "setup(install_requires=more())\n"},
        "tools/numbers.py",
        "def more():\n    return ['idna>={}']\n",
    ),
    "what an imported module imports": (
        {
            "pyproject.toml": NO_DEPENDENCIES,
            "setup.py": IMPORTING + "setup(install_requires=more())\n",
            "tools/numbers.py": "from .sub.inner import more\n",
        },
        "tools/sub/inner.py",
        "def more():\n    return ['idna>={}']\n",
    ),
    "a file whose name is put together": (
        {"pyproject.toml": NO_DEPENDENCIES, "setup.py": READING},
        "deps/cuda.txt",
        "idna>={}\n",
    ),
    "an f-string": ({"pyproject.toml": about("__version__")}, ABOUT, F_STRING),
    "a tuple that is joined": ({"pyproject.toml": about("__version__")}, ABOUT, JOINED),
    "several lines": ({"pyproject.toml": about("VERSION")}, ABOUT, SEVERAL_LINES),
    "another name than the version's": (
        {"pyproject.toml": about("RELEASE")},
        ABOUT,
        "__version__ = '1.0'\nRELEASE = ({}, 0)\n",
    ),
    "a version that comes from another module": (
        {
            "pyproject.toml": NO_VERSION + '\n[tool.setuptools.dynamic]\nversion = {attr = "demo_pkg.VERSION"}\n',
            "src/demo_pkg/__init__.py": "from demo_pkg.about import release as VERSION\n",
        },
        ABOUT,
        "release = '{}.0'\n",
    ),
    "what setup.py finds beside a plain version": (
        {"pyproject.toml": NO_VERSION, "setup.py": FOUND},
        "src/demo_pkg/__init__.py",
        "__version__ = '1.0'\nMAJOR = {}\nMINOR = 0\n",
    ),
    "hatch that runs the file": (
        {"pyproject.toml": hatch_version('source = "code"\nexpression = "calc()"\n')},
        ABOUT,
        "VERSION = None\nMAJOR = {}\ndef calc():\n    return f'{{MAJOR}}.0'\n",
    ),
    "hatch that looks for another line": (
        {"pyproject.toml": hatch_version("pattern = \"RELEASE = '(?P<version>[^']+)'\"\n")},
        ABOUT,
        "VERSION = 'x'\nRELEASE = '{}.0'\n",
    ),
}


@pytest.mark.parametrize("case", sorted(COMPUTED))
def test_a_change_of_what_metadata_are_computed_of_needs_a_build(bases: Bases, case: str, tmp_path: Path) -> None:
    files, path, text = COMPUTED[case]
    before = {**S, **files, path: text.format(1)}
    refused(bases, before, path, text.format(2), tmp_path)
    infos = [bases.of({**before, path: text.format(number)})[1] for number in (1, 2)]
    old, new = ([text for name, text in members(wheel).items() if name.endswith("/METADATA")] for wheel in infos)
    assert old != new, "the build does not read it, so that this shows nothing"


def test_what_has_nothing_to_do_with_metadata_may_change_beside_a_setup_py_that_computes(
    bases: Bases, tmp_path: Path
) -> None:
    setup = READING.replace("setup(install", "setup(extras_require={'docs': [], 'tests': []}, install")
    before = {**S, "pyproject.toml": NO_DEPENDENCIES, "setup.py": setup, "deps/cuda.txt": "idna\n"}
    after = {
        **before,
        "tests/test_demo.py": "x = 1\n",
        "docs/index.md": "# Other\n",
        "src/demo_pkg/cli.py": "def main():\n    pass\n",
        "src/demo_pkg/sub/new.py": "N = 1\n",
        ".github/workflows/test.yml": "on: push\n",
    }
    same_as_built(bases, before, after, tmp_path)


# Files into which git writes which commit it is of.

_ARCHIVED = "node: $Format:%H$\nref-names: $Format:%D$\n"
_VERSION = "REF = '$Format:%D$'\nSHA = '$Format:%H$'\n"


def archives(folder: Path, files: Files) -> tuple[Path, str, Path]:
    """What `git archive` writes of a tagged commit with these files, that commit, and the same of the next one."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder)]

    def run(*arguments: str) -> str:
        return subprocess.run([*git, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    tars = [folder.with_name("base.tar"), folder.with_name("next.tar")]
    laid(folder, files)
    run("init", "-q")
    shas = []
    for tar, text in zip(tars, ("DEEP = 1\n", "DEEP = 2\n"), strict=True):
        (folder / "src/demo_pkg/sub/deep.py").write_text(text)
        run("add", "-A", "-f")
        run("commit", "-qm", "x")
        shas.append(run("rev-parse", "HEAD"))
        run("tag", "-f", "v1.0", shas[0])
        run("archive", "-o", str(tar), "HEAD")
    return tars[0], shas[0], tars[1]


def built_of(tar: Path, folder: Path) -> Path:
    with tarfile.open(tar) as archive:
        archive.extractall(folder, filter="data")
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return Bases(folder.with_name(f"{folder.name}-built")).of(files)[1]


def test_a_module_that_git_fills_in_is_that_of_the_new_commit(tmp_path: Path) -> None:
    files = {
        **BACKENDS["hatchling"],
        "src/demo_pkg/_version.py": _VERSION,
        ".gitattributes": "*_version.py export-subst\n",
    }
    base, sha, after = archives(tmp_path / "repo", files)
    made = overlay(Inputs(built_of(base, tmp_path / "one"), sha, base, after), tmp_path)
    assert members(made.wheel) == members(built_of(after, tmp_path / "two"))


@pytest.mark.parametrize("name", [".git_archival.txt", "src/demo_pkg/_version.py"])
def test_a_version_that_comes_from_what_git_fills_in_needs_a_build(name: str, tmp_path: Path) -> None:
    read = "import re\nfrom setuptools import setup\nfound = re.search('v([0-9.]+)', open(''.join({!r})).read())\n"
    setup = read.format([*name]) + "setup(version=found[1] if found else '2')\n"
    files = {
        **S,
        "pyproject.toml": NO_VERSION,
        "setup.py": setup,
        name: _VERSION if name.endswith(".py") else _ARCHIVED,
    }
    base, sha, after = archives(tmp_path / "repo", {**files, ".gitattributes": f"/{name} export-subst\n"})
    with pytest.raises(CannotOverlay, match=f"{name.rpartition('/')[2]} changed, into which git writes"):
        overlay(Inputs(built_of(base, tmp_path / "one"), sha, base, after), tmp_path)


# What takes too long to read.


@pytest.mark.parametrize("text", ["a" + ".a" * 201 + " = 1\n", "# " + "x" * 65536, "x = " + "[" * 30000])
def test_a_pyproject_that_nobody_writes_is_not_parsed(bases: Bases, text: str, tmp_path: Path) -> None:
    before = BACKENDS["hatchling"]
    with pytest.raises(CannotOverlay, match=r"pyproject\.toml (is not read|cannot be read)"):
        bases.overlay(before, {**before, "pyproject.toml": before["pyproject.toml"] + text}, tmp_path)


HOSTILE = [
    "a",
    "a.",
    "import (",
    "import a,",
    "from " + "." * 50 + " import (",
    "exclude=[",
    "version",
    "\n",
    " ",
    '"a"',
    "a=",
    "é",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_code_of_a_build_of_any_kind_is_looked_through_in_seconds(bases: Bases, piece: str, tmp_path: Path) -> None:
    """What takes quadratic time would not end."""
    tree, wheel = bases.of(
        {**S, "pyproject.toml": NO_VERSION, "setup.py": "import setuptools\nsetuptools.setup(version='1.0')\n"}
    )
    trees = []
    for number in (1, 2):
        texts = {
            **S,
            "pyproject.toml": NO_VERSION,
            "setup.py": piece * (500_000 // len(piece)),
            "deps/a.txt": f"{number}\n",
        }
        trees.append(tmp_path / f"{number}.tar")
        write_tar(trees[-1], texts)
    try:
        made = overlay(Inputs(wheel, BASE_SHA, *trees), tmp_path)
    except CannotOverlay as why:
        assert str(why)
    else:
        assert zipfile.is_zipfile(made.wheel)
