"""Who asks, in tests."""

from __future__ import annotations

from service.domain.access import Caller, Scope


def caller(name: str, scope: Scope | None = Scope.ADMIN) -> Caller:
    return Caller(name, scope)


#: Who may do everything.
TESTER = caller("test")
