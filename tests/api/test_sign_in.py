"""A browser signs in by GitHub, does what it may, and signs out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from service import handed, wiring
from service.adapters.database import migrate
from service.adapters.database.engine import create_engine
from service.adapters.database.repository import Database
from service.adapters.github_sign_in import GitHubSignIn
from service.application.sign_in import SignIn
from service.domain.sign_in import read
from service.doors.gate import Gate
from service.web import create_app
from tests.api.requests import MINIMAL
from tests.fakes.flow import FakeFlow
from tests.fakes.github import FakeGitHub
from tests.fakes.server import serving

SESSION = "/api/v1/session"
HTML = {"Accept": "text/html"}


@dataclass
class SetClock:
    """The time, and how far a test is ahead of it."""

    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class World:
    url: str
    github: FakeGitHub
    flow: FakeFlow
    clock: SetClock
    database: Database
    secure: ASGIApp

    def browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=30, follow_redirects=True)


class Late:
    """Serves what is put into it once its address is known."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    address = f"sqlite:///{tmp_path_factory.mktemp('sign-in') / 'db.sqlite'}"
    migrate.upgrade(address)
    database, clock, flow, github, late = Database(create_engine(address)), SetClock(), FakeFlow(), FakeGitHub(), Late()
    gate = Gate(open=False, failures="100000/minute")
    grants = read("ann=submit, acme/ops=operate")

    def app(site: str, github_url: str) -> Any:
        provider = GitHubSignIn(
            github.client_id, github.client_secret, f"{site}/sign-in/callback", ("acme/ops",), github_url, github_url
        )
        return create_app(
            flow,
            gate=gate,
            sign_in=SignIn(database, clock, provider, grants, site),
            allowed_hosts=("127.0.0.1", "fb.test"),
        )

    with serving(github.app()) as github_url, serving(late) as url:
        late.app = app(url, github_url)
        github.callback = f"{url}/sign-in/callback"
        yield World(url, github, flow, clock, database, app("https://fb.test", github_url))


@pytest.fixture
def world(served: World) -> World:
    served.flow.reset()
    served.clock.ahead = timedelta()
    served.github.signed_in, served.github.denies, served.github.members = "ann", False, {}
    return served


def test_a_page_leads_to_github_and_back_to_the_page(world: World) -> None:
    with world.browser() as browser:
        shown = browser.get("/bisections/abc", headers=HTML)
        assert [str(step.url).partition("?")[0].rpartition(":")[2].partition("/")[2] for step in shown.history] == [
            "bisections/abc",
            "sign-in",
            "login/oauth/authorize",
            "sign-in/callback",
        ]
        assert (shown.status_code, shown.url.path) == (404, "/bisections/abc")
        who = browser.get(SESSION).json()
        assert (who["name"], who["scope"]) == ("github:ann", "submit")


def test_a_program_is_told_that_it_needs_a_token_and_led_nowhere(world: World) -> None:
    with world.browser() as program:
        answer = program.get("/api/v1/bisections")
        assert (answer.status_code, answer.history) == (401, [])
        assert program.get("/bisections/abc").status_code == 401


def test_a_session_changes_things_with_its_csrf_token_alone(world: World) -> None:
    with world.browser() as browser:
        browser.get("/sign-in")
        csrf = browser.get(SESSION).json()["csrf"]
        for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é".encode("latin-1")}):
            refused = browser.post("/api/v1/bisections", json=MINIMAL, headers=headers)
            assert (refused.status_code, refused.json()["type"]) == (403, "/problems/wrong-csrf-token")
        made = browser.post("/api/v1/bisections", json=MINIMAL, headers={"X-CSRF-Token": csrf})
        assert made.status_code == 201
        assert world.flow.kept[made.json()["id"]].submitter == "github:ann"
        assert browser.post("/api/v1/nodes/node-1/return", headers={"X-CSRF-Token": csrf}).status_code == 403


def test_who_is_in_a_team_may_do_what_the_team_may(world: World) -> None:
    world.github.signed_in, world.github.members = "bob", {"acme/ops": {"bob": "active"}}
    with world.browser() as browser:
        browser.get("/sign-in")
        who = browser.get(SESSION).json()
        assert (who["name"], who["scope"]) == ("github:bob", "operate")


def test_a_stranger_and_one_who_says_no_at_github_get_no_session(world: World) -> None:
    for login, denies, said in (("eve", False, "eve may not use this service"), ("ann", True, "access_denied")):
        world.github.signed_in, world.github.denies = login, denies
        with world.browser() as browser:
            answer = browser.get("/sign-in", headers=HTML)
            assert answer.status_code == 403
            assert said in answer.text
            assert not browser.cookies


def test_a_code_is_taken_from_the_browser_alone_that_asked_for_it(world: World) -> None:
    """Else a link could sign somebody in as the attacker."""
    with world.browser() as attacker, world.browser() as victim:
        attacker.follow_redirects = False
        callback = attacker.get(attacker.get("/sign-in").headers["location"]).headers["location"]
        for state in (callback, callback.partition("&state=")[0], f"{callback}x"):
            refused = victim.get(state)
            assert (refused.status_code, list(victim.cookies)) == (403, [])
        assert attacker.get(callback).status_code == 303
        # The state is used up with the cookie.
        assert attacker.get(callback).status_code == 403


@pytest.mark.parametrize(
    "next", ["//evil.test", "https://evil.test/", "/\\evil.test", "/%2fevil", "/bisections/a/../b", "\n/"]
)
def test_a_link_to_sign_in_leads_to_no_other_site(world: World, next: str) -> None:
    with world.browser() as browser:
        shown = browser.get("/sign-in", params={"next": next})
        assert (shown.url.host, shown.url.path) == ("127.0.0.1", "/")


def test_a_session_ends_by_signing_out_and_its_cookie_is_worth_nothing_then(world: World) -> None:
    with world.browser() as browser:
        browser.get("/sign-in")
        kept, csrf = dict(browser.cookies), browser.get(SESSION).json()["csrf"]
        assert browser.post("/sign-out", data={"csrf": "0" * 64}).status_code == 403
        assert browser.get(SESSION).status_code == 200
        browser.follow_redirects = False
        assert browser.post("/sign-out", data={"csrf": csrf}).status_code == 303
        assert not browser.cookies
        browser.cookies.update(kept)
        assert browser.get(SESSION).status_code == 401


def test_a_session_is_over_after_its_hours_and_is_forgotten_when_another_begins(world: World) -> None:
    with world.browser() as browser, world.browser() as other:
        browser.get("/sign-in")
        text = browser.cookies["firstbad"]
        world.clock.ahead = timedelta(hours=13)
        assert browser.get(SESSION).status_code == 401
        other.get("/sign-in")
        world.clock.ahead = timedelta()
        assert browser.get(SESSION).status_code == 401
        assert text not in str(_kept(world)), "the text of a cookie is kept nowhere"


def _kept(world: World) -> list[object]:
    with create_engine(str(world.database._engine.url)).connect() as connection:
        return list(connection.exec_driver_sql("SELECT * FROM sessions").all())


def test_by_https_the_cookies_are_for_this_host_and_https_alone(world: World) -> None:
    transport = httpx.ASGITransport(world.secure)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="https://fb.test") as browser:
            return await browser.get("/sign-in")

    cookie = asyncio.run(ask()).headers["set-cookie"]
    assert cookie.startswith("__Host-firstbad-begun=")
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert "Domain" not in cookie


SETTINGS = {
    "site": "https://fb.test",
    "github_client_id": "Iv1.0123456789abcdef",
    "github_client_secret": "shh-not-for-anybody",
    "sign_in": "ann=admin",
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"github_client_secret": None}, "FIRSTBAD_GITHUB_CLIENT_SECRET"),
        ({"site": None}, "FIRSTBAD_SITE"),
        ({"sign_in": ""}, "FIRSTBAD_SIGN_IN"),
        ({"sign_in": "ann=root"}, "FIRSTBAD_SIGN_IN: 'ann=root'"),
    ],
)
def test_settings_that_let_nobody_sign_in_are_told_before_the_start(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    wiring.check(wiring.Settings.model_validate({**SETTINGS, "home": tmp_path}))
    wrong = wiring.Settings.model_validate({**SETTINGS, "home": tmp_path, **changed})
    with pytest.raises(ValueError, match=re.escape(said)):
        wiring.check(wrong)
    assert "shh-not-for" not in repr(wrong)


@pytest.mark.parametrize(
    "site", ["http://fb.test", "https://fb.test/", "https://fb.test/x", "https://a@fb.test", "fb.test"]
)
def test_a_site_without_https_or_with_a_path_is_refused(site: str) -> None:
    with pytest.raises(ValidationError, match="site"):
        wiring.Settings.model_validate({**SETTINGS, "site": site})
    assert wiring.Settings.model_validate({**SETTINGS, "site": "http://127.0.0.1:8377"}).site


def test_a_worker_is_handed_no_secret_of_the_api() -> None:
    environment = {"FIRSTBAD_GITHUB_CLIENT_SECRET": "s", "FIRSTBAD_UP_KEY": "k", "FIRSTBAD_HOME": "/h", "PATH": "/bin"}
    assert handed.of_worker(environment) == {"FIRSTBAD_HOME": "/h", "PATH": "/bin"}
