"""Whose doing it is that an installation failed, told from what installers write."""

from __future__ import annotations

import pytest

from worker.observe.installs import cause_of

UNDATED = """
warning: `dep-2.0-py3-none-any.whl` is missing an upload date, but user provided: 2024-06-01T00:00:00Z
error: No solution found when resolving dependencies
  cause: Because there are no versions of dep and you require dep, so they are unsatisfiable.
"""
UNSOLVED = """
Using Python 3.11.7 environment at: env
error: No solution found when resolving dependencies
  cause: Because only dep==1.0 is available and you require dep>=2, so they are unsatisfiable.

hint: `dep` was filtered by `exclude-newer` to only include packages uploaded before 2024-06-01T00:00:00Z.
"""
OLD_UNSOLVED = """
  × No solution found when resolving dependencies:
  ╰─▶ Because the current Python version (3.11.7) does not satisfy Python>=3.99 and dep depends on Python>=3.99, we can
      conclude that all versions of dep cannot be used.
"""
NO_KEY = """
error: No solution found when resolving dependencies
  cause: Because dep was not found in the package registry and you require dep, so they are unsatisfiable.

hint: An index URL (http://index) could not be queried due to a lack of valid authentication credentials (401 None)
"""
DOWN = """
error: Request failed after 3 retries in 4.6s
  cause: Failed to fetch: http://index/simple/dep/
  cause: error sending request for url (http://index/simple/dep/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
OLD_DOWN = """
error: Failed to fetch: `http://index/simple/dep/`
  Caused by: Request failed after 3 retries
  Caused by: error sending request for url (http://index/simple/dep/)
  Caused by: client error (Connect)
  Caused by: dns error: failed to lookup address information: Name or service not known
"""
TLS = """
error: Failed to fetch: `https://index/simple/dep/`
  Caused by: client error (Connect)
  Caused by: invalid peer certificate: UnknownIssuer
"""
OVERLOADED = """
  × Failed to download `dep==1.0`
  ├─▶ Failed to fetch: `http://index/files/dep-1.0-py3-none-any.whl`
  ╰─▶ HTTP status server error (503 Service Unavailable) for url (http://index/files/dep-1.0-py3-none-any.whl)
"""
GONE = """
error: Failed to fetch: http://index/files/dep-2.0-py3-none-any.whl
  cause: HTTP status client error (404 Not Found) for url (http://index/files/dep-2.0-py3-none-any.whl)
"""
NOT_BUILT = """
error: Failed to build `dep==1.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

         [stderr]
         error: Failed to fetch: Connection refused
"""
PIP_DOWN = """
WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(': Failed to establish a new
ERROR: Could not find a version that satisfies the requirement dep (from versions: none)
ERROR: No matching distribution found for dep
"""
PIP_NONE = """
ERROR: Could not find a version that satisfies the requirement dep>=9 (from versions: 1.0, 2.0)
ERROR: No matching distribution found for dep>=9
"""
PIP_CONSTRAINTS = "ERROR: Invalid requirement: 'dep<<<2': Expected end (from line 1 of /firstbad/in/constraints.txt)"
CONSTRAINTS = """
error: Couldn't parse requirement in `/firstbad/in/constraints.txt` at position 0
  cause: no such comparison operator "<<<", must be one of ~= == != <= >= < > ===
"""
#: A package may be called after what can go wrong.
NAMED = """
error: No solution found when resolving dependencies
  cause: Because there is no version of async-timeout==9 and you require dns-error, they are unsatisfiable.
"""


@pytest.mark.parametrize("text", [UNSOLVED, OLD_UNSOLVED, GONE, NOT_BUILT, PIP_NONE, NAMED, ""])
def test_what_there_is_not_is_the_commits_own(text: str) -> None:
    assert cause_of(_lines(text)) is None


@pytest.mark.parametrize("text", [NO_KEY, DOWN, OLD_DOWN, TLS, OVERLOADED, PIP_DOWN])
def test_an_index_that_does_not_answer_is_not_the_commits_own(text: str) -> None:
    cause = cause_of(_lines(text))
    assert cause is not None and cause.kind == "registry"


def test_an_index_without_dates_is_told_apart_and_shown() -> None:
    cause = cause_of(_lines(UNDATED))
    assert cause is not None and cause.kind == "no-upload-dates" and "dep-2.0-py3-none-any.whl" in cause.said


@pytest.mark.parametrize("text", [CONSTRAINTS, PIP_CONSTRAINTS])
def test_constraints_that_cannot_be_read_are_told_apart_and_shown(text: str) -> None:
    cause = cause_of(_lines(text))
    assert cause is not None and cause.kind == "constraints" and "<<<" in cause.said


def _lines(text: str) -> list[bytes]:
    """As a log holds them."""
    return [b"2026-01-31T23:59:59.123Z " + line.encode() + b"\n" for line in text.splitlines()]
