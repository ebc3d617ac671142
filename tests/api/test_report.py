"""The report in each of its forms, with a repository, logs and people that mean harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.application.reports import markdown
from service.domain.bisection import Answer, Probe, Purpose
from service.domain.evidence import Fault, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from tests.api.requests import SUBMISSION
from tests.callers import TESTER, caller
from tests.fakes.flow import FakeFlow, commit, sha

PATH = "/api/v1/bisections"
NASTY = (
    "</code></pre><script>alert(1)</script> | `a` ``` **b** @everyone [x](http://evil.test) <img src=x onerror=y> "
    "#12 fixes #1 www.evil.test http://evil.test ]]> -->\u202e \x1b[31m &amp; \\| _c_ ~~d~~ $e$ GH-3"
)
FORMATS = ["json", "md", "html", "log", "junit"]
MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")


@pytest.fixture
def found(flow: FakeFlow) -> str:
    """With a subject, a reason, a node and a script that would break out of anything."""
    submission = replace(SUBMISSION, script=f"echo '```'\n{NASTY}\n````\nfalse\n", pasted=False, failure=NASTY[:80])
    id = flow.submit(submission, caller(NASTY[:60])).id
    flow.look_up(id, 8, notes=(NASTY,))
    flow.history.update({sha(n): replace(commit(n), subject=NASTY, author=NASTY) for n in (0, 4, 5, 8)})
    flow.override(id, sha(2), Verdict.GOOD, re.sub("[^ -~]", "", NASTY), TESTER)
    flow.find(id, 5)
    for probe in flow.probes(id):
        flow.tried[probe.id] = replace(probe, reason=NASTY, node=NASTY)
    skipped = flow.judge(flow.plan(id, 3), Verdict.SKIP, NASTY)
    faulted = replace(skipped, id=f"{id}.9", number=9, state=ProbeState.FAULTED, outcome=None)
    flow.tried[faulted.id] = replace(faulted, faults=(Fault("disk-full", NASTY),))
    return id


def get(http: httpx.Client, id: str, format: str) -> httpx.Response:
    answer = http.get(f"{PATH}/{id}/report", params={"format": format})
    assert answer.status_code == 200, answer.text
    return answer


def test_markdown_holds_what_was_written_as_text_alone(http: httpx.Client, found: str) -> None:
    text = get(http, found, "md").text
    tokens = MARKDOWN.parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inner)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "strong_open", "em_open", "s_open"}
    assert not kinds & {"code_inline", "hr", "blockquote_open", "code_block"}
    rows = [token for token in tokens if token.type == "tr_open"]
    assert len(rows) == (1 + 2) + (1 + 6)
    cells = [token.type for token in tokens if token.type in ("td_open", "th_open")]
    assert len(cells) == 6 * len(rows)
    prose = "".join(child.content for child in inner if child.type == "text")
    assert not re.search(r"@\w|#\d|https?://\w|www\.\w|\bGH-\d", prose)
    assert "@\u200beveryone" in prose and "\u202e" not in text and "\x1b" not in text
    (script,) = (token for token in tokens if token.type == "fence" and "false" in token.content)
    assert "echo '```'" in script.content and "<script>" in script.content


def test_markdown_says_what_was_found_how_sure_and_how_to_see_it(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.find(id, 5)
    text = get(http, id, "md").text
    assert f"First bad commit: {sha(5)} Change number 5" in text
    assert "confidence: certain, unless the failure is flaky" in text
    assert f"git checkout {sha(5)}" in text and (SUBMISSION.script or "").strip() in text
    assert "### Evidence" in text and "### All 4 probes" in text


@settings(max_examples=200, deadline=None)
@given(written=st.text(st.characters(), max_size=80) | st.text("`|<>&@#*_[]()!\\~-=+:.1\n w/", max_size=40))
def test_any_text_is_one_line_of_plain_text_in_a_table(written: str) -> None:
    tokens = MARKDOWN.parse(f"| a | b |\n|---|---|\n| {markdown.text(written)} | x |\n")
    assert [token.type for token in tokens].count("td_open") == 2
    inner = {child.type for token in tokens for child in token.children or ()}
    assert inner <= {"text", "text_special"}
    alone = {token.type for token in MARKDOWN.parse(markdown.text(written))}
    assert alone <= {"paragraph_open", "inline", "paragraph_close"}


@settings(max_examples=100, deadline=None)
@given(written=st.text("`~ab\n ", max_size=60))
def test_any_code_stays_in_its_block(written: str) -> None:
    tokens = MARKDOWN.parse(f"{markdown.code(written)}\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_html_loads_and_runs_nothing(http: httpx.Client, found: str) -> None:
    answer = get(http, found, "html")
    tags = Tags()
    tags.feed(answer.text)
    assert not {tag for tag, _ in tags.seen} & {"script", "img", "link", "a", "iframe", "form", "object", "base"}
    assert not {name for _, attrs in tags.seen for name in attrs} & {"src", "href", "onerror", "style"}
    assert [tag for tag, _ in tags.seen].count("tr") == 1 + 6
    assert "&lt;script&gt;" in answer.text and "\u202e" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "sandbox" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_password_in_an_address_is_in_none_of_them(http: httpx.Client, flow: FakeFlow) -> None:
    id = flow.submit(replace(SUBMISSION, repo="https://ann:hunter2@git.example.org/x.git"), TESTER).id
    flow.look_up(id, 8)
    flow.find(id, 5)
    for format in FORMATS:
        assert "hunter2" not in get(http, id, format).text


#: What junit-10 allows: of each element its attributes, those that it must have, and what may stand in it.
SCHEMA = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time", "group"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "skipped": ({"type", "message"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def valid(element: ElementTree.Element) -> None:
    allowed, needed, inside = SCHEMA[element.tag]
    assert needed <= element.attrib.keys() <= allowed, element.tag
    for child in element:
        assert child.tag in inside, f"{child.tag} in {element.tag}"
        valid(child)


def parsed(http: httpx.Client, id: str) -> ElementTree.Element:
    root = ElementTree.fromstring(get(http, id, "junit").content)
    valid(root)
    (suite,) = root
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.attrib[name]) == len(suite.findall(f"testcase/{tag}"))
    assert int(suite.attrib["tests"]) == len(suite)
    return suite


def test_a_regression_is_one_failing_test_faults_are_errors_and_skips_are_skipped(
    http: httpx.Client, found: str
) -> None:
    suite = parsed(http, found)
    (failed,) = suite.findall("testcase/failure")
    assert "is the first bad commit" in failed.attrib["message"] and failed.attrib["type"] == "regression"
    assert [error.attrib["type"] for error in suite.findall("testcase/error")] == ["disk-full"]
    assert len(suite.findall("testcase/skipped")) == 1
    assert len(suite) == 1 + 6


@pytest.mark.parametrize(
    ("state", "tag"), [("refused", "error"), ("failed", "error"), ("cancelled", "skipped"), ("suspects", "failure")]
)
def test_other_ends_are_told_in_junit_too(http: httpx.Client, flow: FakeFlow, state: str, tag: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    answer = Answer((sha(4), sha(5)), "skips") if state == "suspects" else None
    flow.end(id, BisectionState(state), answer)
    (case,) = parsed(http, id)
    assert [child.tag for child in case] == [tag]


def test_one_that_lives_is_a_skipped_test(http: httpx.Client, flow: FakeFlow) -> None:
    (case,) = parsed(http, flow.submit(SUBMISSION, TESTER).id)
    assert case[0].tag == "skipped" and case[0].attrib["message"].startswith("not over: ")


def test_json_is_the_report_with_all_probes(http: httpx.Client, found: str) -> None:
    document = json.loads(get(http, found, "json").content)
    assert document["first_bad"] == [sha(5)]
    assert len(document["probes"]) == 6 and document["overrides"][0]["sha"] == sha(2)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/markdown", "text/markdown"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/plain", "text/plain"),
        ("application/xml", "application/xml"),
        ("image/png, text/*;q=0.5", "text/markdown"),
        ("text/html;q=0, application/json;q=0.1", "application/json"),
    ],
)
def test_what_is_liked_best_is_sent(http: httpx.Client, flow: FakeFlow, accept: str | None, media_type: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    headers = {} if accept is None else {"accept": accept}
    answer = http.get(f"{PATH}/{id}/report", headers=headers)
    assert answer.headers["content-type"].partition(";")[0] == media_type
    assert answer.headers["vary"] == "Accept"


@pytest.mark.parametrize("accept", ["image/png", "text/html;q=x", ";;,q=1"])
def test_what_there_is_not_is_told_with_what_there_is(http: httpx.Client, flow: FakeFlow, accept: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    answer = http.get(f"{PATH}/{id}/report", headers={"accept": accept})
    assert (answer.status_code, answer.json()["field"]) == (406, "Accept")
    assert "text/markdown" in answer.json()["advice"]
    assert http.get(f"{PATH}/{id}/report", params={"format": "pdf"}).status_code == 422
    assert http.get(f"{PATH}/none/report").status_code == 404


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.text(st.characters(), min_size=1, max_size=60))
def test_any_subject_leaves_every_form_whole(http: httpx.Client, flow: FakeFlow, said: str) -> None:
    flow.reset()
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    flow.history[sha(5)] = replace(commit(5), subject=said, author=said)
    flow.find(id, 5)
    assert isinstance(flow.probes(id)[0], Probe) and flow.probes(id)[0].purpose is Purpose.BAD_END
    parsed(http, id)
    log = get(http, id, "log").text
    assert sum(not line.startswith("#") for line in re.split("[\r\n]", log) if line) == 3
    assert len([t for t in MARKDOWN.parse(get(http, id, "md").text) if t.type == "table_open"]) == 2
    get(http, id, "html")
