"""How environments are kept on a node, without what prepares them: a folder that says who filled it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.worker.index_server import wheel_of
from worker.build.environments import Environments, requirements
from worker.errors import NodeFault, Stopped
from worker.run.job import delete
from worker.run.stop import CANCELLED, Stop


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "environments", 2, delete)


def fill(folder: Path) -> None:
    (folder / "file").write_text("x")


def use(environments: Environments, key: str) -> int:
    """Which one it is: another when it was prepared anew."""
    with environments.using(key, fill, Stop()) as folder:
        return (folder / "file").stat().st_ctime_ns


def kept(environments: Environments) -> set[str]:
    return {path.name for path in environments.folder.iterdir() if path.is_dir()}


def used_at(environments: Environments, key: str, when: int) -> None:
    os.utime(environments.folder / key / "ready", (when, when))


def test_the_least_recently_used_ones_go(environments: Environments) -> None:
    first = use(environments, "a")
    use(environments, "b")
    used_at(environments, "a", 1)
    used_at(environments, "b", 2)
    assert use(environments, "a") == first
    use(environments, "c")
    assert kept(environments) == {"a", "c"}
    assert {path.name for path in environments.folder.glob("*.lock")} == {"a.lock", "c.lock"}
    assert use(environments, "a") == first


def test_what_is_in_use_never_goes(environments: Environments) -> None:
    with environments.using("a", fill, Stop()) as folder:
        for number, key in enumerate("bcd"):
            use(environments, key)
            used_at(environments, "a", 1)
            used_at(environments, key, 2 + number)
        environments.tidy()
        assert (folder / "file").exists()
        assert kept(environments) == {"a", "c", "d"}
    environments.tidy()
    assert kept(environments) == {"c", "d"}


@pytest.mark.parametrize("error", [NodeFault("registry", "down"), Stopped(CANCELLED), OSError(28, "full")])
def test_a_preparation_that_failed_leaves_nothing(environments: Environments, error: Exception) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise error

    with pytest.raises((NodeFault, Stopped)), environments.using("a", fail, Stop()):
        pytest.fail("there is no environment")
    assert kept(environments) == set()
    use(environments, "a")


def test_what_was_left_half_made_is_made_anew(environments: Environments) -> None:
    half = environments.folder / "a" / "env"
    half.mkdir(parents=True)
    (half / "old").touch()
    with environments.using("a", fill, Stop()) as folder:
        assert [path.name for path in folder.iterdir()] == ["file"]
    (environments.folder / "b" / "env").mkdir(parents=True)
    environments.tidy()
    assert kept(environments) == {"a"}


def test_many_at_once_prepare_each_once(environments: Environments) -> None:
    made: list[str] = []
    seen: list[bool] = []

    def work(key: str) -> None:
        def prepare(folder: Path) -> None:
            made.append(key)
            fill(folder)

        with environments.using(key, prepare, Stop()) as folder:
            seen.append((folder / "file").exists())

    threads = [threading.Thread(target=work, args=(key,)) for key in "abab" * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert seen == [True] * 16
    assert sorted(made) == ["a", "b"]


def test_who_waits_for_a_preparation_can_be_stopped(environments: Environments) -> None:
    begun, go, stop, ended = threading.Event(), threading.Event(), Stop(), threading.Event()

    def prepare(folder: Path) -> None:
        begun.set()
        go.wait(60.0)
        fill(folder)

    def wait() -> None:
        with contextlib.suppress(Stopped), environments.using("a", prepare, stop):
            return
        ended.set()

    preparing = threading.Thread(target=use_with, args=(environments, prepare))
    preparing.start()
    assert begun.wait(60.0)
    waiting = threading.Thread(target=wait)
    waiting.start()
    stop.press(CANCELLED)
    assert ended.wait(60.0)
    go.set()
    preparing.join(60.0)
    assert kept(environments) == {"a"}


def use_with(environments: Environments, prepare: object) -> None:
    with environments.using("a", prepare, Stop()):  # type: ignore[arg-type]
        pass


def asked(tmp_path: Path, lines: list[str], python: str | None = None) -> list[str] | None:
    name, content = wheel_of("tested", "1.0", lines)
    (tmp_path / name).write_bytes(content)
    found = requirements(tmp_path / name, python)
    return None if found is None else [str(each) for each in found]


def test_only_what_applies_without_extras_is_asked_for(tmp_path: Path) -> None:
    lines = ["b>=2", "a", "c; extra == 'test'", "d; sys_platform == 'nowhere'", "e[x]; python_version >= '3.0'"]
    assert asked(tmp_path, lines) == ["a", "b>=2", 'e[x]; python_version >= "3.0"']
    assert asked(tmp_path, ["c; python_version > '3' and extra == 'test'", "d; extra != 'test'"]) == [
        'd; extra != "test"'
    ]


def test_the_version_that_counts_is_the_sandboxs(tmp_path: Path) -> None:
    lines = ["a; python_version < '3.8'", "b; python_version >= '3.8'"]
    assert asked(tmp_path, lines, "3.7") == ['a; python_version < "3.8"']
    assert asked(tmp_path, lines, "3.12") == ['b; python_version >= "3.8"']


def test_the_order_and_repetitions_of_requirements_mean_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, ["b", "a", "b"]) == asked(tmp_path, ["a", "b"])


@pytest.mark.parametrize("line", ["-r /etc/passwd", "a ==", "--index-url http://evil", "a; nonsense == '1'"])
def test_what_is_no_requirement_reaches_no_file(tmp_path: Path, line: str) -> None:
    assert asked(tmp_path, ["a", line]) is None


def test_metadata_that_is_none_is_left_to_the_installer(tmp_path: Path) -> None:
    broken = tmp_path / "a-1-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    assert requirements(broken, None) is None
    assert Requirement("a") in (requirements(tmp_path / _made(tmp_path), None) or ())


def _made(folder: Path) -> str:
    name, content = wheel_of("tested", "1.0", ["a"])
    (folder / name).write_bytes(content)
    return name
