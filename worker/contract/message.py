"""What all messages are: frozen plain data, of one version.

`trace` of an order: the W3C traceparent of the span that sent it; empty where nobody traces.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

VERSION = 5


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
