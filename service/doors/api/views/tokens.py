"""Tokens."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from service.domain.access import Scope
from service.doors.api.views.base import View


class TokenView(View):
    """`prefix`: how its text begins. `used_at`: within a minute, when it was last used."""

    id: str = Field(examples=["3f9a1c07"])
    name: str = Field(examples=["nightly"])
    prefix: str = Field(examples=["fb_3f9a1c07_Qm4x"])
    scope: Scope
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None


class NewTokenView(TokenView):
    """`token`: its text, which is shown this once."""

    token: str


class TokenList(View):
    items: tuple[TokenView, ...]
