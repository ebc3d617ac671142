"""Whether what was tried is still the wheel that was installed: real virtual environments, real wheels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from worker.contract import Outcome, Replaced, Reproduction, Sandbox, Wheel

#: Makes a wheel of a package with one module: its name, its version, what the module says.
MAKE = """
import base64, hashlib, sys, zipfile
name, version, said = sys.argv[1:]
info, text = f"{name}-{version}.dist-info", f"SAID = {said!r}\\nWHERE = __file__\\n"
files = {
    f"{name}.py": text,
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
hashed = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = "".join(f"{path},sha256={hashed(text)},{len(text)}\\n" for path, text in files.items())
with zipfile.ZipFile(f"{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\\n"}.items():
        wheel.writestr(path, text)
"""
#: A backend that installs a project as it lies there.
EDITABLE = """
import zipfile
def build_editable(out, config_settings=None, metadata_directory=None):
    import os
    name, info = "tinypkg-1.0-0.editable-py3-none-any.whl", "tinypkg-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(out, name), "w") as wheel:
        wheel.writestr("_tinypkg.pth", os.getcwd() + "\\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tinypkg\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", f"_tinypkg.pth,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
    return name
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tinypkg"
version = "1.0"
"""
FILES = f"cat > backend.py <<'END'\n{EDITABLE}\nEND\ncat > pyproject.toml <<'END'\n{PROJECT}\nEND"
PREPARE = f"cat > make.py <<'END'\n{MAKE}\nEND\n"
SAYS = "python3 -c 'import tinypkg; print(tinypkg.WHERE)'"
UV = "uv pip install --offline --quiet --python $VIRTUAL_ENV"
CLONE = "mkdir -p clone/tinypkg; echo 'WHERE = __file__' > clone/tinypkg/__init__.py"


class Tried:
    """Scripts that run with the wheel."""

    def __init__(self, bench: Bench, wheel: Wheel) -> None:
        self.bench, self.wheel = bench, wheel

    def outcome(self, script: str, **changed: object) -> Outcome:
        outcome: Outcome = self.bench.outcome(f"{PREPARE}\n{script}", wheel=self.wheel.path, **changed)
        assert outcome.exit_status == 0, self.bench.text(outcome)
        return outcome

    def replaced(self, script: str, **changed: object) -> Replaced:
        found = self.outcome(script, **changed).replaced
        assert found is not None
        assert found.was == "tinypkg 1.0"
        return found


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Tried]:
    needs("bwrap")
    made = pipeline(tmp_path_factory.mktemp("provenance"))
    bench = Bench(made, *repository, Sandbox(kind="process"))
    built = bench.build(f"{PREPARE}python3 make.py tinypkg 1.0 first; mv *.whl $FIRSTBAD_OUT")
    assert built.wheel is not None, built
    yield Tried(bench, built.wheel)
    for each in made.site.sandboxes.values():
        each.close()


@pytest.mark.parametrize(
    "script",
    [
        f"python3 -m compileall -q -f $VIRTUAL_ENV; {SAYS}; python3 -O -c 'import tinypkg'",
        f"touch $VIRTUAL_ENV/lib/*/site-packages/tinypkg.py; {SAYS}",
        f"python3 make.py other 1.0 x; {UV} *.whl",
        # Times of change differ, and nothing else does.
        "F=$(echo $VIRTUAL_ENV/lib/*/site-packages/tinypkg.py); chmod g-r $F; ln $F $F.mine",
        # Other distributions may bring what Python runs at its start.
        f"{FILES.replace('tinypkg', 'other')}\n{UV} --no-build-isolation -e .; ls $VIRTUAL_ENV/lib/*/*/_other.pth",
        # The same wheel once more, from anywhere, is the same.
        f"python3 make.py tinypkg 1.0 first; {UV} --reinstall *.whl",
        # Nobody looked for it there.
        f"{CLONE}; cd clone; python3 -I -c 'import tinypkg'",
    ],
)
def test_what_leaves_the_package_as_it_is_is_no_replacement(tried: Tried, script: str) -> None:
    assert tried.outcome(script).replaced is None


def test_another_version_is_told_with_the_line_that_installed_it(tried: Tried) -> None:
    line = f"{UV} \\\n   tinypkg-2.0-py3-none-any.whl"
    found = tried.replaced(f"uv --version\npython3 make.py tinypkg 2.0 second\n{line}\necho done")
    assert (found.now, found.by) == ("tinypkg 2.0", f"{UV} tinypkg-2.0-py3-none-any.whl")


def test_the_same_version_from_elsewhere_is_another_package(tried: Tried) -> None:
    found = tried.replaced(f"python3 make.py tinypkg 1.0 second\n{UV} --reinstall ./*.whl")
    assert found.now == "tinypkg 1.0 with other files: tinypkg.py"
    assert found.by == f"{UV} --reinstall ./*.whl"


def test_a_file_that_was_patched_is_another_package(tried: Tried) -> None:
    found = tried.replaced("sed -i s/first/second/ $VIRTUAL_ENV/lib/*/site-packages/tinypkg.py")
    assert (found.now, found.by) == ("tinypkg 1.0 with other files: tinypkg.py", "")


def test_a_file_that_was_patched_and_given_its_old_time_is_another_package(tried: Tried) -> None:
    script = (
        "cd $VIRTUAL_ENV/lib/*/site-packages; touch -r tinypkg.py /tmp/t; python3 -c '{}'; touch -r /tmp/t tinypkg.py"
    )
    patch = 'f = open("tinypkg.py", "r+b"); t = f.read().replace(b"first", b"worst"); f.seek(0); f.write(t)'
    assert tried.replaced(script.format(patch)).now == "tinypkg 1.0 with other files: tinypkg.py"


@pytest.mark.parametrize("name", ["aaa.pth", "sitecustomize.py", "usercustomize.py"])
def test_what_python_runs_at_its_start_is_told(tried: Tried, name: str) -> None:
    found = tried.replaced(f"echo '# x' > $(echo $VIRTUAL_ENV/lib/*/site-packages)/{name}")
    assert found.now == f"tinypkg 1.0 with {name}"


@pytest.mark.parametrize("name", ["tinypkg.py", "tinypkg-1.0.dist-info/RECORD", "aaa.pth"])
def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tried: Tried, name: str) -> None:
    tried.replaced(f"cd $VIRTUAL_ENV/lib/*/site-packages; rm -f {name}; mkfifo {name}")


def test_one_that_was_removed_is_nothing(tried: Tried) -> None:
    line = "uv pip uninstall --quiet --python $VIRTUAL_ENV tinypkg"
    found = tried.replaced(line)
    assert (found.now, found.by) == ("", line)
    assert tried.replaced("rm -rf $VIRTUAL_ENV").now == ""


def test_an_editable_install_over_it_is_another_package(tried: Tried) -> None:
    line = f"{UV} --no-build-isolation -e ."
    found = tried.replaced(f"mkdir src; cd src\n{FILES}\necho 'WHERE = __file__' > tinypkg.py\n{line}\n{SAYS}")
    assert found.now.startswith("tinypkg 1.0, editable from file:///")
    assert found.by == line


def test_who_is_not_in_the_script_is_looked_for_in_the_log(tried: Tried) -> None:
    # Our own install, before the script, says the same.
    script = "python3 make.py tinypkg 2.0 x; I=install; uv pip $I --offline --python $VIRTUAL_ENV *.whl"
    assert tried.replaced(script).by.startswith("+ tinypkg==2.0")


@pytest.mark.parametrize("path", ["PYTHONPATH=clone", "export PYTHONPATH=$PWD/clone:$PYTHONPATH;"])
def test_a_tree_that_is_imported_instead_is_told(tried: Tried, path: str) -> None:
    line = f"{path} {SAYS}"
    found = tried.replaced(f"{CLONE}\n{line}")
    assert found.now.startswith("tinypkg in ") and found.now.endswith("/clone")
    assert found.by == line


def test_a_path_of_the_order_leads_elsewhere_too(tried: Tried) -> None:
    script = "mkdir -p /tmp/lib; echo 'WHERE = __file__' > /tmp/lib/tinypkg.py"
    assert tried.replaced(script, env={"PYTHONPATH": "/tmp/lib"}).now == "tinypkg in /tmp/lib"


def test_a_clone_in_which_python_was_started_is_imported_instead(tried: Tried) -> None:
    found = tried.replaced(f"{CLONE}\ncd clone\n{SAYS}")
    assert (found.now.rpartition("/")[2], found.by) == ("clone", "cd clone")


def test_another_virtual_environment_with_it_is_told(tried: Tried) -> None:
    line = "uv pip install --offline --quiet --python mine tinypkg-2.0-py3-none-any.whl"
    found = tried.replaced(f"uv venv --quiet mine; python3 make.py tinypkg 2.0 x\n{line}")
    assert (found.now.rpartition("/")[2], found.by) == ("mine", line)


def test_the_line_may_be_the_checks(tried: Tried) -> None:
    line = f"{UV} tinypkg-2.0-py3-none-any.whl"
    check = f"{PREPARE}\npython3 make.py tinypkg 2.0 x\n{line}"
    outcome = tried.bench.serve(check=check, wheel=tried.wheel.path)
    assert outcome.replaced == Replaced(was="tinypkg 1.0", now="tinypkg 2.0", by=line)


def test_a_control_is_looked_after_as_well(tried: Tried) -> None:
    control = Reproduction(script="uv pip uninstall --quiet --python $VIRTUAL_ENV tinypkg")
    outcome = tried.bench.outcome("exit 1", wheel=tried.wheel.path, control=control)
    assert outcome.replaced is None
    assert outcome.control is not None and outcome.control.replaced is not None
