"""firstbad store tidy: what no row knows goes, once somebody has said so."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from tests.adapters import samples
from tests.cli.conftest import Terminal

LOST, YOUNG, OTHER = "logs/b99.1.1.log.zst", "logs/b98.1.1.log.zst", "theirs/notes.txt"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a file of each kind in its store; the wheel is that of a build that is kept."""
    home = tmp_path / "home"
    url = f"sqlite:///{home}/firstbad.sqlite"
    migrate.upgrade(url)
    engine = create_engine(url)
    with Database(engine).transaction() as tx:
        samples.fill(tx)
        path = "wheels/key/1/x-1-py3-none-any.whl"
        tx.save_build(replace(samples.build(), wheel_path=path))
    engine.dispose()
    for name, days in ((LOST, 2), (YOUNG, 0), (OTHER, 2), (path, 2)):
        file = home / "store" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
        at = (datetime.now(UTC) - timedelta(days=days)).timestamp()
        os.utime(file, (at, at))
    return home


def names(home: Path) -> set[str]:
    store = home / "store"
    return {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}


def test_a_dry_run_lists_what_would_go_and_removes_nothing(terminal: Terminal, home: Path) -> None:
    before = names(home)
    done = terminal.run("store", "tidy", "--dry-run", "--home", str(home))
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith(f"{LOST}  5 B  ")
    assert done.out.splitlines()[1:] == ["1 file, 5 bytes, would be removed."]
    assert names(home) == before


def test_only_what_is_lost_goes_and_only_when_that_is_confirmed(terminal: Terminal, home: Path) -> None:
    before = names(home)
    refused = terminal.run("store", "tidy", "--home", str(home))
    assert (refused.status, refused.out) == (2, "")
    assert "this would remove 1 file, 5 bytes, that no bisection knows" in refused.err
    done = terminal.run("store", "tidy", "--home", str(home), "--yes", "--json")
    assert [file["path"] for file in json.loads(done.out)["files"]] == [LOST]
    assert names(home) == before - {LOST}
    assert terminal.run("store", "tidy", "--home", str(home)).out == "0 files removed.\n"


def test_a_database_that_does_not_fit_keeps_every_file(terminal: Terminal, home: Path) -> None:
    """Rows that are not there would make all files look lost."""
    migrate.downgrade(f"sqlite:///{home}/firstbad.sqlite", "0004")
    before = names(home)
    for folder in (home, home.parent / "elsewhere"):
        done = terminal.run("store", "tidy", "--home", str(folder), "--yes")
        assert (done.status, done.out) == (3, "") and "firstbad db upgrade" in done.err
    assert names(home) == before


def test_a_store_that_cannot_be_reached_is_told(terminal: Terminal, home: Path) -> None:
    away = terminal.with_env(FIRSTBAD_STORE_URL="s3://u:p@bucket/x")
    done = away.run("store", "tidy", "--home", str(home), "--yes")
    assert done.status == 2 and "FIRSTBAD_STORE_URL: " in done.err and "u:p" not in done.err
