"""A database that cannot do it now says so in one way, whichever it is, and does it later."""

from __future__ import annotations

import random
import sqlite3
import string
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.application.ports import StoreBusy
from service.domain.lifecycle import ProbeState
from tests.adapters import samples


@pytest.fixture
def locked(tmp_path: Path) -> sqlite3.Connection:
    """The one writer that SQLite lets in."""
    migrate.upgrade(f"sqlite:///{tmp_path}/firstbad.db")
    holder = sqlite3.connect(tmp_path / "firstbad.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    return holder


@pytest.fixture
def on_postgresql(postgres_url: str) -> Database:
    migrate.upgrade(postgres_url)
    database = Database(create_engine(postgres_url))
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
        tx.add_bisection(samples.fresh("b2"))
    return database


def test_sqlite_locked_for_longer_than_one_waits_is_busy_and_free_later(
    locked: sqlite3.Connection, tmp_path: Path
) -> None:
    database = Database(create_engine(f"sqlite:///{tmp_path}/firstbad.db", busy_timeout_s=0.1))
    with pytest.raises(StoreBusy, match="locked"), database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))
    locked.execute("COMMIT")
    with database.transaction() as tx:
        tx.add_bisection(samples.fresh("b1"))


def test_a_mistake_in_a_statement_is_not_busy(tmp_path: Path) -> None:
    database = Database(create_engine(f"sqlite:///{tmp_path}/empty.db"))
    with pytest.raises(OperationalError, match="no such table"), database.transaction() as tx:
        tx.bisection("b1")


def test_what_is_too_long_for_postgresql_is_not_busy(on_postgresql: Database) -> None:
    """It would be tried again for ever."""
    queue = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=5000))
    with pytest.raises(OperationalError, match="exceeds btree"), on_postgresql.transaction() as tx:
        tx.add_probe(samples.planned("b1", 1, state=ProbeState.QUEUED, queue=queue))


def test_postgresql_that_ends_our_backend_is_busy_and_there_later(on_postgresql: Database, postgres_url: str) -> None:
    with pytest.raises(StoreBusy), on_postgresql.transaction() as tx:
        tx.bisection("b1", lock=True)
        end_others(postgres_url)
        tx.bisection("b1")
    with on_postgresql.transaction() as tx:
        assert tx.bisection("b1").id == "b1"


def test_a_postgresql_that_is_not_there_is_busy() -> None:
    database = Database(create_engine("postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(StoreBusy), database.transaction():
        pass


def test_of_two_that_lock_each_other_out_one_is_told_busy(on_postgresql: Database) -> None:
    both_hold, busy = threading.Barrier(2), []

    def lock(first: str, second: str) -> None:
        try:
            with on_postgresql.transaction() as tx:
                tx.bisection(first, lock=True)
                both_hold.wait()
                found = tx.bisection(second, lock=True)
                tx.save_bisection(replace(found, candidates=7))
        except StoreBusy as error:
            busy.append(str(error))

    threads = [threading.Thread(target=lock, args=names) for names in (("b1", "b2"), ("b2", "b1"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(busy) == 1
    assert "deadlock" in busy[0]


def end_others(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
