"""What a run was asked for, and what it saw: plain data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.bisection import Purpose
from service.domain.evidence import Outcome, Verdict

#: Where a commit could not even be checked out, and where the script ran.
CHECKOUT, SCRIPT = "checkout", "script"


class Clean(StrEnum):
    """What is taken out of a work tree before the next commit."""

    KEEP = "keep"
    UNTRACKED = "untracked"
    IGNORED = "ignored"
    FRESH = "fresh"


@dataclass(frozen=True)
class Terms:
    """What the two sides are called. Looking for the fix, the older ones fail."""

    old: str = "good"
    new: str = "bad"

    @property
    def answer(self) -> str:
        return "first bad commit" if self.new == "bad" else "first fixed commit"


@dataclass(frozen=True)
class Container:
    image: str
    network: str = "none"


@dataclass(frozen=True)
class Asked:
    """All that an outcome may depend on; verdicts asked for in another way need no second run.

    `olds`: the ends that are older, merge bases included. `folder`: where the command begins, from the top of the
    checkout on. `laid`: the user's own files that lie over each commit, with the SHA-256 of what they hold.
    """

    repository: str
    olds: tuple[str, ...]
    new: str
    command: tuple[str, ...]
    first_parent: bool = False
    folder: str = ""
    laid: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    container: Container | None = None
    timeout_s: float | None = None
    clean: Clean = Clean.KEEP
    terms: Terms = field(default_factory=Terms)

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True)
class Rules:
    """How outcomes are judged. `skip_is`: what a commit that cannot be tested counts as. `same_failure`: a failure that
    is not the bad end's is no evidence."""

    same_failure: bool = False
    skip_is: Verdict = Verdict.SKIP
    timeout_is_bad: bool = False
    flaky: bool = False
    confidence: float = 0.95


@dataclass(frozen=True)
class Want:
    """A probe that is to be, or in flight."""

    sha: str
    purpose: Purpose


@dataclass(frozen=True)
class Seen:
    """A probe that is over. `log`: relative to the run's folder. `left`: processes that had to be killed after it."""

    number: int
    sha: str
    purpose: Purpose
    outcome: Outcome
    began_at: datetime
    seconds: float
    log: str = ""
    left: int = 0


@dataclass(frozen=True)
class Judged:
    """`verdict`: as the outcome tells it: a good one passed. `note`: what a reader should know beside the reason."""

    seen: Seen
    verdict: Verdict
    reason: str
    note: str = ""

    def counts_as(self, terms: Terms) -> Verdict:
        """As the search takes it: good is what the older ones are."""
        if terms.new == "bad" or self.verdict is Verdict.SKIP:
            return self.verdict
        return Verdict.BAD if self.verdict is Verdict.GOOD else Verdict.GOOD
