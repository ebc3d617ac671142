"""Webhooks over HTTP, by the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firstbad import Client, ProblemError
from service.web import create_app
from tests.fakes.flow import FakeFlow
from tests.fakes.server import serving


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving(create_app(FakeFlow())) as url, Client(url) as made:
        yield made


def test_a_webhook_is_made_looked_at_and_removed_and_its_secret_is_shown_once(client: Client) -> None:
    made = client.create_webhook("https://example.org/hook", ["bisection.found"], project="vllm")
    assert made.secret.startswith("whsec_") and made.created_by
    listed = client.webhooks()
    assert [(hook.id, hook.events, hook.project) for hook in listed.items] == [(made.id, ("bisection.found",), "vllm")]
    assert made.secret not in f"{listed} {client.webhook(made.id)} {client.test_webhook(made.id)}"
    assert client.remove_webhook(made.id).id == made.id
    with pytest.raises(ProblemError) as gone:
        client.webhook(made.id)
    assert gone.value.problem.status == 404


def test_what_is_wrong_with_a_webhook_is_named_by_its_field(client: Client) -> None:
    with pytest.raises(ProblemError) as wrong:
        client.create_webhook("https://example.org/", ["found"])
    assert (wrong.value.problem.status, wrong.value.problem.field) == (422, "events.0")
    with pytest.raises(ProblemError) as unfit:
        client.create_webhook("https://ann:geheim@example.org/")
    assert unfit.value.problem.field == "url" and "geheim" not in str(unfit.value.problem)
