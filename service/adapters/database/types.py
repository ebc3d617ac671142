"""How values of the domain lie in a column, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, get_origin

from pydantic import TypeAdapter
from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

#: Values of each kind that are remembered, those read last.
KEPT = 1024
#: Neither database holds these as text; a reason may quote a log, and a log may hold anything.
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC on both databases; SQLite keeps no zone, so it is taken off and put back. Naive values are refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be kept: {value!r}")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class PlainText(TypeDecorator[str]):
    """Text; NUL and lone surrogates become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _NOT_TEXT.sub("\ufffd", value)


class OneOf(TypeDecorator[Any]):
    """A member of a StrEnum, kept as its text. A text that is no member fails on reading."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else self.kind(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        return None if value is None else self.kind(value)


class Json(TypeDecorator[Any]):
    """A value of any type that pydantic knows, dataclasses and tuples of them included; None is NULL.

    Unlike JSONB, JSON keeps the order of keys and takes an escaped NUL. Rows are read far more often than written: of
    a kind that cannot be changed the same text gives the same value, which is made once.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__(none_as_null=True)
        self.kind = kind
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
        read = self._adapter.validate_json
        self._read = read if get_origin(kind) is dict else lru_cache(maxsize=KEPT)(read)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        # In Python's mode: the JSON mode would turn NaN into null without a word.
        return None if value is None else self._adapter.dump_python(value, warnings="error")

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """`value`: text where the engine leaves JSON as it is (`create_engine`)."""
        if value is None:
            return None
        return self._read(value) if isinstance(value, str) else self._adapter.validate_python(value)


def to_json(value: Any) -> str:
    """Compact; a lone surrogate becomes U+FFFD. Errors: ValueError for NaN and infinities, which are no JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=datetime.isoformat)
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
