"""The page of a bisection."""

from __future__ import annotations

import html
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from service.domain.bisection import Problem, Purpose
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState
from service.web import create_app
from tests.api.measured import begun
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.conftest import needs
from tests.doors.curves import STEP, stepped
from tests.fakes.flow import FakeFlow, commit, sha
from tests.fakes.server import serving

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} \x00 \u202egnp.exe \"' &amp;"
BROWSER = (
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)


class Page(HTMLParser):
    """Its elements and its text."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(written)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_holds_the_answer_the_picture_and_the_evidence(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow)
    flow.find(id, STEP)
    answer = http.get(f"/bisections/{id}")
    page = Page(answer.text)
    assert f"{sha(STEP)[:10]} is the first bad commit: Change number {STEP}" in page.text
    assert "Ann Example" in page.text
    assert "A bisection may find the commit that exposed a fault" in page.text
    rows = answer.text.partition("<h2>Evidence</h2>")[2]
    assert re.findall(r'class="(good|bad)">(?:good|bad)<', rows) == ["bad", "good"]
    links = [held["href"] for tag, held in page.tags if tag == "a"]
    assert [http.get(str(link)).status_code for link in links] == [200, 200, 200]
    image = next(held for tag, held in page.tags if tag == "img")
    assert http.get(str(image["src"])).headers["content-type"] == "image/svg+xml"
    assert "12.1 % (9.4 to 14.8 %) worse" in str(image["alt"])
    numbers = answer.text.partition("The same in numbers")[2].partition("</table>")[0]
    assert numbers.count("<tr>") == 1 + len(stepped().points)


def test_a_page_without_a_metric_has_no_picture_and_one_that_was_refused_says_why(
    http: httpx.Client, flow: FakeFlow
) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.end(id, BisectionState.REFUSED, problem=Problem("bad-ends", "No", "both <pass>", advice="look again"))
    answer = http.get(f"/bisections/{id}")
    assert "both &lt;pass&gt;" in answer.text and "look again" in answer.text
    assert not [tag for tag, _ in Page(answer.text).tags if tag in ("img", "table")]


@pytest.mark.parametrize("id", ["gone", "not one", "\x00", "x" * 65, "<script>alert(1)"])
def test_who_mistypes_an_id_is_told_so_on_a_page(http: httpx.Client, id: str) -> None:
    answer = http.get(f"/bisections/{quote(id, safe='')}")
    page = Page(answer.text)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no bisection" in page.text and "firstbad list" in page.text
    assert "script-src 'sha256-" in answer.headers["content-security-policy"]
    assert [tag for tag, _ in page.tags].count("script") == 1 and "data-live" not in answer.text.partition("<main>")[0]


def test_while_it_is_live_a_page_renews_itself_with_and_without_javascript(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow)
    live = http.get(f"/bisections/{id}").text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in live
    assert "<body data-live>" in live
    assert "13 of 249 candidates left, 0 probes done" in live
    flow.find(id, STEP)
    ended = http.get(f"/bisections/{id}").text
    assert "http-equiv" not in ended and "<body>" in ended


def test_the_address_of_the_picture_changes_when_the_picture_does(http: httpx.Client, flow: FakeFlow) -> None:
    id = begun(flow)

    def address() -> str:
        return re.findall(r'<img src="([^"]+)"', http.get(f"/bisections/{id}").text)[0]

    first = address()
    assert address() == first
    flow.curves[id] = replace(stepped(), notes=("2 runs were dropped",))
    assert address() != first


def test_what_users_wrote_is_text_on_a_page(http: httpx.Client, flow: FakeFlow) -> None:
    curve = replace(stepped(), name=HOSTILE, unit=HOSTILE, headline=HOSTILE, notes=(HOSTILE,))
    points = tuple(replace(point, subject=HOSTILE, verdict=Verdict.BAD) for point in curve.points)
    plain, id = begun(flow), begun(flow, replace(curve, points=points))
    for each in (plain, id):
        flow.find(each, STEP)
    expected = {tag for tag, _ in Page(http.get(f"/bisections/{plain}").text).tags}
    hostile = replace(flow.kept[id].request, good=(HOSTILE,), bad=HOSTILE, repo=HOSTILE)
    flow.change(id, "state", request=hostile, notes=(HOSTILE,))
    flow.history.update({sha(at): replace(commit(at, HOSTILE), author=HOSTILE) for at in (0, STEP - 1, STEP, 249)})
    flow.judge(flow.plan(id, STEP, Purpose.SEARCH), Verdict.BAD, HOSTILE)
    flow.change(id, "state", problem=Problem("x", HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE))
    page = Page(http.get(f"/bisections/{id}").text)
    assert {tag for tag, _ in page.tags} - {"pre"} == expected
    assert not [name for _, held in page.tags for name in held if name.startswith("on")]
    assert page.text.count("</td><script>alert(1)</script>") >= 10
    assert "{{ 7 * 7 }}" in page.text and "\x00" not in page.text and "\u202e" not in page.text


def test_a_page_runs_its_own_script_and_loads_from_its_own_service_alone(http: httpx.Client, flow: FakeFlow) -> None:
    policy = http.get(f"/bisections/{begun(flow)}").headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert (rules["default-src"], rules["img-src"], rules["connect-src"]) == ("'none'", "'self'", "'self'")
    assert all(re.fullmatch(r"'sha256-[\w+/]{43}='", rules[kind]) for kind in ("script-src", "style-src"))
    assert rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"


class Ending:
    """The bisection ends when its page is asked for a second time, which the page's script does."""

    def __init__(self, app: ASGIApp, flow: FakeFlow, id: str) -> None:
        self.app, self.flow, self.id, self.asked = app, flow, id, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == f"/bisections/{self.id}":
            self.asked += 1
            if self.asked == 2:
                self.flow.find(self.id, STEP)
        await self.app(scope, receive, send)


def test_in_a_browser_the_answer_appears_on_the_page_that_is_open(tmp_path: Path) -> None:
    needs("chromium")
    flow = FakeFlow()
    ending = Ending(create_app(flow), flow, begun(flow))
    with serving(ending) as url:
        own = (f"--user-data-dir={tmp_path}", "--virtual-time-budget=8000", "--dump-dom")
        shown = subprocess.run(
            [*BROWSER, *own, f"{url}/bisections/{ending.id}"], capture_output=True, text=True, timeout=120, check=True
        )
    assert ending.asked == 2
    heading = re.findall(r"<h1>(.*)</h1>", shown.stdout)
    assert [html.unescape(said) for said in heading] == [
        f"{sha(STEP)[:10]} is the first bad commit: Change number {STEP}"
    ]
    assert "<h2>Evidence</h2>" in shown.stdout
    assert "Content Security Policy" not in shown.stderr and "Uncaught" not in shown.stderr
