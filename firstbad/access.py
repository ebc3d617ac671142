"""The calls by which an admin makes tokens and takes them back: docs/access.md."""

from __future__ import annotations

from firstbad.call import Call, part, posted
from service.domain.access import Scope
from service.doors.api.views import NewTokenView, TokenList, TokenView


def create_token(name: str, scope: Scope | str, days: float | None = None) -> Call[NewTokenView]:
    """`days`: until it expires; None is never. The answer's `token` is shown this once."""
    # The text of one whose answer was lost is lost, too.
    return posted("/tokens", NewTokenView, {"name": name, "scope": str(scope), "days": days}, again=False)


def tokens() -> Call[TokenList]:
    """Newest first."""
    return Call("GET", "/tokens", TokenList.model_validate_json, again=True)


def revoke_token(id: str) -> Call[TokenView]:
    return Call("DELETE", f"/tokens/{part(id)}", TokenView.model_validate_json, again=True)
