"""What all messages are: frozen plain data, of one version."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

VERSION = 4


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
