"""What is read of a report that cannot be read: who sent it and what it is about, and nothing else.

What another version of the contract means by a field that both have cannot be known, so none of its facts is taken for
one; nor is what stands beside something that cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.application.nodes import OTHER_VERSION, STRANGE
from service.domain.evidence import Fault

UNREADABLE = "report"
#: Longer ones name nothing that this service has sent.
LONGEST = 200
LONGEST_WRONG = 500


@dataclass(frozen=True)
class Sender:
    """`node`: empty where it does not say."""

    payload: Mapping[str, Any]

    @property
    def node(self) -> str:
        return _text(self.payload.get("node")) or ""

    @property
    def where(self) -> str:
        return f"the worker on {self.node}" if self.node else "a worker that does not say where it is"

    def about(self, name: str) -> tuple[str, int] | None:
        """The id and the attempt, as `about_what` finds them."""
        return about_what(self.payload, name)

    def fault(self) -> Fault:
        raise NotImplementedError


@dataclass(frozen=True)
class Unreadable(Sender):
    """Of our version, with something in it that no worker sends. `wrong`: what that is."""

    wrong: str

    def fault(self) -> Fault:
        message = f"{self.where} sent what cannot be read: {printable(self.wrong)[:LONGEST_WRONG]}"
        return Fault(UNREADABLE, message, "see the worker's log, and whether it is firstbad that runs there", self.node)


@dataclass(frozen=True)
class Stranger(Sender):
    """`version`: as it says, of our `ours`."""

    version: object
    ours: int

    @property
    def left(self) -> bool:
        return self.payload.get("event") == "left"

    @property
    def why(self) -> str:
        """Why the node gets no probes."""
        return f"{STRANGE}{_shown(self.version)}, this service {self.ours}: {self._advice('it')}"

    def fault(self) -> Fault:
        message = f"{self.where} {STRANGE}{_shown(self.version)}, this service {self.ours}"
        return Fault(OTHER_VERSION, message, self._advice(f"firstbad on {self.node or 'its node'}"), self.node)

    def _advice(self, worker: str) -> str:
        if not _is_number(self.version):
            return f"install the same version for this service and {worker}"
        return f"upgrade {worker if int(str(self.version)) < self.ours else 'this service'}"


def about_what(payload: object, name: str) -> tuple[str, int] | None:
    """What a report of any version is about, by the name that the id has; None where that is missing or odd."""
    if not isinstance(payload, Mapping):
        return None
    id, attempt = _text(payload.get(name)), _number(payload.get("attempt"))
    return (id, attempt) if id is not None and attempt is not None else None


def stranger(payload: object, ours: int) -> Stranger | None:
    """None for a report of our version. Whatever is none at all is a stranger that says nothing."""
    if not isinstance(payload, Mapping):
        return Stranger({}, None, ours)
    version = payload.get("version")
    return None if _is_number(version) and version == ours else Stranger(payload, version, ours)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        return int(value)
    return int(str(value)) if _is_number(value) else None


def _text(value: object) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable()
    return str(value) if fits else None


def printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _shown(version: object) -> str:
    return str(version) if _is_number(version) else "(none)" if version is None else repr(version)[:40]
