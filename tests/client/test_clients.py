"""What one client does the other does too: the same calls, read in the same way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

import firstbad
from firstbad import AsyncClient, Client
from service.domain.bisection import Probe
from service.domain.evidence import Verdict
from tests.api.requests import SUBMISSION
from tests.callers import TESTER
from tests.fakes.flow import FakeFlow, sha

Asked = Callable[[str], Any]
REQUEST = {"repo": "https://git.example.org/x.git", "good": "v1", "bad": "main", "project": "source", "script": "make"}


def public(kind: type) -> dict[str, Any]:
    return {name: found for name, found in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_both_have_the_same_methods_with_the_same_signatures() -> None:
    sync, asynchronous = public(Client), public(AsyncClient)
    assert set(sync) == set(asynchronous)
    for name in vars(Client):
        if not name.startswith("_"):
            assert inspect.signature(sync[name]) == inspect.signature(asynchronous[name]), name
            assert list(inspect.signature(sync[name]).parameters)[0] == "self", name


def test_what_the_package_names_is_there() -> None:
    for name in firstbad.__all__:
        assert getattr(firstbad, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        firstbad.nonsense  # noqa: B018


def awaited(url: str, ask: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        async with AsyncClient(url) as client:
            return await ask(client)

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("bisection", ("{id}",)),
        ("bisections", ((), 10)),
        ("probes", ("{id}",)),
        ("builds", ("{id}",)),
        ("probe", ("{id}.1",)),
        ("events", ("{id}", 1)),
        ("nodes", ()),
        ("find", ("{short}",)),
        ("wait", ("{id}", 5.0)),
        ("parse", ("good: v1\nbad: v2\n",)),
    ],
)
def test_both_answer_alike(flow: FakeFlow, url: str, method: str, arguments: tuple[Any, ...]) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    given = [each.format(id=id, short=id[:4]) if isinstance(each, str) else each for each in arguments]
    with Client(url) as client:
        answer = getattr(client, method)(*given)
    assert awaited(url, lambda client: getattr(client, method)(*given)) == answer
    assert answer or method == "builds"


def test_both_begin_and_steer(flow: FakeFlow, url: str) -> None:
    with Client(url) as client:
        id = client.submit(REQUEST).id
        assert client.pause(id).paused_at is not None
    assert awaited(url, lambda client: client.resume(id)).paused_at is None
    assert awaited(url, lambda client: client.cancel(id)).state == "cancelled"


@pytest.fixture
def running(flow: FakeFlow) -> Probe:
    id = flow.submit(SUBMISSION, TESTER).id
    flow.look_up(id, 8)
    return flow.plan(id, 8)


def test_a_log_is_followed_by_a_task_too(flow: FakeFlow, url: str, running: Probe) -> None:
    pipe = flow.live.pipe("probe", running.id)

    async def follow() -> bytes:
        async with AsyncClient(url) as client, aclosing(client.log(running.id, follow=True)) as pieces:
            pipe.put(b"one\n")
            seen = await anext(pieces)
            flow.judge(running, Verdict.BAD, "it failed")
            return seen + b"".join([piece async for piece in pieces])

    assert asyncio.run(follow()) == b"one\n"


def test_changes_are_followed_to_the_end_by_a_task_too(flow: FakeFlow, url: str, running: Probe) -> None:
    async def follow() -> list[str]:
        states = []
        async with AsyncClient(url) as client:
            async for progress in client.changes(running.bisection_id, every_s=0.01):
                states.append(str(progress.report.state))
                if progress.report.live:
                    flow.find(running.bisection_id, 5)
        return states

    assert asyncio.run(follow())[-1] == "found"


def test_a_task_that_is_cancelled_leaves_no_connection(flow: FakeFlow, url: str, running: Probe) -> None:
    async def follow() -> None:
        async with AsyncClient(url) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    async for _ in client.log(running.id, follow=True):
                        pass

    asyncio.run(follow())


def test_the_answer_is_typed(flow: FakeFlow, url: str) -> None:
    id = flow.find(flow.submit(SUBMISSION, TESTER).id, 5).id
    with Client(url) as client:
        assert client.wait(id).first_bad == (sha(5),)
