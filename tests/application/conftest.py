from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import psycopg
import pytest

from service.adapters import recipes
from service.adapters.artifacts import Artifacts
from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.adapters.git_history import GitHistory
from service.application.flow import Flow
from service.application.ports import Policy, Ports
from service.application.submission import Submission
from service.domain.access import Caller
from service.domain.bisection import Bisection
from service.domain.recipe import SandboxKind
from tests import postgres
from tests.callers import caller
from tests.fakes.live import LiveWorkers
from tests.fakes.workers import Workers
from tests.repositories import NewCommit, build_repository


@dataclass
class SteppedClock:
    """Tells the time that the test sets."""

    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def pass_(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class CountedIds:
    numbers: count = field(default_factory=lambda: count(1))

    def new(self) -> str:
        return f"b{next(self.numbers):010x}"


@dataclass
class World:
    """A flow on a real database and a real repository of 20 commits in a line, with workers that answer on demand."""

    flow: Flow
    workers: Workers
    clock: SteppedClock
    repository: Path
    shas: tuple[str, ...]
    live: LiveWorkers

    def submit(self, by: str | Caller = "me", **change: object) -> Bisection:
        plain = Submission(
            good=(self.shas[0],), bad=self.shas[-1], repo=str(self.repository), project="source", script="true"
        )
        return self.flow.submit(replace(plain, **change), caller(by) if isinstance(by, str) else by)

    def wait_for_retry(self) -> None:
        """As long as a second attempt waits after a fault."""
        self.clock.pass_(21)
        self.flow.sweep()

    def truth(self, first_bad: int, **exceptions: int) -> Callable[[str], int]:
        """Exit status 1 from that commit on, counted from 0 in `shas`; others by `at_N=status`."""
        statuses = {self.shas[int(name.removeprefix("at_"))]: status for name, status in exceptions.items()}
        order = {sha: number for number, sha in enumerate(self.shas)}
        return lambda sha: statuses.get(sha, int(order[sha] >= first_bad))


@pytest.fixture(scope="session")
def newest_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the newest tables and nothing in them."""
    path = tmp_path_factory.mktemp("newest") / "firstbad.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def newest_postgres(postgres_cluster: str) -> str:
    """The name of a database with the newest tables and nothing in them."""
    with psycopg.connect(postgres_cluster, autocommit=True) as connection:
        connection.execute("CREATE DATABASE newest")
    migrate.upgrade(postgres.url_of(postgres_cluster, "newest"))
    return "newest"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A copy of the newest one of each kind in turn: to migrate takes longer than most tests."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("newest_sqlite"), tmp_path / "firstbad.db")
        yield f"sqlite:///{tmp_path}/firstbad.db"
        return
    cluster, newest = (request.getfixturevalue(name) for name in ("postgres_cluster", "newest_postgres"))
    with postgres.database(cluster, template=newest) as url:
        yield url


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    workers, live, clock = Workers(), LiveWorkers(), SteppedClock()
    repository = tmp_path / "repository"
    shas = build_repository(repository, [NewCommit(f"commit {n}", files={"number": str(n)}) for n in range(20)])
    ports = Ports(
        bisections=Database(create_engine(database_url)),
        history=GitHistory(tmp_path / "mirrors", allow_file=True),
        queue=workers,
        artifacts=Artifacts(str(tmp_path / "store")),
        live=live,
        clock=clock,
        ids=CountedIds(),
        recipes=recipes.load(),
        policy=Policy(frozenset(SandboxKind), SandboxKind.PROCESS),
    )
    return World(Flow(ports), workers, clock, repository, shas, live)


@pytest.fixture
def native(world: World, tmp_path: Path) -> World:
    """The same on the repository of tests/application/native.py."""
    # It knows the World, which is made here.
    from tests.application.native import RECIPE, commit

    path = tmp_path / "native"
    shas = build_repository(path, [commit(number) for number in range(24)])
    ports = replace(world.flow.ports, recipes={**world.flow.ports.recipes, "native": RECIPE})
    return replace(world, flow=replace(world.flow, ports=ports), repository=path, shas=shas)
