"""Who signed in, and what that one may do."""

from __future__ import annotations

import pytest

from service.domain.access import Scope
from service.domain.sign_in import Grant, Person, granted, groups_of, read

GRANTS = read("Ann=admin, acme/*=read ,acme/GPU-team=operate")


def test_grants_are_read_without_regard_to_case_and_blanks() -> None:
    assert (
        Grant("ann", Scope.ADMIN),
        Grant("acme/*", Scope.READ),
        Grant("acme/gpu-team", Scope.OPERATE),
    ) == GRANTS
    assert groups_of(GRANTS) == ("acme/*", "acme/gpu-team")


@pytest.mark.parametrize(
    "written", ["ann", "=admin", "ann=root", "*=read", "acme/a/b=read", "ann admin=read", "-a=read"]
)
def test_a_grant_that_names_nobody_or_no_scope_is_refused_with_what_it_says(written: str) -> None:
    with pytest.raises(ValueError, match="names nobody|is no scope"):
        read(written)


def test_the_largest_scope_counts_and_a_stranger_has_none() -> None:
    assert granted(Person("ANN"), GRANTS) is Scope.ADMIN
    assert granted(Person("bob", frozenset({"acme/*", "acme/gpu-team"})), GRANTS) is Scope.OPERATE
    assert granted(Person("bob", frozenset({"acme/*"})), GRANTS) is Scope.READ
    assert granted(Person("bob"), GRANTS) is None
