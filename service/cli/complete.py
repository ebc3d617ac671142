"""What a shell offers for what is half typed. Silent, and soon done, where no service answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from firstbad.errors import ClientError
from service.domain.errors import UserError
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState

if TYPE_CHECKING:
    from firstbad import Client

Offer = tuple[str, str]
#: Who types does not wait longer, and how many are offered.
WITHIN_S, MOST = 1.0, 50


def ids(ctx: typer.Context, incomplete: str) -> list[Offer]:
    return _asked(ctx, incomplete, lambda client: _bisections(client, ()))


def live_ids(ctx: typer.Context, incomplete: str) -> list[Offer]:
    return _asked(ctx, incomplete, lambda client: _bisections(client, LIVE_BISECTIONS))


def probe_ids(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Those of a bisection once its dot is typed; before that, bisections."""
    if "." not in incomplete:
        return [(f"{id}.", told) for id, told in ids(ctx, incomplete)]
    return _asked(ctx, incomplete, lambda client: _probes(client, incomplete.partition(".")[0]))


def nodes(ctx: typer.Context, incomplete: str) -> list[Offer]:
    return _asked(ctx, incomplete, lambda client: ((node.name, node.out) for node in client.nodes()))


def recipes(ctx: typer.Context, incomplete: str) -> list[Offer]:
    return _asked(ctx, incomplete, lambda client: ((recipe.name, "") for recipe in client.recipes()))


def states(incomplete: str) -> list[str]:
    """In one word each, as they may be written too."""
    words = (state.replace(" ", "-") for state in BisectionState)
    return [word for word in words if word.startswith(incomplete)]


def _bisections(client: Client, wanted: Iterable[BisectionState]) -> Iterator[Offer]:
    for each in client.bisections(tuple(wanted), MOST):
        yield each.id, f"{each.state}: {', '.join(each.good)}..{each.bad}"


def _probes(client: Client, bisection: str) -> Iterator[Offer]:
    for probe in client.probes(bisection):
        yield probe.id, str(probe.verdict or probe.state)


def _asked(ctx: typer.Context, incomplete: str, ask: Callable[[Client], Iterable[Offer]]) -> list[Offer]:
    from firstbad.retry import NEVER
    from service.cli.connect import connect
    from service.cli.screen import clean

    try:
        with connect(ctx.params.get("url") or "", timeout_s=WITHIN_S, retry=NEVER) as client:
            return [(name, clean(told)) for name, told in ask(client) if name.startswith(incomplete)]
    except (ClientError, UserError):
        return []
