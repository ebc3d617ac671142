"""The time and fresh ids of the real world."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    """'b' and 10 hexadecimal digits: 40 random bits, so two alike are expected after about a million bisections."""

    def new(self) -> str:
        return "b" + secrets.token_hex(5)
