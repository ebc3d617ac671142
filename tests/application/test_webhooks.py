"""Webhooks: what a receiver gets, when it is down, slow, broken, or leads elsewhere."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.adapters.addresses import Addresses
from service.adapters.webhook_sender import WebhookSender
from service.application.webhooks import GAPS_S, OFF_AFTER
from service.domain.errors import BadRequest, NotFound
from tests.application.conftest import World
from tests.reached import loopback


@dataclass
class Receiver:
    """`answers`: a status, or a place to be sent to, for each path; a path that is not there is slow."""

    url: str
    answers: dict[str, int | str]
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def types(self, path: str) -> list[str]:
        return [json.loads(body)["type"] for at, _, body in self.got if at == path]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.got.append((self.path, headers, self.rfile.read(int(headers["content-length"]))))
            answer = state.answers.get(self.path)
            if answer is None:
                state.over.wait(60)
            self.send_response(answer if isinstance(answer, int) else 307)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Receiver(f"http://127.0.0.1:{server.server_port}", {"/ok": 200})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    state.over.set()
    server.shutdown()
    server.server_close()


def telling(world: World, addresses: Addresses | None = None) -> World:
    sender = WebhookSender(addresses or loopback(proxies=dict), limit_s=1.0)
    return replace(world, flow=replace(world.flow, ports=replace(world.flow.ports, sender=sender)))


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As the Standard Webhooks specification tells a receiver to."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{expected}"


def test_a_receiver_gets_each_state_once_signed_and_without_secrets(world: World, receiver: Receiver) -> None:
    world = telling(world)
    hook = world.flow.create_webhook(f"{receiver.url}/ok", "ann")
    id = world.submit(env={"PASSWORD": "geheim"}, script="echo geheim").id
    world.flow.cancel(id, "ann")
    assert receiver.got == []
    assert world.flow.deliver_notices() == 2 and world.flow.deliver_notices() == 0
    assert receiver.types("/ok") == ["bisection.queued", "bisection.cancelled"]
    for _, headers, body in receiver.got:
        assert verified(hook.secret, headers, body) and not verified(hook.secret, headers, body + b" ")
        assert abs(int(headers["webhook-timestamp"]) - world.clock.now().timestamp()) < 5
        told: dict[str, Any] = json.loads(body)
        assert told["data"]["id"] == id and told["links"]["bisection"] == f"/api/v1/bisections/{id}"
        assert b"geheim" not in body and len(body) < 4000
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 2
    kept = world.flow.webhook(hook.id)
    assert kept.delivered_at is not None and kept.last_error == "" and kept.failing_since is None


def test_only_what_a_webhook_asks_for_is_told_to_it(world: World, receiver: Receiver) -> None:
    world = telling(world)
    receiver.answers |= {"/ended": 204, "/mine": 204, "/other": 204}
    world.flow.create_webhook(f"{receiver.url}/ended", "ann", ["bisection.cancelled"])
    world.flow.create_webhook(f"{receiver.url}/mine", "ann", submitter="bob")
    world.flow.create_webhook(f"{receiver.url}/other", "ann", project="another")
    for by in ("bob", "eve"):
        world.flow.cancel(world.submit(by).id, by)
    world.flow.deliver_notices()
    assert receiver.types("/ended") == ["bisection.cancelled"] * 2
    assert receiver.types("/mine") == ["bisection.queued", "bisection.cancelled"]
    assert receiver.types("/other") == []


def test_what_rolls_back_is_told_to_nobody(world: World, receiver: Receiver) -> None:
    world = telling(world)
    world.flow.create_webhook(f"{receiver.url}/ok", "ann")
    with pytest.raises(NotFound):
        world.flow.cancel("b0", "ann")
    assert world.flow.deliver_notices() == 0


@pytest.mark.parametrize("path", ["/broken", "/slow", "/elsewhere"])
def test_what_was_not_taken_comes_again_later_and_later_with_the_same_id(
    world: World, receiver: Receiver, path: str
) -> None:
    world = telling(world)
    receiver.answers |= {"/broken": 500, "/elsewhere": f"{receiver.url}/ok"}
    hook = world.flow.create_webhook(receiver.url + path, "ann", ["bisection.queued"])
    world.submit()
    assert world.flow.deliver_notices() == 1
    failed = world.flow.webhook(hook.id)
    said = {"/broken": "it answered 500", "/slow": "no answer within 1 s", "/elsewhere": "307, which is not followed"}
    assert said[path] in failed.last_error and failed.failing_since == failed.tried_at is not None
    world.clock.pass_(GAPS_S[0] - 1.0)
    assert world.flow.deliver_notices() == 0
    world.clock.pass_(1.0)
    assert world.flow.deliver_notices() == 1
    receiver.answers[path] = 200
    world.clock.pass_(GAPS_S[1])
    assert world.flow.deliver_notices() == 1
    assert receiver.types("/ok") == [] and len(receiver.got) == 3
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1
    assert len({body for _, _, body in receiver.got}) == 1
    assert world.flow.webhook(hook.id).failing_since is None


def test_a_delivery_is_given_up_after_its_last_try_and_a_webhook_that_fails_for_days_is_turned_off(
    world: World, receiver: Receiver
) -> None:
    world = telling(world)
    receiver.answers["/broken"] = 500
    hook = world.flow.create_webhook(f"{receiver.url}/broken", "ann", ["bisection.queued"])
    world.submit()
    for gap in (0, *GAPS_S):
        world.clock.pass_(gap)
        assert world.flow.deliver_notices() == 1
    world.clock.pass_(10 * GAPS_S[-1])
    assert world.flow.deliver_notices() == 0 and len(receiver.got) == 1 + len(GAPS_S)
    assert world.flow.webhook(hook.id).off == ""
    world.clock.pass_(OFF_AFTER.total_seconds())
    world.submit()
    world.flow.deliver_notices()
    assert world.flow.webhook(hook.id).off == "nothing could be delivered for 3 days; the last time: it answered 500"
    world.submit()
    assert world.flow.deliver_notices() == 0
    receiver.answers["/broken"] = 200
    world.flow.ping_webhook(hook.id)
    world.flow.deliver_notices()
    assert receiver.types("/broken")[-1] == "ping" and world.flow.webhook(hook.id).off == ""


def test_who_answers_that_it_is_gone_is_asked_no_more(world: World, receiver: Receiver) -> None:
    world = telling(world)
    receiver.answers["/gone"] = 410
    hook = world.flow.create_webhook(f"{receiver.url}/gone", "ann")
    world.submit()
    world.flow.deliver_notices()
    world.clock.pass_(timedelta(days=1).total_seconds())
    assert world.flow.deliver_notices() == 0
    assert "410" in world.flow.webhook(hook.id).off


def test_one_that_hangs_holds_up_no_other_and_its_rest_waits(world: World, receiver: Receiver) -> None:
    world = telling(world)
    world.flow.create_webhook(f"{receiver.url}/slow", "ann")
    world.flow.create_webhook(f"{receiver.url}/ok", "ann")
    for _ in range(3):
        world.submit()
    assert world.flow.deliver_notices() == 6
    assert receiver.types("/ok") == ["bisection.queued"] * 3 and len(receiver.types("/slow")) == 1


def test_one_that_was_removed_is_told_nothing_that_waits(world: World, receiver: Receiver) -> None:
    world = telling(world)
    hook = world.flow.create_webhook(f"{receiver.url}/ok", "ann")
    world.submit()
    world.flow.remove_webhook(hook.id)
    world.flow.deliver_notices()
    assert receiver.got == [] and world.flow.webhooks() == () and world.flow.deliver_notices() == 0
    with pytest.raises(NotFound):
        world.flow.ping_webhook(hook.id)


def test_no_webhook_reaches_what_the_operator_does_not_allow(world: World, receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    strict = telling(world, Addresses(resolve=lambda host, port: ("127.0.0.1",), proxies=dict))
    for host in ("127.0.0.1", "localhost", "169.254.169.254", "[::1]", "2130706433"):
        with pytest.raises(BadRequest, match="in no public network"):
            strict.flow.create_webhook(f"http://{host}:{port}/ok", "ann")
    hook = strict.flow.create_webhook(f"http://hooks.example.org:{port}/ok", "ann")
    strict.submit()
    strict.flow.deliver_notices()
    assert receiver.got == []
    assert "which is 127.0.0.1, is in no public network" in strict.flow.webhook(hook.id).last_error


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "https://", "//x", "https://ann:geheim@example.org/", "https://e.org/a b", "https://[/"],
)
def test_what_is_no_address_is_refused_and_not_shown(world: World, url: str) -> None:
    with pytest.raises(BadRequest) as caught:
        world.flow.create_webhook(url, "ann")
    assert caught.value.field == "url" and "geheim" not in f"{caught.value} {caught.value.value}"
    with pytest.raises(BadRequest, match="there is no event 'found'"):
        world.flow.create_webhook("https://example.org/", "ann", ["found"])
