"""What the application needs of the world, as protocols. The adapters implement them; the wiring hands them in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from service.application.aging import Aging
from service.application.hooks import Hooks, Sender, Unsent
from service.application.identity import Identity
from service.application.lists import Lists
from service.application.ordered import BuildOrder, ProbeOrder, SurveyOrder
from service.application.waiting import Waiting
from service.domain.bisection import (
    Bisection,
    Build,
    Commit,
    Event,
    Message,
    Node,
    Origin,
    Probe,
)
from service.domain.figures import Beat, Figures
from service.domain.lifecycle import BisectionState, BuildState, ProbeState
from service.domain.policy import CallerPolicy
from service.domain.readers import Reader
from service.domain.recipe import Recipe, SandboxKind
from service.domain.servers import Server

if TYPE_CHECKING:
    from service.search.graph import Range
    from service.search.priors import Change


@dataclass(frozen=True)
class Stock:
    """A wheel that is there, as far as planning needs to know. `seconds` that it took."""

    key: str
    native_key: str | None
    origin: Origin | None
    seconds: float | None


@dataclass(frozen=True)
class Kept:
    """A wheel in the store. `needed`: by a bisection that is not over."""

    key: str
    bytes: int
    used_at: datetime | None
    needed: bool


class Transaction(Aging, Hooks, Identity, Lists, Waiting, Protocol):
    """One database transaction: everything in it is kept, or nothing is. Rows come and go as frozen dataclasses."""

    def add_bisection(self, bisection: Bisection) -> None: ...
    def bisection(self, id: str, *, lock: bool = False) -> Bisection:
        """Errors: NotFound. With `lock` no other transaction may hold this bisection until this one ends."""

    def save_bisection(self, bisection: Bisection) -> None: ...
    def bisections(self, states: Collection[BisectionState] = (), *, limit: int = 100) -> tuple[Bisection, ...]:
        """Newest first; of every state when none is named."""

    def unchanged(self, states: Collection[BisectionState], *, limit: int) -> tuple[Bisection, ...]:
        """Those of these states that have not changed for longest, these first."""

    def add_probe(self, probe: Probe) -> None: ...
    def probe(self, id: str, *, lock: bool = False) -> Probe:
        """Errors: NotFound. Locks are taken in the order bisection, build, probe."""

    def save_probe(self, probe: Probe) -> None: ...
    def probes(self, bisection_id: str) -> tuple[Probe, ...]:
        """By number."""

    def probes_in(self, states: Collection[ProbeState]) -> tuple[Probe, ...]:
        """Of all bisections, oldest first."""

    def probes_of_build(self, key: str) -> tuple[Probe, ...]:
        """Those in state `building` that wait for this build."""

    def build(self, key: str, *, lock: bool = False) -> Build | None: ...
    def save_build(self, build: Build) -> None:
        """Adds it or replaces the row of the same key."""

    def builds_in(self, states: Collection[BuildState]) -> tuple[Build, ...]: ...
    def builds_of_native(self, native_key: str) -> tuple[Build, ...]:
        """Oldest first."""

    def builds_ahead(self, bisection_id: str) -> tuple[Build, ...]:
        """Live ones that were begun ahead for this bisection."""

    def builds_of(self, bisection_id: str) -> tuple[Build, ...]:
        """Those whose wheels its probes want or wanted, and those that were begun ahead for it; oldest first."""

    def lock_native(self, native_key: str) -> None:
        """No other transaction may hold this native key until this one ends. After the lock of a build."""

    def stock(self, repo: str) -> tuple[Stock, ...]:
        """The wheels of a repository that are there."""

    def kept(self) -> tuple[Kept, ...]:
        """All wheels in the store, those used longest ago first."""

    def add_event(self, bisection_id: str, at: datetime, kind: str, data: dict[str, object]) -> None: ...
    def events(self, bisection_id: str, *, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """By id, those with a greater id than `after`."""

    def post(self, message: Message, at: datetime) -> None:
        """Into the outbox, to be sent at that time or later. One whose key is there already is not posted again, until
        it is forgotten."""

    def undelivered(
        self, *, due: datetime | None = None, limit: int = 100, removals: bool = False
    ) -> tuple[Message, ...]:
        """Oldest first; with `due`, those whose time has come by then. `removals` from the store are apart from orders,
        which must not wait for a store that is away."""

    def delivered(self, key: str, at: datetime) -> None: ...
    def save_node(self, node: Node) -> None: ...
    def node(self, name: str, *, lock: bool = False) -> Node | None: ...
    def nodes(self) -> tuple[Node, ...]: ...
    def save_beat(self, beat: Beat) -> None: ...
    def remove_beat(self, name: str) -> None: ...
    def beats(self) -> tuple[Beat, ...]:
        """Newest first."""

    def settle(self, now: datetime) -> bool:
        """Counts some of what has ended once and for all. False: there is more."""

    def figures(self, now: datetime) -> Figures:
        """What is counted of the whole service; costs what was not settled yet, not what ever ended."""


class Bisections(Protocol):
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commits on leaving, rolls back on any exception. On SQLite it takes the write lock at once.

        Errors: StoreBusy.
        """

    def reading(self) -> AbstractContextManager[Transaction]:
        """For who writes nothing: it waits for no writer, and on SQLite keeps none waiting. Errors: StoreBusy."""

    def trouble(self) -> str | None:
        """Why the database cannot be used, None when it can."""


@dataclass(frozen=True)
class Asked:
    """When something was asked for, and the time now, by one clock."""

    at: datetime
    now: datetime


@dataclass(frozen=True)
class Resolved(Commit):
    """`how`: what a ref was taken for, where it is not the commit's own name: a tag, a day, a pull request."""

    how: str = ""


class History(Protocol):
    """Repositories as local mirrors. Every SHA that comes out is full."""

    def __hash__(self) -> int:
        """What it says of commits never changes, so that it may be remembered by whose answer it is."""

    def check(self, repo: str) -> None:
        """Whether such a repository may be read at all, without reading it. Errors: RepositoryUnavailable."""

    def refresh(self, repo: str, *, have: Collection[str] = (), asked: Asked | None = None) -> None:
        """Clones the mirror, or fetches into it, unless `have` names only full SHAs and the mirror holds them all, or
        it was brought up to date since this was `asked` for.

        Errors: RepositoryUnavailable (refused transport, does not exist, needs a password), and then no mirror is left.
        """

    def resolve(self, repo: str, ref: str, *, field: str, at: datetime | None = None) -> Resolved:
        """Any form that domain/refs.py reads, but a pair. `at`: what times are counted from, and nothing after it is
        taken for a day's; without it, what needs it is refused.

        Errors: UnknownRef, AmbiguousRef (lists the candidates), BadRequest for what is no ref at all."""

    def merge_base(self, repo: str, a: str, b: str) -> str | None: ...
    def range(self, repo: str, good: tuple[str, ...], bad: str, *, first_parent: bool = False) -> Range:
        """`bad` and its ancestors that are no ancestors of any `good`. Kept in memory for the next call."""

    def commits(self, repo: str, shas: Collection[str]) -> dict[str, Commit]: ...
    def mirror(self, repo: str) -> str:
        """Path of the bare mirror."""

    def trees(self, repo: str, shas: Collection[str], patterns: tuple[str, ...] = ()) -> dict[str, str]:
        """For each commit, an id of the files that the patterns (as in .gitignore) match: of their paths, modes and
        contents, equal where all of these are. Without patterns, of the whole tree."""

    def files(self, repo: str, shas: Collection[str], path: str) -> dict[str, bytes | None]:
        """The contents of one file at each commit; None where it is not there."""

    def changes(self, repo: str, shas: Collection[str], words: Collection[str]) -> dict[str, Change]:
        """What each commit changed against its first parent: paths, and how often the words asked for occur in what
        changed. Of thousands of commits the paths alone. Kept in memory for the next call."""


class HistoryFailed(RuntimeError):
    """A mirror cannot be read now for a reason of ours: disk full, git missing or killed, a broken mirror."""


class StoreBusy(Exception):
    """The database or the artifact store cannot do it now: locked, full, away, or it broke a deadlock.

    Nothing was kept; try again.
    """


class QueueUnavailable(Exception):
    """The broker cannot be reached now; what was to be sent stays in the outbox."""


#: Kind, id and number.
Attempt = tuple[str, str, int]


class ProbeQueue(Protocol):
    """The way to the workers. Sending may raise QueueUnavailable and may be repeated without harm."""

    def send_prepare(self, bisection_id: str) -> None: ...
    def send_survey(self, order: SurveyOrder) -> None: ...
    def send_build(self, order: BuildOrder) -> None: ...
    def send_probe(self, order: ProbeOrder) -> None: ...
    def cancel(self, kind: str, id: str, attempt: int) -> None: ...
    def take_out(self, node: str, *, out: bool) -> None:
        """Has a node take no probes, or take them again. Told anew now and then, as the broker may forget."""

    def under_way(self, attempts: Collection[Attempt]) -> frozenset[Attempt]:
        """Those whose order lies in the queue, or whose lease a worker holds. Errors: QueueUnavailable."""

    def trouble(self) -> str | None:
        """Why the broker cannot be reached, None when it can."""


class LiveLogs(Protocol):
    def follow(self, kind: str, id: str, attempt: int) -> Iterator[bytes]:
        """What a run writes, from a little before now on, as it comes; b"" now and then when nothing does. Ends when
        the run does, and when the iterator is closed. Errors: QueueUnavailable."""


@dataclass(frozen=True)
class Stored:
    """A file in the store, as long as it is there. `at`: when it was written."""

    path: str
    bytes: int
    at: datetime


class ArtifactStore(Protocol):
    def read(self, path: str) -> Iterator[bytes]:
        """In pieces. Errors: NotFound, StoreBusy."""

    def remove(self, path: str) -> None:
        """Does nothing when it is not there. Errors: StoreBusy."""

    def stored(self, folder: str) -> Iterator[Stored]:
        """All files below it, in no order. Errors: StoreBusy."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, UTC."""


class Ids(Protocol):
    def new(self) -> str:
        """A fresh id for a bisection, short enough to type."""


class Watch(Protocol):
    """Who looks on while things are done: log lines, measures and traces. Never an error."""

    def doing(self, what: str, **about: str) -> AbstractContextManager[None]:
        """Around a step, and all that is done and logged within is about the same. `what`: one of a few words.
        `about`: ids by "bisection", "probe", "build", "attempt"; "topic" of a message."""


class FailureReader(Protocol):
    def __call__(self, log: str, project: tuple[str, ...]) -> str | None:
        """What a log says that failed first, in its own words. `project`: names of the packages that it is about."""


class Unwatched:
    def doing(self, what: str, **about: str) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class Policy:
    """What this service allows: set by its operator."""

    sandboxes: frozenset[SandboxKind]
    default_sandbox: SandboxKind
    script_bytes: int = 256 * 1024
    width: int = 64
    #: Builds made ahead of the probes that may need them, for each bisection; 0 is none.
    ahead: int = 4
    #: Bytes of wheels that are kept; None is all.
    store_bytes: int | None = None
    #: Seconds since somebody last asked for a wheel, and since a run ended, that wheels and logs are kept.
    keep_wheels_s: float | None = None
    keep_logs_s: float | None = None
    #: Bytes of logs that are kept.
    log_bytes: int | None = None
    #: What callers may ask for; the first that is for one counts.
    callers: tuple[CallerPolicy, ...] = ()


def unread(log: str, project: tuple[str, ...]) -> str | None:
    """A reader of failures that finds none."""
    return None


@dataclass(frozen=True)
class Ports:
    bisections: Bisections
    history: History
    queue: ProbeQueue
    artifacts: ArtifactStore
    live: LiveLogs
    clock: Clock
    ids: Ids
    recipes: dict[str, Recipe]
    servers: tuple[Server, ...] = ()
    readers: tuple[Reader, ...] = ()
    policy: Policy = field(default_factory=lambda: Policy(frozenset(SandboxKind), SandboxKind.PROCESS))
    watch: Watch = field(default_factory=Unwatched)
    sender: Sender = field(default_factory=Unsent)
    failures: FailureReader = unread
