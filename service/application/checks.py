"""Values as users write them, each checked for what is true of every one of its kind. Errors name the field."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from service.application.ports import Policy
from service.domain.duration import seconds
from service.domain.errors import BadRequest, TooLarge

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def text(written: str, name: str) -> str:
    if not written.strip():
        raise BadRequest(f"{name} is empty", field=name, advice=f"say what {name} is, or leave the key out")
    if "\0" in written:
        raise BadRequest(f"{name} holds a NUL byte", field=name, advice="NUL bytes cannot be in a script or a name")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in written):
        raise BadRequest(f"{name} is no valid Unicode", field=name, advice="it holds half of a surrogate pair")
    return written


def given(written: str | None, otherwise: T, name: str) -> str | T:
    return text(written, name) if written is not None else otherwise


def line(written: str, name: str) -> str:
    if "\n" in written.strip():
        raise BadRequest(f"{name} has several lines", field=name, advice="name one line that only this failure prints")
    return text(written, name).strip()


def script(written: str | None, name: str, policy: Policy) -> str | None:
    """Errors: TooLarge, too."""
    if written is None:
        return None
    size = len(written.encode("utf-8", "surrogatepass"))
    if size > policy.script_bytes:
        raise TooLarge(
            f"{name} has {size} bytes, more than {policy.script_bytes}",
            value=str(size),
            field=name,
            advice="keep data out of it: let it fetch what it needs",
        )
    return text(written, name)


def enum(kind: type[E], written: str | None, name: str) -> E | None:
    chosen = choice(written, tuple(str(member) for member in kind), name)
    return kind(chosen) if chosen is not None else None


def choice(written: str | None, known: tuple[str, ...], name: str) -> str | None:
    if written is not None and written not in known:
        raise BadRequest(
            f"{name}: {written!r} is unknown", value=written, field=name, advice=f"one of {', '.join(known)}"
        )
    return written


def duration(written: str | float, name: str) -> float:
    return seconds(written, field=name)
