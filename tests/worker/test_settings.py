"""The worker's settings."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from worker.run.job import INSIDE, forget_other_insides, install_inside
from worker.run.view import View, files_of, interpreter
from worker.settings import Settings, complaints


def test_lists_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTBAD_SANDBOXES", "process, docker")
    monkeypatch.setenv("FIRSTBAD_VISIBLE", "/models,/data")
    monkeypatch.setenv("FIRSTBAD_ALLOW_FILE_REPOS", "true")
    found = Settings()
    assert found.sandboxes == ("process", "docker")
    assert found.visible == (Path("/models"), Path("/data"))
    assert found.allow_file_repos


def test_only_named_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ssl/cert.pem")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("MY_PROXY", "p")
    assert Settings().passed_env()["SSL_CERT_FILE"] == "/etc/ssl/cert.pem"
    assert "AWS_SECRET_ACCESS_KEY" not in Settings().passed_env()
    assert "AWS_SECRET_ACCESS_KEY" not in Settings().git_env()
    assert Settings(pass_env=("MY_PROXY",)).passed_env() == {"MY_PROXY": "p"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 0},
        {"sandboxes": "vm"},
        {"roles": "test"},
        {"roles": ""},
        {"sandbox_uid": 0},
        {"node": ""},
        {"node": "n\x1b[31m"},
        {"compiler_cache": "all"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().slots = 3  # type: ignore[misc]


def test_a_hidden_folder_is_masked_only_where_it_would_be_seen(tmp_path: Path) -> None:
    inner = tmp_path / "data"
    inner.mkdir()
    view = View(visible=(tmp_path,), hidden=(inner, tmp_path / "missing"))
    assert view.masked(view.shown()) == [inner]
    assert View(hidden=(inner,)).masked(View().shown()) == []


def test_only_files_and_certificates_that_the_node_names_may_be_shown(tmp_path: Path) -> None:
    hidden, folder, file = tmp_path / "hidden", tmp_path / "certificates", tmp_path / "authorities.pem"
    for made in (hidden, folder):
        made.mkdir()
    for made in (file, hidden / "key"):
        made.touch()
    link = tmp_path / "link"
    link.symlink_to(hidden / "key")
    passed = {"A": str(file), "B": str(folder), "SSL_CERT_DIR": str(folder), "C": "/dev/null", "D": "http://p:1"}
    assert files_of(passed, [hidden]) == (file, folder)
    for wrong in (hidden, hidden / "key", link, tmp_path, Path("/")):
        assert files_of({"SSL_CERT_DIR": str(wrong)}, [hidden]) == ()


def test_the_interpreter_is_shown_and_exists() -> None:
    assert interpreter().exists()
    assert any(interpreter().resolve().is_relative_to(path) for path in View().shown())


def test_what_runs_inside_reads_on_the_oldest_python_that_images_may_have() -> None:
    for path in INSIDE.glob("*.py"):
        ast.parse(path.read_text(), path.name, feature_version=(3, 9))


def test_what_runs_inside_is_readable_for_all_and_compiled(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        inside = install_inside(tmp_path)
    finally:
        os.umask(old)
    files = [path for path in inside.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".py", ".pyc"}
    assert all(path.stat().st_mode & 0o004 for path in files)


def test_copies_of_other_versions_are_forgotten_when_nothing_runs_in_them(tmp_path: Path) -> None:
    inside = install_inside(tmp_path)
    other = inside.with_name("of-another-version")
    other.mkdir()
    assert install_inside(tmp_path) == inside and other.exists()
    forget_other_insides(tmp_path)
    assert list(inside.parent.iterdir()) == [inside]


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ssw0rd@host:6379/0",
        "redis://:pa#ssw0rd@host/0",
        "redis://:12/ssw0rd@host/0",
        "redis://:pa[ssw0rd@host/0",
        "ssw0rd@host",
        "redis://host:port/0",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_its_password_not_shown(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(redis_url=url)
    (said,) = complaints(refused.value)
    assert said.startswith("FIRSTBAD_REDIS_URL: ") and "ssw0rd" not in said and "host" in said


def test_a_password_may_hold_anything_that_is_written_as_addresses_write_it() -> None:
    url = "rediss://user:pa%2Fss%23%40word@[::1]:6380/1"
    assert Settings(redis_url=url).redis_url == url
