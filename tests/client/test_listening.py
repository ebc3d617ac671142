"""Events as a service sends them: put together out of any pieces, and gone on with after a break."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing, closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbad import AsyncClient, Client, NoService, Retry
from firstbad.sse import Message, Reader
from service.web import create_app
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.client.scripted import Said, Script
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving

QUICK = Retry(times=2, first_s=0.001, most_s=0.01)


def event(id: int) -> bytes:
    told = {"id": id, "at": "2026-01-01T00:00:00Z", "kind": "state", "data": {"n": "é"}}
    return f"id: {id}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


def read(pieces: list[bytes]) -> list[Message]:
    reader = Reader()
    return [message for piece in pieces for message in reader.read(piece)]


LINES = st.sampled_from(
    [b"data: a", b"data:\xc3\xa9", b"data", b"id: 7", b"event: end", b": beat", b"retry: 2000", b""]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(
    st.lists(st.tuples(LINES, ENDS), max_size=12).map(lambda all: b"".join(line + end for line, end in all)), st.data()
)
def test_where_the_pieces_are_cut_changes_nothing(text: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    # What ends in a carriage return is told with what comes after it.
    assert read([*pieces, b"\n"])[: len(read([text]))] == read([text])
    assert read([*pieces, b"x\n"]) == read([text, b"x\n"])


@given(st.binary(max_size=200))
def test_nothing_that_arrives_breaks_it(text: bytes) -> None:
    read([text, b"\n\n"])


def test_fields_are_those_of_the_standard() -> None:
    text = b"\xef\xbb\xbf: hello\nretry: 2\nid: 3\nevent: end\ndata: a\ndata:b\n\ndata\n\nevent: none\n\ndata: c\n\n"
    assert read([text]) == [
        Message("3", "end", "a\nb"),
        Message("3", "message", ""),
        Message("3", "message", "c"),
    ]


def test_what_breaks_off_goes_on_where_it_was(script: Script) -> None:
    end = b'event: end\ndata: {"state": "found"}\n\n'
    script.answers = [
        Said(body=b"retry: 2000\n\n" + event(4) + event(5)[:20], cut=True),
        Said(body=b": waiting\n\n" + event(5)),
        Said(body=event(6) + end),
    ]
    with Client(script.url, retry=QUICK) as client:
        assert [each.id for each in client.listen("x", after=3)] == [4, 5, 6]
    assert [headers["last-event-id"] for _, _, headers in script.asked] == ["3", "4", "5"]
    assert {headers["accept"] for _, _, headers in script.asked} == {"text/event-stream"}


def test_a_service_that_keeps_breaking_off_is_given_up(script: Script) -> None:
    script.answers = [Said(body=b": hello\n", cut=True)] * 3
    with Client(script.url, retry=QUICK) as client, pytest.raises(NoService, match="broke"):
        list(client.listen("x"))
    assert len(script.asked) == 3


@pytest.fixture
def flow() -> FakeFlow:
    """Of its own: a service that tells what happens goes by the ids of events, which never begin anew."""
    return FakeFlow()


@pytest.fixture
def url(flow: FakeFlow) -> Iterator[str]:
    with serving(create_app(flow)) as url:
        yield url


def test_what_a_service_tells_is_heard_until_the_bisection_has_ended(flow: FakeFlow, url: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id
    with Client(url) as client, closing(client.listen(id)) as events:
        heard = [next(events)]
        flow.find(id, 5)
        heard += events
        assert [each.id for each in heard] == [each.id for each in flow.events(id)]
        assert heard[-1].data["state"] == "found"
        assert list(client.listen(id, after=heard[-2].id)) == heard[-1:]
        assert list(client.listen(id, after=heard[-1].id)) == []


def test_a_task_hears_it_too_and_waits_for_the_end(flow: FakeFlow, url: str) -> None:
    id = flow.submit(SUBMISSION, TESTER).id

    async def both() -> tuple[int, str]:
        async with AsyncClient(url) as client:
            waiting = asyncio.create_task(client.wait(id, 60.0))
            async with aclosing(client.listen(id)) as events:
                await anext(events)
                flow.find(id, 5)
                rest = [each async for each in events]
            return len(rest), str((await waiting).state)

    heard, state = asyncio.run(both())
    assert heard and state == "found"
