"""What a wheel needs besides itself: resolved as of a date, shared between commits, and no run's to change."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import Background, Bench
from tests.worker.conftest import pipeline
from tests.worker.index_server import Index, serving, wheel_of
from worker.build.environments import seal
from worker.contract import Dependencies, ProbeOrder, Sandbox
from worker.pipeline import Pipeline
from worker.run.job import install_inside
from worker.run.process import ProcessSandbox
from worker.run.stop import CANCELLED
from worker.run.view import View

THEN = "2024-06-01T00:00:00Z"
VERSION_OF_DEP = "python3 -c 'import dep; print(dep.VERSION)'"


@dataclass
class Case:
    """A bench and the index as its sandboxes reach it."""

    bench: Bench
    index: Index
    host: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.index.port}/simple"

    def wheel(self, requires: Sequence[str], name: str = "tested", version: str = "1.0") -> dict[str, str]:
        """The wheel under test, in the store."""
        file, content = wheel_of(name, version, requires)
        store = self.bench.pipeline.site.store
        path = self.bench.pipeline.site.work_dir / file
        path.write_bytes(content)
        stored = f"wheels/{hashlib.sha256(content).hexdigest()}/{file}"
        return {"wheel": stored, "wheel_sha256": store.put(path, stored)}

    def order(self, script: str = VERSION_OF_DEP, requires: Sequence[str] = ("dep",), **changed: Any) -> ProbeOrder:
        told = changed.pop("dependencies", {})
        wanted = {"as_of": THEN, "network": "bridge", **(told or {})}
        env = {"UV_INDEX_URL": self.url, "UV_HTTP_RETRIES": "0", **changed.pop("env", {})}
        values = {
            "dependencies": Dependencies(**wanted) if told is not None else None,
            "env": env,
            **self.wheel(requires),
            **changed,
        }
        return self.bench.order(script, **values)

    def probe(self, *arguments: Any, **changed: Any) -> Any:
        result = Background(self.bench, self.order(*arguments, **changed)).finished(120.0)
        assert result is not None
        return result

    def outcome(self, *arguments: Any, **changed: Any) -> Any:
        result = self.probe(*arguments, **changed)
        assert result.fault is None, result.fault
        return result.outcome

    def said(self, *arguments: Any, **changed: Any) -> list[str]:
        """What the script of a run that ended well wrote."""
        outcome = self.outcome(*arguments, **changed)
        assert (outcome.exit_status, outcome.ended_in) == (0, "script"), self.bench.text(outcome)
        text = self.bench.text(outcome)
        return text[text.index("begins") + 1 :] if "begins" in text else text[-1:]

    def kept(self) -> list[Path]:
        folder = self.bench.pipeline.site.work_dir / "environments"
        return sorted(path.parent for path in folder.glob("*/ready"))


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as found:
        found.put("dep", "1.0", "2024-01-01T00:00:00Z")
        found.put("dep", "2.0", "2025-01-01T00:00:00Z")
        found.put("other", "1.0", "2024-01-01T00:00:00Z")
        yield found


def gateway() -> str:
    """Where containers find this machine."""
    template = "{{(index .IPAM.Config 0).Gateway}}"
    command = ["docker", "network", "inspect", "--format", template, "bridge"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def case(bench: Bench, index: Index) -> Case:
    return Case(bench, index, gateway() if bench.sandbox.kind == "docker" else "127.0.0.1")


@pytest.fixture
def process_case(process_bench: Bench, index: Index) -> Case:
    return Case(process_bench, index, "127.0.0.1")


@pytest.fixture(params=["unshare", "plain"])
def weak_case(
    request: pytest.FixtureRequest, tmp_path: Path, repository: tuple[Path, tuple[str, ...]], index: Index
) -> Case:
    """Sandboxes without a view of their own."""
    if request.param == "unshare":
        needs("unshare")
    site = pipeline(tmp_path).site
    tools = ("unshare",) if request.param == "unshare" else ()
    sandbox = ProcessSandbox(site.work_dir, install_inside(site.work_dir), View(), 65534, tools)
    made = Pipeline(dataclasses.replace(site, sandboxes={"process": sandbox}))
    return Case(Bench(made, *repository, Sandbox(kind="process")), index, "127.0.0.1")


def test_dependencies_are_those_of_that_time(case: Case) -> None:
    outcome = case.outcome()
    assert outcome.log.last_lines[-1] == "1.0"
    assert outcome.dependencies["dep"] == "1.0" and "tested" not in outcome.dependencies
    assert [phase.name for phase in outcome.phases] == ["fetch", "environment", "install", "script"]
    assert case.said(dependencies={"as_of": None}) == ["2.0"]


def test_constraints_are_kept(case: Case) -> None:
    outcome = case.outcome(dependencies={"as_of": None, "constraints": "# why\ndep<2\nother==7\n"})
    assert outcome.dependencies["dep"] == "1.0"


def test_commits_with_the_same_requirements_share_what_was_prepared_once(case: Case) -> None:
    first, second = case.outcome(), case.outcome(source=case.bench.source(1))
    assert first.dependencies == second.dependencies
    assert case.index.resolved("dep") == 1
    (kept,) = case.kept()
    # What cannot be written in a run is compiled before.
    assert list(kept.rglob("dep.*.pyc")) != []


def test_two_at_once_prepare_once(case: Case) -> None:
    case.index.open.clear()
    probes = [Background(case.bench, case.order(source=case.bench.source(number))) for number in (0, 1)]
    eventually(lambda: case.index.asked)
    case.index.open.set()
    found = [probe.finished(120.0) for probe in probes]
    assert [result.outcome.log.last_lines[-1] for result in found if result and result.outcome] == ["1.0", "1.0"]
    assert case.index.resolved("dep") == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"requires": ["dep", "other"]},
        {"requires": ["dep<9"]},
        {"dependencies": {"as_of": "2024-07-01T00:00:00Z"}},
        {"dependencies": {"constraints": "dep<9"}},
        {"env": {"UV_HTTP_TIMEOUT": "31"}},
    ],
    ids=["another", "version", "time", "constraints", "variables"],
)
def test_what_is_asked_for_otherwise_is_prepared_anew(process_case: Case, changed: dict[str, Any]) -> None:
    process_case.outcome()
    process_case.outcome(**changed)
    assert len(process_case.kept()) == 2


def test_the_commit_in_a_variable_keeps_nothing_from_being_shared(process_case: Case) -> None:
    for number in (0, 1):
        env = {"TESTED_COMMIT": f"git-{process_case.bench.shas[number]}"}
        process_case.outcome(source=process_case.bench.source(number), env=env)
    assert len(process_case.kept()) == 1
    assert len(list((process_case.bench.pipeline.site.work_dir / "cache").iterdir())) == 1


def test_an_index_of_each_commits_own_is_asked_for_each(process_case: Case) -> None:
    for number in (0, 1):
        env = {"PIP_EXTRA_INDEX_URL": f"http://127.0.0.1/{process_case.bench.shas[number]}/"}
        process_case.outcome(source=process_case.bench.source(number), env=env)
    assert len(process_case.kept()) == 2


def test_another_repository_shares_nothing(process_case: Case, tmp_path: Path) -> None:
    process_case.outcome()
    other = tmp_path / "copy"
    subprocess.run(["git", "clone", "--quiet", process_case.bench.repository, other], check=True)
    source = process_case.bench.source().model_copy(update={"repo": str(other), "mirror": None})
    process_case.outcome(source=source)
    assert len(process_case.kept()) == 2
    assert len(list((process_case.bench.pipeline.site.work_dir / "cache").iterdir())) == 2


def test_the_wheel_under_test_counts_before_a_dependencys_copy_of_it(case: Case) -> None:
    case.index.put("tested", "9.0", "2024-01-01T00:00:00Z")
    case.index.put("needy", "1.0", "2024-01-01T00:00:00Z", ["tested"])
    assert case.said("python3 -c 'import tested; print(tested.VERSION)'", ["needy"]) == ["1.0"]
    assert case.said("tested", ["needy"])[0].startswith("tested 1.0 ")


def test_a_dependencys_script_sees_the_wheel_under_test(case: Case) -> None:
    assert case.said("echo begins; dep tested dep")[1].split()[1].endswith("/work/venv" + site_of("tested.py"))
    assert case.said("echo begins; dep tested dep")[2].split()[1].endswith("/env" + site_of("dep.py"))


def test_a_dependencys_program_is_found(case: Case) -> None:
    assert case.said("dep-tool") == ["a tool"]


def site_of(file: str) -> str:
    return f"/lib/python3.{sys.version_info[1]}/site-packages/{file}"


def test_what_a_script_installs_counts_before_what_was_prepared(case: Case) -> None:
    script = f"uv pip install --quiet dep==2.0\necho begins\n{VERSION_OF_DEP}; dep | cut -d' ' -f2"
    assert case.said(script, network="bridge") == ["2.0", "2.0"]
    assert case.said() == ["1.0"]


@pytest.mark.parametrize("pip", ["pip", "python3 -m pip"])
def test_pip_installs_there_too(process_case: Case, pip: str) -> None:
    script = f"{pip} install --quiet --index-url {process_case.url} dep==2.0\necho begins\n{VERSION_OF_DEP}"
    assert process_case.said(script, network="bridge") == ["2.0"]


def test_a_run_cannot_change_what_the_next_one_gets(case: Case) -> None:
    script = """
    packages=$(python3 -c 'import dep, os; print(os.path.dirname(dep.__file__))')
    for file in $packages/dep.py $packages/new.py $packages/../../../bin/dep /firstbad/env/new; do
        chmod u+w $file 2> /dev/null || true
        if (echo 'VERSION = "evil"' >> $file) 2> /dev/null; then echo wrote $file; fi
    done
    rm -rf $packages /firstbad/env 2> /dev/null || true
    echo begins
    """
    assert case.said(script) == []
    assert case.said() == ["1.0"]


def test_without_a_view_of_its_own_a_run_finds_the_same(weak_case: Case) -> None:
    dep, tested = weak_case.said("echo begins; dep tested")
    assert dep.startswith("dep 1.0 ") and tested.split()[1].endswith("/work/venv" + site_of("tested.py"))
    assert weak_case.said() == ["1.0"]
    assert weak_case.index.resolved("dep") == 1


def test_what_was_prepared_is_no_other_users_any_more(tmp_path: Path) -> None:
    needs("root")  # only root can give files away
    files = "echo x > a/b/file && chmod 666 a/b/file && echo z > a/own && chmod 600 a/own"
    script = f"mkdir -p a/b && {files} && ln -s ../target a/link && chmod 777 a"
    (tmp_path / "target").touch()
    (tmp_path / "target").chmod(0o666)
    tmp_path.chmod(0o777)
    change = f"cd {tmp_path} && {{ echo y > a/b/file || chmod u+w a || rm -rf a/b || touch a/new; }} 2> /dev/null"
    for parent in tmp_path.parents[:-2]:
        parent.chmod(0o755)
    subprocess.run(["sh", "-c", script], cwd=tmp_path, user=65534, group=65534, check=True)
    assert subprocess.run(["sh", "-c", change], user=65534, group=65534).returncode == 0
    target = (tmp_path / "target").stat().st_mode & 0o777
    seal(tmp_path / "a")
    assert subprocess.run(["sh", "-c", change], user=65534, group=65534).returncode != 0
    read = ["cat", tmp_path / "a" / "own", tmp_path / "a" / "b" / "file"]
    assert subprocess.run(read, user=65534, group=65534, capture_output=True).stdout.split() == [b"z", b"y"]
    assert (tmp_path / "target").stat().st_mode & 0o777 == target


def test_the_run_has_no_network_though_the_preparation_had(case: Case) -> None:
    script = f"{VERSION_OF_DEP}; if (exec 3<>/dev/tcp/{case.host}/{case.index.port}) 2> /dev/null; then exit 9; fi"
    outcome = case.outcome(script)
    assert outcome.exit_status == 0
    assert "net" in outcome.environment["isolation"].split(",")


def test_an_index_that_cannot_be_reached_is_the_nodes_fault(case: Case) -> None:
    fault = case.probe(env={"UV_INDEX_URL": f"http://{case.host}:1/simple"}).fault
    assert fault is not None and fault.kind == "registry" and "refused" in fault.message.lower()
    assert case.kept() == []


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_an_index_that_does_not_answer_well_is_the_nodes_fault(process_case: Case, status: int) -> None:
    process_case.index.status = status
    fault = process_case.probe().fault
    assert fault is not None and fault.kind == "registry" and str(status) in fault.message


def test_a_name_that_no_server_has_is_the_nodes_fault(process_case: Case) -> None:
    fault = process_case.probe(env={"UV_INDEX_URL": "http://firstbad.invalid/simple"}).fault
    assert fault is not None and fault.kind == "registry"


def test_an_index_that_never_answers_is_the_nodes_fault(process_case: Case) -> None:
    process_case.index.open.clear()
    fault = process_case.probe(env={"UV_HTTP_TIMEOUT": "1"}).fault
    assert fault is not None and fault.kind == "registry" and "timed out" in fault.message


def test_a_preparation_that_takes_too_long_is_the_nodes_fault(process_case: Case) -> None:
    site = process_case.bench.pipeline.site
    hasty = dataclasses.replace(site.environments, timeout_s=2.0)
    process_case.bench.pipeline = Pipeline(dataclasses.replace(site, environments=hasty))
    process_case.index.open.clear()
    fault = process_case.probe().fault
    assert fault is not None and fault.kind == "registry" and "2 s" in fault.message
    assert process_case.kept() == []


def test_an_index_without_dates_is_a_fault_that_says_what_to_do(process_case: Case) -> None:
    process_case.index.dated = False
    fault = process_case.probe().fault
    assert fault is not None and fault.kind == "no-upload-dates" and "as_of: today" in fault.advice
    assert process_case.said(dependencies={"as_of": None}) == ["2.0"]


def test_a_time_that_is_none_is_a_fault(process_case: Case) -> None:
    fault = process_case.probe(dependencies={"as_of": "--help"}).fault
    assert fault is not None and fault.kind == "order" and "--help" in fault.message


def test_constraints_that_are_none_are_a_fault(process_case: Case) -> None:
    fault = process_case.probe(dependencies={"constraints": "dep<<<2"}).fault
    assert fault is not None and fault.kind == "constraints" and "<<<" in fault.message


@pytest.mark.parametrize("requires", ["dep>=2", "dep>9", "missing"])
def test_what_cannot_be_had_is_the_commits_own(case: Case, requires: str) -> None:
    outcome = case.outcome(requires=[requires])
    assert (outcome.ended_in, outcome.exit_status, outcome.signal) == ("install", 1, None)
    assert any("No solution found" in line for line in outcome.log.last_lines)
    assert [phase.name for phase in outcome.phases] == ["fetch", "environment"]
    assert case.kept() == []
    assert b"No solution found" in case.bench.log(outcome)


def test_a_cancelled_preparation_leaves_nothing(case: Case) -> None:
    case.index.open.clear()
    probe = Background(case.bench, case.order())
    eventually(lambda: case.index.asked)
    probe.stop.press(CANCELLED)
    assert probe.finished() is None
    assert case.bench.left() == [] and case.kept() == []
    case.index.open.set()
    assert case.said() == ["1.0"]


KILLED = """
import json, sys
from worker.contract import ProbeOrder
from worker.run.stop import Stop
from worker.settings import Settings
from worker.assembly import make_pipeline
settings, order = (json.loads(each) for each in sys.argv[1:])
make_pipeline(Settings(**settings)).probe(ProbeOrder.model_validate(order), Stop())
"""


def test_a_worker_killed_while_it_prepared_leaves_nothing_that_counts(process_case: Case) -> None:
    site = process_case.bench.pipeline.site
    settings = {"work_dir": str(site.work_dir), "allow_file_repos": True, "sandboxes": "process"}
    process_case.index.open.clear()
    arguments = [json.dumps(settings), process_case.order().model_dump_json()]
    worker = subprocess.Popen([sys.executable, "-c", KILLED, *arguments], cwd=Path(__file__).parents[2])
    eventually(lambda: process_case.index.asked)
    worker.kill()
    worker.wait()
    assert list((site.work_dir / "environments").glob("*/env")) != [] and process_case.kept() == []
    process_case.index.open.set()
    assert process_case.said() == ["1.0"]


def test_a_wheel_that_needs_nothing_needs_no_environment(case: Case) -> None:
    outcome = case.outcome("true", [])
    assert outcome.exit_status == 0
    assert [phase.name for phase in outcome.phases] == ["fetch", "install", "script"]
    assert case.kept() == [] and case.index.asked == []


@pytest.mark.parametrize(
    "requirement",
    ["dep; 'x' in extras", "dep; 'x' in dependency_groups", f"dep; python_version > '{'1' * 5000}'", "dep; x", "???"],
)
def test_a_requirement_that_cannot_be_understood_is_the_commits_own(process_case: Case, requirement: str) -> None:
    """The installer says what it is, and nothing is prepared."""
    result = process_case.probe("true", [requirement])
    assert result.fault is None and result.outcome.ended_in in ("install", "script")
    assert process_case.kept() == []


def test_without_a_network_for_them_dependencies_are_the_sandboxs_own(process_case: Case) -> None:
    # The Python that bubblewrap shows has pip, and the run's outcome tells its version.
    outcome = process_case.outcome("pip --version", ["pip"], dependencies={"network": "none"})
    assert outcome.exit_status == 0
    assert outcome.log.last_lines[-1].split()[1] == outcome.dependencies["pip"]
    assert process_case.kept() == []


def test_what_the_sandbox_lacks_is_said(case: Case) -> None:
    outcome = case.outcome("true", ["dep", "other; python_version < '3'"], dependencies={"network": "none"})
    assert (outcome.ended_in, outcome.exit_status) == ("install", 1)
    assert "has no dep," in outcome.log.last_lines[-1]


def test_a_run_with_a_network_and_nothing_said_of_dependencies_gets_them_itself(process_case: Case) -> None:
    outcome = process_case.outcome(dependencies=None, network="bridge")
    assert outcome.log.last_lines[-1] == outcome.dependencies["dep"] == "2.0"
    assert process_case.kept() == []
    process_case.index.status = 503
    fault = process_case.probe(dependencies=None, network="bridge").fault
    assert fault is not None and fault.kind == "registry"


INNER = """
set -e
python3 -m venv --without-pip /opt/venv
folder=$(echo /opt/venv/lib/python3*/site-packages)
mkdir $folder/inner-3.0.dist-info
echo 'VERSION = "3.0"' > $folder/inner.py
printf '#!/opt/venv/bin/python3\\nimport inner, tested; print(inner.VERSION, tested.VERSION)\\n' > /opt/venv/bin/inner
chmod +x /opt/venv/bin/inner
"""


@pytest.fixture
def image_of_a_venv(docker_image: str) -> Iterator[str]:
    """Its python3 is that of a virtual environment, which has a package of its own."""
    name, container = f"firstbad-test-venv:{os.getpid()}", f"firstbad-test-venv-{os.getpid()}"
    subprocess.run(["docker", "run", "--name", container, docker_image, "sh", "-c", INNER], check=True)
    path = "ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin"
    subprocess.run(["docker", "commit", "--change", path, container, name], check=True, capture_output=True)
    yield name
    subprocess.run(["docker", "rm", container], capture_output=True)
    subprocess.run(["docker", "rmi", "--force", name], capture_output=True)


def test_what_an_image_has_in_a_virtual_environment_is_seen_too(
    image_of_a_venv: str, tmp_path: Path, repository: tuple[Path, tuple[str, ...]], index: Index
) -> None:
    sandbox = Sandbox(kind="docker", image=image_of_a_venv)
    case = Case(Bench(pipeline(tmp_path), *repository, sandbox), index, gateway())
    outcome = case.outcome("inner", ["inner"], dependencies={"network": "none"})
    assert outcome.log.last_lines[-1] == "3.0 1.0"
    assert outcome.dependencies["inner"] == "3.0"
    assert case.outcome("inner; dep").log.last_lines[-2] == "3.0 1.0"


@pytest.fixture(params=["none", "of another system"])
def image_without_uv(request: pytest.FixtureRequest, docker_image: str) -> Iterator[tuple[str, str]]:
    """Has no uv, or one that does not run there."""
    name, container = f"firstbad-test-without-uv:{os.getpid()}", f"firstbad-test-without-uv-{os.getpid()}"
    script = "rm /usr/local/bin/uv"
    if request.param != "none":
        script += "; printf '#!/nowhere\\n' > /usr/local/bin/uv; chmod +x /usr/local/bin/uv"
    subprocess.run(["docker", "run", "--name", container, docker_image, "sh", "-c", script], check=True)
    subprocess.run(["docker", "commit", container, name], check=True, capture_output=True)
    yield name, request.param
    subprocess.run(["docker", "rm", container], capture_output=True)
    subprocess.run(["docker", "rmi", "--force", name], capture_output=True)


def test_an_image_without_uv_gets_ours_and_else_pip(
    image_without_uv: tuple[str, str], tmp_path: Path, repository: tuple[Path, tuple[str, ...]], index: Index
) -> None:
    image, uv = image_without_uv
    case = Case(Bench(pipeline(tmp_path), *repository, Sandbox(kind="docker", image=image)), index, gateway())
    dated = case.probe()
    if uv == "none":
        assert dated.outcome is not None and dated.outcome.dependencies["dep"] == "1.0", dated
        return
    assert dated.fault is not None and dated.fault.kind == "no-uv" and "uv" in dated.fault.advice
    env = {"PIP_INDEX_URL": case.url, "PIP_TRUSTED_HOST": case.host}
    script = f"echo begins; dep tested; {VERSION_OF_DEP}"
    said = case.said(script, dependencies={"as_of": None, "constraints": "dep<2"}, env=env)
    assert said[1].split()[1].endswith("/work/venv" + site_of("tested.py")) and said[2] == "1.0"
