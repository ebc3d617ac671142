"""What a node keeps, within its budget: the longest unused goes, what is in use never does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.waiting import eventually
from tests.worker.bench import Bench
from tests.worker.conftest import pipeline
from tests.worker.registry import pushed, registry
from tests.worker.test_left import ENGINE
from worker.contract import Sandbox, Source
from worker.kept import size_of
from worker.run import cgroups
from worker.run.docker.pulled import Pulled
from worker.run.stop import Stop
from worker.settings import Settings
from worker.tidy import BROKEN_S, Tidy

MIB = 1024**2


@pytest.fixture
def bench(tmp_path: Path, repository: tuple[Path, tuple[str, ...]]) -> Iterator[Bench]:
    needs("bwrap")
    made = pipeline(tmp_path, sandboxes=("process",))
    yield Bench(made, *repository, Sandbox(kind="process"))
    for each in made.site.sandboxes.values():
        each.close()


def tidy(bench: Bench, budget: int, fresh_s: float = 0.0) -> None:
    Tidy(bench.pipeline.site, budget, fresh_s=fresh_s).tidy()


def filled(folder: Path, days: float, size: int = MIB) -> Path:
    """A cache that nobody has used for some days."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "content").write_bytes(os.urandom(size))
    unused(folder, days)
    return folder


def unused(path: Path, days: float) -> None:
    when = time.time() - days * 86_400
    os.utime(path, (when, when))


def caches(bench: Bench) -> set[str]:
    folder = bench.pipeline.site.caches.folder
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_the_longest_unused_goes_until_the_rest_fits(bench: Bench) -> None:
    folder = bench.pipeline.site.caches.folder
    for name, days in {"a": 3, "b": 9, "c": 1, "d": 5}.items():
        filled(folder / name, days)
    tidy(bench, 5 * MIB)
    assert caches(bench) == {"a", "b", "c", "d"}
    tidy(bench, int(2.5 * MIB))
    assert caches(bench) == {"a", "c"}
    assert bench.left() == []


def test_what_was_used_a_moment_ago_stays_whatever_it_takes(bench: Bench) -> None:
    filled(bench.pipeline.site.caches.folder / "new", 0)
    tidy(bench, 1, fresh_s=600.0)
    assert caches(bench) == {"new"}


def test_a_cache_that_a_build_uses_stays_and_is_new_afterwards(bench: Bench) -> None:
    site = bench.pipeline.site
    path = filled(site.caches.path("used"), 30)
    with site.caches.using(path, None):
        unused(path, 30)
        tidy(bench, 1)
        assert caches(bench) == {"used"}
    tidy(bench, 1, fresh_s=600.0)
    assert caches(bench) == {"used"}
    tidy(bench, 1)
    assert caches(bench) == set()


def test_a_build_finds_its_cache_again_and_makes_one_that_is_gone(bench: Bench) -> None:
    command = 'mkdir -p "$UV_CACHE_DIR"; echo x >> "$UV_CACHE_DIR/n"; wc -l < "$UV_CACHE_DIR/n"; exit 1'

    def counted() -> str:
        failure = bench.build(command).failure
        assert failure is not None
        return bench.text(failure)[-1].strip()

    assert counted() == "1" and counted() == "2"
    tidy(bench, 1)
    assert caches(bench) == set() and counted() == "1"


def test_a_repository_that_nobody_fetches_from_goes_and_is_fetched_again(bench: Bench, tmp_path: Path) -> None:
    sources = bench.pipeline.site.sources
    source = Source(repo=str(bench.repository), sha=bench.shas[0])
    sources.archive(source, tmp_path / "tree.tar", Stop())
    (kept,) = [path for path in sources.folder.glob("*.git") if path.name != "stand-in.git"]
    with sources._locked(source.repo, Stop()):  # as another order has it
        tidy(bench, 1)
        assert kept.exists()
    tidy(bench, 1)
    assert not kept.exists() and (sources.folder / "stand-in.git").exists()
    sources.archive(source, tmp_path / "again.tar", Stop())
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "tree.tar").read_bytes()


def test_environments_count_and_go_too_but_not_while_somebody_has_them(bench: Bench) -> None:
    environments = bench.pipeline.site.environments

    def prepare(folder: Path) -> None:
        (folder / "content").write_bytes(os.urandom(MIB))

    for key in ("old", "used"):
        with environments.using(key, prepare, Stop()):
            pass
    unused(environments.folder / "old" / "ready", 9)
    with environments.using("used", prepare, Stop()):
        unused(environments.folder / "used" / "ready", 30)
        tidy(bench, 1)
        assert [path.name for path in environments.folder.iterdir() if path.is_dir()] == ["used"]
    tidy(bench, 1)
    assert list(environments.folder.iterdir()) == []


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(MIB))
    once = size_of(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "link").symlink_to("/")
    assert MIB <= once == size_of(tmp_path) < 2 * MIB


def test_what_could_not_be_sent_is_kept_for_a_month(bench: Bench) -> None:
    outgoing = bench.pipeline.site.work_dir / "outgoing"
    outgoing.mkdir(parents=True)
    for name, days in {"new.broken": 1.0, "old.broken": BROKEN_S / 86_400 + 1, "old.json": 90.0}.items():
        (outgoing / name).touch()
        unused(outgoing / name, days)
    tidy(bench, 1)
    assert sorted(path.name for path in outgoing.iterdir()) == ["new.broken", "old.json"]


def test_what_lies_in_the_bin_is_removed(bench: Bench) -> None:
    left = bench.pipeline.site.bin.folder / "left"
    (left / "deep").mkdir(parents=True)
    tidy(bench, MIB)
    eventually(lambda: not left.exists(), what="what was left in the bin is gone")


def test_groups_of_workers_that_are_gone_are_removed_and_one_that_is_missed_is_made_again() -> None:
    needs("cpu-groups")
    name = f"test-{os.getpid()}"
    groups, prefix = cgroups.Groups(name), f"{cgroups.PREFIX}{name}-"
    with groups.one(10, None, None) as group, subprocess.Popen(["sleep", "3600"]) as sleeper:
        assert group is not None
        folders = [Path(entry).parent for entry in group.entries]
        for folder in folders:
            (folder / "cgroup.procs").write_text(str(sleeper.pid))
        # What is in one keeps it, and so does its age.
        cgroups.remove_forgotten(-60.0, prefix)
        assert all(folder.exists() for folder in folders)
        sleeper.kill()
    eventually(lambda: not any((folder / "cgroup.procs").read_text() for folder in folders))
    cgroups.remove_forgotten(86_400.0, prefix)
    assert all(folder.exists() for folder in folders)
    cgroups.remove_forgotten(-60.0, prefix)
    assert not any(folder.exists() for folder in folders)
    with groups.one(10, None, None) as again:
        assert again is not None and all(folder.exists() for folder in folders)
    groups.close()
    assert not any(folder.exists() for folder in folders)


def test_an_image_that_we_pulled_goes_and_one_that_was_there_stays(docker_image: str, tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    with registry(tmp_path / "registry") as host, pushed(host, docker_image) as name:
        made = pipeline(tmp_path, sandboxes=("docker",), node=f"node-{tmp_path.name}")
        sandbox = made.site.sandboxes["docker"]
        before = sandbox.stands_on(docker_image, Stop())
        subprocess.run(["docker", "rmi", name], capture_output=True, check=False)
        sandbox.stands_on(name, Stop())
        assert [item.place for item in sandbox.kept()] == [f"image {name}"]
        held = ["docker", "create", "--name", f"held-{os.getpid()}", name, "true"]
        subprocess.run(held, capture_output=True, check=True)
        Tidy(made.site, 1, fresh_s=0.0).tidy()
        subprocess.run(["docker", "rm", f"held-{os.getpid()}"], capture_output=True, check=True)
        Tidy(made.site, 1, fresh_s=0.0).tidy()
        assert list(sandbox.kept()) == []
        gone = subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False)
        assert gone.returncode != 0
        assert sandbox.stands_on(docker_image, Stop()) == before
        sandbox.close()


def test_an_engine_that_went_away_keeps_its_images_and_nothing_else(docker_image: str, tmp_path: Path) -> None:
    socket = tmp_path / "engine.sock"
    with subprocess.Popen([sys.executable, "-c", ENGINE, str(socket)]) as engine:
        eventually(socket.exists)
        made = pipeline(tmp_path, sandboxes=("docker",), docker_host=f"unix://{socket}")
        sandbox = made.site.sandboxes["docker"]
        assert "engine" in sandbox.facts()
        engine.kill()
    pulled = Pulled(made.site.work_dir / "pulled")
    pulled.note("of-no-registry:1")
    for file in pulled.folder.iterdir():
        unused(file, 30)
    cache = filled(made.site.caches.folder / "a", 3)
    Tidy(made.site, 1, fresh_s=0.0).tidy()
    assert not cache.exists()
    assert [item.place for item in sandbox.kept()] == ["image of-no-registry:1"]
    sandbox.close()


@pytest.mark.parametrize(("said", "size"), [("500M", 500 * MIB), ("2G", 2048 * MIB), ("1T", 1024 * 1024 * MIB)])
def test_a_budget_is_written_in_one_word(said: str, size: int) -> None:
    assert Settings(cache_budget=said).cache_bytes == size
