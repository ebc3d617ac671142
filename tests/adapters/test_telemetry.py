"""Log lines, and traces as a collector gets them."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service import inbox, wiring
from service.adapters.database import migrate
from service.adapters.telemetry.lines import hiding
from service.application.submission import Submission
from service.domain.errors import NotFound
from service.domain.evidence import Outcome
from service.domain.results import ProbeReport
from tests.callers import caller
from tests.redis_server import Broker
from tests.repositories import NewCommit, build_repository
from tests.waiting import eventually
from tests.worker.otlp import Receiver, Span
from worker import contract

URL = "postgresql://ada:pass%20word-1@db.example/firstbad"


def run(program: str) -> list[str]:
    """The lines that it writes to its standard error."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == ""
    return done.stderr.splitlines()


LOGGING = f"""
import logging, sys, warnings
from service import wiring
wiring.log_to_stderr("INFO", sys.argv[1] if len(sys.argv) > 1 else HOW, [{URL!r}, "redis://:redis-secret@h/0"])
from structlog.contextvars import bound_contextvars
with bound_contextvars(bisection="b1", probe="b1.2", attempt="3"):
    logging.getLogger("service.inbox").warning("lost the connection to %s", {URL!r})
logging.getLogger("celery.worker").info("Connected to redis://:redis-secret@h/0")
logging.getLogger("uvicorn.error").info("pass word-1 and pass%20word-1 and redis-secret")
logging.getLogger("uvicorn.error").debug("too quiet")
warnings.warn("odd")
try:
    raise RuntimeError("host=h password='quoted one' user=x password=plain")
except RuntimeError:
    logging.getLogger("service").exception("it broke")
"""


def test_every_line_is_json_with_the_ids_of_what_it_is_about_and_without_passwords() -> None:
    lines = [json.loads(line) for line in run(LOGGING.replace("HOW", "'json'"))]
    assert lines[0]["event"] == "lost the connection to postgresql://***@db.example/firstbad"
    first = {name: lines[0][name] for name in ("bisection", "probe", "attempt", "level", "logger")}
    assert first == {"bisection": "b1", "probe": "b1.2", "attempt": "3", "level": "warning", "logger": "service.inbox"}
    assert lines[0]["timestamp"].endswith("Z")
    assert "bisection" not in lines[1] and lines[1]["event"] == "Connected to redis://***@h/0"
    assert lines[2]["event"] == "*** and *** and ***"
    assert lines[3]["logger"] == "py.warnings" and "odd" in lines[3]["event"]
    assert "RuntimeError: host=h password=*** user=x password=***" in lines[4]["exception"]
    assert len(lines) == 5


def test_as_text_they_say_the_same() -> None:
    lines = run(LOGGING.replace("HOW", "'text'"))
    assert "lost the connection to postgresql://***@db.example/firstbad" in lines[0]
    assert all(told in lines[0] for told in ("warning", "bisection=b1", "probe=b1.2", "attempt=3", "service.inbox"))
    assert lines[-1] == "RuntimeError: host=h password=*** user=x password=***"
    assert not any(secret in line for line in lines for secret in ("word-1", "redis-secret", "quoted", "plain"))


def test_a_password_that_is_the_name_of_something_else_does_not_take_that_name_out_of_every_line() -> None:
    hide = hiding(["postgresql://firstbad:firstbad@db/firstbad"])
    assert hide(None, "", "firstbad.sweep of firstbad://x:firstbad@y") == "firstbad.sweep of firstbad://***@y"


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("postgresql://u:long/password@h/db", "long/password"),
        ("postgresql+psycopg://u:pass#word@h/db", "pass#word"),
        ("redis://:pa[ssw0rd@h/0", "pa[ssw0rd"),
        ("postgresql://u:pa%22ss%5Cwo%0Ard@h/db", 'pa"ss\\wo\nrd'),
    ],
)
def test_no_line_shows_a_password_however_it_is_written_there(address: str, password: str) -> None:
    hide = hiding([address])
    for line in (
        address,
        f"no {password}",
        json.dumps({"event": f"no {password}"}),
        f"no {password!r}",
        json.dumps({"event": f"no {password!r}"}, ensure_ascii=False),
    ):
        shown = hide(None, "", line)
        assert "***" in shown
        assert not any(part in shown for part in ("long", "word", "w0rd", "ss\\"))


def test_ids_of_reports_are_those_of_what_they_are_about() -> None:
    started = contract.Started(kind="probe", id="b1.2", attempt=3, node="n").model_dump()
    assert inbox.about(started) == {"bisection": "b1", "probe": "b1.2", "attempt": "3", "node": "n"}
    built = contract.BuildResult(key="k", attempt=1, node="n", seconds=1.0).model_dump()
    assert inbox.about(built) == {"build": "k", "attempt": "1", "node": "n"}
    surveyed = contract.SurveyResult(bisection="b1", attempt=1, node="n").model_dump()
    assert inbox.about(surveyed) == {"bisection": "b1", "attempt": "1", "node": "n"}


OPTIONAL = """
import sys
sys.modules["opentelemetry"] = None
from service import wiring
home = sys.argv[1]
wiring.check(wiring.settings(home=home))
wiring.wire(wiring.settings(home=home, redis_url="redis://127.0.0.1:1/0"))
for use in (wiring.check, wiring.wire):
    try:
        use(wiring.settings(home=home, redis_url="redis://127.0.0.1:1/0", otlp_endpoint="http://127.0.0.1:1"))
    except ValueError as error:
        print(error)
"""


def test_opentelemetry_is_needed_only_where_an_endpoint_is_set(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPTIONAL, str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("FIRSTBAD_OTLP_ENDPOINT is set, but OpenTelemetry is not installed") for line in lines)
    assert all("install firstbad[otel]" in line for line in lines)


def test_the_command_line_waits_for_none_of_it() -> None:
    slow = ("structlog", "prometheus_client", "opentelemetry", "alembic")
    program = f"import sys, service.cli, service.cli.commands; assert not {slow!r} & sys.modules.keys()"
    run(program.replace(repr(slow), repr(set(slow))))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


class Traced:
    """A service that traces, on a real database and a real broker, without its processes."""

    def __init__(self, folder: Path, broker: Broker, endpoint: str) -> None:
        migrate.upgrade(f"sqlite:///{folder}/firstbad.sqlite")
        self.shas = build_repository(folder / "repository", [NewCommit(files={"n": str(n)}) for n in range(9)])
        given = wiring.settings(home=folder, redis_url=broker.url, otlp_endpoint=endpoint)
        self.wired, self.broker = wiring.wire(given, "firstbad-test"), broker
        self.repository = str(folder / "repository")

    def submit(self) -> str:
        asked = Submission(good=self.shas[:1], bad=self.shas[-1], repo=self.repository, project="source", script="true")
        return self.wired.flow.submit(asked, caller("ada")).id

    def begin(self) -> str:
        id = self.submit()
        self.wired.flow.prepare(id)
        return id

    def orders(self) -> dict[str, dict[str, Any]]:
        """What lies in the broker for workers, by probe."""
        client = self.broker.client()
        found = [json.loads(text) for key in client.keys("probe.*") for text in client.lrange(key, 0, -1)]
        bodies = [json.loads(base64.b64decode(message["body"]))[0][0] for message in found]
        return {body["probe"]: body for body in bodies}


def test_all_that_is_done_for_a_bisection_is_one_trace_whose_id_follows_from_its_own(
    tmp_path: Path, broker: Broker, receiver: Receiver
) -> None:
    service = Traced(tmp_path, broker, receiver.endpoint)
    id, other = service.begin(), service.begin()
    orders = {probe: order for probe, order in service.orders().items() if order["bisection"] == id}
    assert len(orders) == 1
    outcome = Outcome("script", exit_status=1)
    for probe, order in orders.items():
        service.wired.flow.probed(ProbeReport(probe, order["attempt"], "n1", outcome))
    with pytest.raises(NotFound):
        service.wired.flow.probed(ProbeReport("b-unknown.1", 1, "n1", outcome))
    service.wired.flow.sweep()
    service.wired.telemetry.tracing.close()
    eventually(lambda: len(receiver.named("record")) == 2)
    assert receiver.services == {"firstbad-test"}

    digits = hashlib.sha256(id.encode()).hexdigest()
    mine = [span for span in receiver.spans if span.trace == digits[:32]]
    by_id = {span.id: span for span in mine}
    (root,) = (span for span in mine if not span.parent)
    assert (root.name, root.id) == ("submit", digits[32:48])
    assert {span.attributes["firstbad.bisection"] for span in mine if span.name != "release"} == {id}
    assert {span.name for span in receiver.below(root)} >= {"prepare", "record", "send"}
    assert all(_below_root(span, by_id, root) for span in mine)

    sends = {span.attributes.get("firstbad.probe"): span for span in mine if span.name == "send"}
    for probe, order in orders.items():
        assert order["trace"] == f"00-{digits[:32]}-{sends[probe].id}-01"
    prepare = next(span for span in mine if span.name == "prepare")
    assert {"advance", "release"} <= {span.name for span in receiver.below(prepare)}
    assert hashlib.sha256(other.encode()).hexdigest()[:32] in {span.trace for span in receiver.spans}
    unknown = hashlib.sha256(b"b-unknown").hexdigest()[:32]
    # That a report is about nothing is not our failure.
    assert [span.failed for span in receiver.spans if span.trace == unknown] == [False]


def _below_root(span: Span, by_id: dict[str, Span], root: Span) -> bool:
    while span.parent:
        span = by_id[span.parent]
    return span == root


def test_what_cannot_be_sent_is_a_failed_span_and_a_failed_send(
    tmp_path: Path, broker: Broker, receiver: Receiver
) -> None:
    service = Traced(tmp_path, broker, receiver.endpoint)
    broker.stop()
    service.submit()
    service.wired.telemetry.tracing.close()
    eventually(lambda: receiver.named("submit"))
    assert [span.failed for span in receiver.named("send")] == [True]
    assert [span.failed for span in receiver.named("submit")] == [False]
    counted = service.wired.telemetry.meters.registry
    assert counted.get_sample_value("firstbad_sends_total", {"topic": "prepare", "result": "failed"}) == 1


def test_a_collector_that_is_away_keeps_nobody_waiting(tmp_path: Path, broker: Broker, receiver: Receiver) -> None:
    receiver.close()
    service = Traced(tmp_path, broker, receiver.endpoint)
    assert service.begin()
    service.wired.telemetry.tracing.close()
    assert service.orders()


def test_without_an_endpoint_orders_carry_no_trace(tmp_path: Path, broker: Broker) -> None:
    service = Traced(tmp_path, broker, "")
    service.begin()
    assert {order["trace"] for order in service.orders().values()} == {""}
