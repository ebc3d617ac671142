"""firstbad db, on databases of its own and beside a service that is up."""

from __future__ import annotations

import fcntl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.domain.figures import Beat
from tests.cli.conftest import Terminal


@pytest.fixture
def at_home(terminal: Terminal, tmp_path: Path) -> Terminal:
    return terminal.with_env(FIRSTBAD_HOME=str(tmp_path / "home"))


@pytest.fixture
def on_it(terminal: Terminal, tmp_path: Path, database_url: str) -> Terminal:
    return terminal.with_env(FIRSTBAD_HOME=str(tmp_path / "home"), FIRSTBAD_DATABASE_URL=database_url)


def test_a_database_goes_up_and_down_and_says_from_where_to_where(on_it: Terminal, database_url: str) -> None:
    head = migrate.head()
    asked = on_it.run("db", "version")
    assert (asked.status, asked.err) == (0, "")
    assert asked.out.endswith(f"is empty; this firstbad works with version {head}.\n")
    refused = on_it.run("db", "check")
    assert (refused.status, refused.out) == (3, "")
    assert "`firstbad db upgrade`" in refused.err
    up = on_it.run("db", "upgrade")
    assert (up.status, up.err) == (0, "")
    assert f"which was empty, to version {head}:" in up.out.splitlines()[0]
    assert [line.split()[0] for line in up.out.splitlines()[1:]][:2] == ["0001", "0002"]
    assert on_it.run("db", "upgrade").out.endswith(f"is at version {head} already.\n")
    assert on_it.run("db", "check").status == 0
    down = on_it.run("db", "downgrade", "0004", "--yes")
    assert (down.status, down.err) == (0, "")
    assert f"which was at version {head}, to version 0004:" in down.out
    assert migrate.current(database_url) == "0004"
    assert on_it.run("db", "upgrade").status == 0
    assert not (on_it.folder / "home").exists()


def test_a_downgrade_is_done_only_when_that_is_confirmed(at_home: Terminal) -> None:
    at_home.run("db", "upgrade")
    refused = at_home.run("db", "downgrade", "0003")
    assert (refused.status, refused.out) == (2, "")
    assert "this would lose what only these versions know: " in refused.err and "0004\n" in refused.err
    assert at_home.run("db", "check").status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["downgrade", "0009", "--yes"], 3, "there is no version '0009'"),
        (["downgrade"], 2, "missing argument"),
    ],
)
def test_what_is_no_version_is_told(at_home: Terminal, arguments: list[str], status: int, said: str) -> None:
    at_home.run("db", "upgrade")
    done = at_home.run("db", *arguments)
    assert (done.status, done.out) == (status, "") and said in done.err


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("postgresql://u:secret@127.0.0.1:1/d", 3, "refused"),
        ("mysql://u:secret@h/d", 2, "use sqlite:////path/to/file or postgresql://user@host/name"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_without_its_password(
    at_home: Terminal, url: str, status: int, said: str
) -> None:
    for command in ("version", "check", "upgrade"):
        done = at_home.with_env(FIRSTBAD_DATABASE_URL=url).run("db", command)
        assert (done.status, done.out) == (status, "")
        assert said in done.err and "secret" not in done.err and "Traceback" not in done.err


def test_a_newer_database_is_left_alone(at_home: Terminal, tmp_path: Path) -> None:
    at_home.run("db", "upgrade")
    engine = create_engine(f"sqlite:///{tmp_path}/home/firstbad.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    for arguments in (["check"], ["upgrade"], ["downgrade", "0003", "--yes"]):
        done = at_home.run("db", *arguments)
        assert done.status == 3 and "9999" in done.err and "newer firstbad" in done.err


def test_a_database_is_not_changed_under_a_service_of_its_home(at_home: Terminal, tmp_path: Path) -> None:
    home = tmp_path / "home"
    at_home.run("db", "upgrade")
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = at_home.run("db", "downgrade", "0004", "--yes")
        assert (done.status, done.out) == (3, "")
        assert f"another `firstbad up` runs with {home}: stop it" in done.err
        assert at_home.run("db", "check").status == 0
    assert at_home.run("db", "downgrade", "0004", "--yes").status == 0


def test_a_database_is_not_changed_under_control_workers_elsewhere(on_it: Terminal, database_url: str) -> None:
    on_it.run("db", "upgrade")
    engine, now = create_engine(database_url), datetime.now(UTC)
    with Database(engine).transaction() as tx:
        tx.save_beat(Beat("control@far", now, now, now, 5.0, 8))
    engine.dispose()
    done = on_it.run("db", "downgrade", "0004", "--yes")
    assert (done.status, done.out) == (3, "")
    assert "a service works with this database: control@far" in done.err and "stop it first" in done.err
    assert migrate.current(database_url) == migrate.head()


def test_a_setting_that_cannot_be_used_is_named(at_home: Terminal) -> None:
    done = at_home.with_env(FIRSTBAD_KEEP_LOGS="30").run("db", "version")
    assert (done.status, done.out) == (2, "")
    assert "FIRSTBAD_KEEP_LOGS: '30'" in done.err and "write it like 30d" in done.err
