"""Several threads and processes on one database."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.domain.bisection import Message
from service.domain.lifecycle import ProbeState
from tests.adapters import samples
from tests.adapters.samples import T0, planned

THREADS = 4
ADD_ONE = """
import sys
from dataclasses import replace
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
database = Database(create_engine(sys.argv[1]))
for _ in range(25):
    with database.transaction() as transaction:
        found = transaction.bisection("b1", lock=True)
        transaction.save_bisection(replace(found, candidates=found.candidates + 1))
"""
HOLD = """
import sys
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from tests.adapters import samples
with Database(create_engine(sys.argv[1])).transaction() as transaction:
    transaction.add_bisection(samples.fresh("lost"))
    transaction.bisection("b1", lock=True)
    print("holding", flush=True)
    sys.stdin.read()
"""
FORK = """
import os, sys
from sqlalchemy import text
from service.adapters.database.engine import create_engine
engine = create_engine(sys.argv[1])
def ask(number):
    with engine.begin() as connection:
        assert connection.execute(text(f"SELECT {number}")).scalar() == number
ask(1)
child = os.fork()
for _ in range(200):
    ask(2 if child else 3)
if child:
    assert os.waitpid(child, 0)[1] == 0
    ask(4)
"""


@pytest.fixture
def url(database_url: str) -> str:
    migrate.upgrade(database_url)
    return database_url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    engine = create_engine(url)
    with Database(engine).transaction() as transaction:
        transaction.add_bisection(replace(samples.fresh("b1"), candidates=0))
    yield Database(engine)
    engine.dispose()


def at_once(work: Callable[[int], object]) -> list[object]:
    """The results of `work(0)` to `work(THREADS - 1)`, which start together."""
    barrier = threading.Barrier(THREADS)

    def start(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def test_a_locked_bisection_is_changed_by_one_thread_at_a_time(database: Database) -> None:
    def add(_: int) -> None:
        for _ in range(25):
            with database.transaction() as transaction:
                found = transaction.bisection("b1", lock=True)
                transaction.save_bisection(replace(found, candidates=(found.candidates or 0) + 1))

    at_once(add)
    with database.transaction() as transaction:
        assert transaction.bisection("b1").candidates == 25 * THREADS


def test_a_locked_bisection_is_changed_by_one_process_at_a_time(database: Database, url: str) -> None:
    started = [subprocess.Popen([sys.executable, "-c", ADD_ONE, url], stderr=subprocess.PIPE) for _ in range(3)]
    for process in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    with database.transaction() as transaction:
        assert transaction.bisection("b1").candidates == 75


def test_a_locked_probe_is_changed_by_one_thread_at_a_time(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.add_probe(planned("b1", 1))

    def add(_: int) -> None:
        for _ in range(25):
            with database.transaction() as transaction:
                found = transaction.probe("b1-1", lock=True)
                transaction.save_probe(replace(found, attempt=found.attempt + 1))

    at_once(add)
    with database.transaction() as transaction:
        assert transaction.probe("b1-1").attempt == 25 * THREADS


def test_on_postgresql_an_event_is_noted_while_another_holds_the_bisection(postgres_url: str) -> None:
    """Else two that write events, each holding a row that the other wants, would lock each other out."""
    migrate.upgrade(postgres_url)
    engine = create_engine(postgres_url)
    database = Database(engine)
    with database.transaction() as transaction:
        transaction.add_bisection(samples.fresh("b1"))
    with database.transaction() as holder:
        holder.bisection("b1", lock=True)
        with database.transaction() as other:
            other.add_event("b1", T0, "started", {})
        assert len(holder.events("b1")) == 1
    engine.dispose()


def test_every_probe_is_claimed_once_by_threads_that_take_all_they_can(database: Database) -> None:
    with database.transaction() as transaction:
        for number in range(100):
            transaction.add_probe(planned("b1", number, state=ProbeState.QUEUED))

    def claim_all(worker: int) -> list[str]:
        mine = []
        while (claimed := claim(str(worker))) is not None:
            mine.append(claimed)
        return mine

    def claim(worker: str) -> str | None:
        with database.transaction() as transaction:
            transaction.bisection("b1", lock=True)
            queued = transaction.probes_in({ProbeState.QUEUED})
            if not queued:
                return None
            taken = replace(queued[0], state=ProbeState.RUNNING, attempt=queued[0].attempt + 1, node=worker)
            transaction.save_probe(taken)
            return taken.id

    claimed = [id for mine in at_once(claim_all) for id in mine]  # type: ignore[attr-defined]
    assert sorted(claimed) == sorted(f"b1-{number}" for number in range(100))
    with database.transaction() as transaction:
        assert {probe.attempt for probe in transaction.probes("b1")} == {1}


def test_of_several_that_want_a_build_that_is_not_there_one_finds_itself_the_first(database: Database) -> None:
    def ask(number: int) -> int:
        first = 0
        for key in map(str, range(20)):
            with database.transaction() as transaction:
                if transaction.build(key, lock=True) is None:
                    first += 1
                    transaction.save_build(replace(samples.build(key), node=str(number)))
        return first

    assert sum(at_once(ask)) == 20  # type: ignore[arg-type]


def test_a_message_posted_by_all_at_once_is_there_once(database: Database) -> None:
    def post(number: int) -> None:
        for key in map(str, range(20)):
            with database.transaction() as transaction:
                transaction.post(Message("t", key, {"from": number}), T0)

    at_once(post)
    with database.transaction() as transaction:
        assert sorted(message.key for message in transaction.undelivered()) == sorted(map(str, range(20)))


def test_a_process_killed_within_a_transaction_leaves_neither_rows_nor_a_lock(database: Database, url: str) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"holding\n"
    holder.kill()
    holder.communicate()
    with database.transaction() as transaction:
        found = transaction.bisection("b1", lock=True)
        transaction.save_bisection(replace(found, candidates=7))
        assert [one.id for one in transaction.bisections()] == ["b1"]


def test_a_forked_child_does_not_talk_on_its_parents_connections(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, url], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
