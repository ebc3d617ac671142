"""A flow in memory, for the doors: submissions are completed by the real rules, and a test says what happens next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from service.adapters import failures, readers, servers
from service.application import allowed, commits, health, queries, reopen
from service.application import follow as following
from service.application import report as reports
from service.application.adjust import Change
from service.application.begun import begun
from service.application.clone import as_cloned
from service.application.curve import Curve
from service.application.dry_run import Preview, serving
from service.application.expected import locked
from service.application.lists import Order, Page, Place, Sought
from service.application.parse import Draft, Known, parse
from service.application.ports import Policy, Transaction
from service.application.queries import LogStream, known_build, log_of, log_of_build, metric_of
from service.application.report import Report
from service.application.reports.findings import Findings
from service.application.reports.git_log import git_log
from service.application.submission import Submission
from service.application.submit import complete
from service.domain.access import Caller
from service.domain.bisection import Answer, Bisection, Build, Commit, Event, Node, Probe, Problem, Purpose, Request
from service.domain.budget import Budget, Priority
from service.domain.errors import NotFound, NotNow
from service.domain.evidence import Fault, Log, Outcome, Override, Phase, Verdict
from service.domain.figures import Figures
from service.domain.lifecycle import LIVE_BISECTIONS, LIVE_PROBES, BisectionState, BuildState, ProbeState
from service.domain.policy import CallerPolicy
from service.domain.recipe import Recipe, SandboxKind
from service.domain.spending import spent
from service.search.graph import Range
from tests.fakes.hooks import FakeWebhooks
from tests.fakes.live import LiveWorkers
from tests.fakes.tokens import FakeTokens

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def sha(index: int) -> str:
    return hashlib.sha1(f"commit {index}".encode()).hexdigest()


def commit(index: int, subject: str | None = None) -> Commit:
    """Of a history in one line, oldest first; 0 is the good end."""
    at = START - timedelta(days=100) + timedelta(hours=index)
    parents = (sha(index - 1),) if index else ()
    return Commit(sha(index), subject or f"Change number {index}", "Ann Example", at, parents)


@dataclass(frozen=True)
class _Row:
    """What is asked of a transaction for the version of a bisection."""

    found: Bisection
    told: Sequence[Event]

    def bisection(self, id: str, *, lock: bool = False) -> Bisection:
        return self.found

    def last_event(self, id: str) -> int:
        return self.told[-1].id if self.told else 0


class FakeFlow(FakeTokens, FakeWebhooks):
    """Has the methods of `Flow`; those below "What a test lets happen" are its own."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.kept_tokens = ()
        self.kept_webhooks = ()
        self.kept: dict[str, Bisection] = {}
        self.keys: list[str | None] = []
        self.tried: dict[str, Probe] = {}
        self.made: dict[str, Build] = {}
        self.told: list[Event] = []
        self.asked_what_happened = 0
        self.known_recipes = {name: Recipe(name) for name in ("python", "source")}
        self.history: dict[str, Commit] = {}
        self.logs: dict[str, bytes] = {}
        self.curves: dict[str, Curve] = {}
        self.live = LiveWorkers()
        self.machines: tuple[Node, ...] = (Node("node-1", 2, START, "alive", facts={"gpu": "none"}),)
        self.parts = {"database": "ok", "queue": "ok", "control": "ok", "workers": "ok"}
        self.counted = Figures(START)
        self.policies: tuple[CallerPolicy, ...] = ()
        self.broken: Exception | None = None
        self.judged_again: tuple[Probe, ...] = ()
        self.then: Callable[[str], object] = lambda id: None

    def draft(self, submission: Submission, caller: Caller) -> Request:
        policy = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)
        request = complete(submission, self.known_recipes, policy, servers.load(), readers.load())
        return allowed.allowed(request, caller, self.policies)

    def dry_run(self, submission: Submission, caller: Caller) -> Preview:
        request = self.draft(submission, caller)
        nodes = serving(self.machines, request.recipe.resources, datetime.now(UTC))
        return Preview(request, unread="There is no repository in memory.", nodes=nodes, notes=request.notes)

    def parse(self, text: str, project: str | None = None) -> Draft:
        if project is not None and project not in self.known_recipes:
            raise NotFound(f"there is no recipe {project!r}", value=project, field="project", advice="known: python")
        return parse(text, Known({}, project), servers.load(), failures.said)

    def submit(self, submission: Submission, caller: Caller, key: str | None = None) -> Bisection:
        request = self.draft(submission, caller)
        self.keys.append(key)
        id = f"{len(self.kept):02d}" + hashlib.sha1(str(len(self.kept)).encode()).hexdigest()[:8]
        now = datetime.now(UTC)
        self.kept[id] = begun(id, request, caller.name, now)
        made = self._note(id, "state", state="queued")
        self.then(id)
        return made

    def cancel(self, id: str, by: str, expected: str | None = None) -> Bisection:
        found = self._expected(id, expected)
        if found.state is BisectionState.CANCELLED:
            return found
        if found.state not in LIVE_BISECTIONS:
            raise NotNow(f"bisection {id} has ended already: {found.state}", value=id, advice=f"firstbad show {id}")
        cancelled = self.end(id, BisectionState.CANCELLED)
        self._note(id, "state", state="cancelled", by=by)
        return cancelled

    def pause(self, id: str, by: str, expected: str | None = None) -> Bisection:
        self._expected(id, expected)
        found = self._live(id, "paused")
        if found.paused_at:
            return found
        self.kept[id] = replace(found, paused_at=datetime.now(UTC), updated_at=datetime.now(UTC))
        return self._note(id, "paused", by=by)

    def resume(self, id: str, by: str, expected: str | None = None) -> Bisection:
        self._expected(id, expected)
        self._live(id, "resumed")
        return self.change(id, "resumed", paused_at=None)

    def prioritize(self, id: str, priority: Priority, caller: Caller) -> Bisection:
        allowed.may_prioritize(priority, caller, self.policies)
        self._live(id, "given another priority")
        return self.change(id, "priority", priority=priority)

    def _expected(self, id: str, expected: str | None) -> Bisection:
        return locked(cast(Transaction, _Row(self.bisection(id), self.events(id))), id, expected)

    def _live(self, id: str, done: str) -> Bisection:
        found = self.bisection(id)
        if found.state not in LIVE_BISECTIONS:
            detail = f"bisection {id} cannot be {done}, it has ended: {found.state}"
            raise NotNow(detail, value=id, advice=f"read its answer with firstbad show {id}")
        return found

    def bisection(self, id: str) -> Bisection:
        if self.broken is not None:
            raise self.broken
        if id not in self.kept:
            raise NotFound(f"there is no bisection {id!r}", value=id, advice="list them with firstbad list")
        return self.kept[id]

    def bisections(self, states: Collection[BisectionState] = (), limit: int = 50) -> tuple[Bisection, ...]:
        newest = [found for found in reversed(self.kept.values()) if not states or found.state in states]
        return tuple(newest[:limit])

    def probes(self, id: str) -> tuple[Probe, ...]:
        self.bisection(id)
        return tuple(probe for probe in self.tried.values() if probe.bisection_id == id)

    def page(self, sought: Sought, after: Place | None = None, limit: int = 50) -> Page[Bisection]:
        """By what was asked for; the order of its beginning alone."""
        newest_first = sought.order is not Order.OLDEST
        ordered = sorted(self.kept.values(), key=lambda found: (found.created_at, found.id), reverse=newest_first)
        states, text = sought.states, sought.text.lower()
        found = [one for one in ordered if (not states or one.state in states) and text in one.words]
        found = [one for one in found if sought.project in (None, one.project)]
        found = [one for one in found if sought.submitter in (None, one.submitter)]
        if after is not None:
            found = [one for one in found if ((one.created_at, one.id) < after) == newest_first and one.id != after[1]]
        return Page(tuple(found[:limit]), len(found) > limit)

    def probe_page(self, id: str, after: int = 0, limit: int = 50) -> Page[Probe]:
        found = [probe for probe in self.probes(id) if probe.number > after]
        return Page(tuple(found[:limit]), len(found) > limit)

    def build_page(
        self,
        states: Collection[BuildState] = (),
        id: str | None = None,
        after: Place | None = None,
        limit: int = 50,
    ) -> Page[Build]:
        found = list(self.builds(id)) if id is not None else list(self.made.values())
        found = [build for build in found if not states or build.state in states]
        places = {build.key: (build.queued_at, build.key) for build in found}
        found = [build for build in found if after is None or places[build.key] > after]
        return Page(tuple(found[:limit]), len(found) > limit)

    def build_of(self, key: str) -> Build:
        return known_build(self.made.get(key), key)

    def builds(self, id: str) -> tuple[Build, ...]:
        self.bisection(id)
        return tuple(build for build in self.made.values() if build.bisection_id == id)

    def probe(self, id: str) -> Probe:
        if id not in self.tried:
            raise NotFound(f"there is no probe {id!r}", value=id)
        return self.tried[id]

    def report(self, id: str) -> Report:
        return self.findings(id).report

    def findings(self, id: str) -> Findings:
        found, probes = self.bisection(id), self.probes(id)
        cost = spent(found, probes, datetime.now(UTC))
        made = reports.report(found, probes, self.history, self.builds(id), (), cost)
        return Findings(made, probes, self.history)

    def git_log(self, id: str) -> str:
        order = tuple(self.history)
        return git_log(self.findings(id), Range.of(order[1:]) if order else None)

    def curve(self, id: str) -> Curve:
        metric = metric_of(self.bisection(id))
        return self.curves.get(id) or Curve(metric.name, metric.unit, metric.better)

    def log(self, probe_id: str) -> LogStream:
        found = log_of(self.probe(probe_id))
        return LogStream(found.path, self._pieces(found.path), found.bytes)

    def build_log(self, key: str) -> LogStream:
        found = log_of_build(self.made.get(key), key)
        return LogStream(found.path, self._pieces(found.path), found.bytes)

    def follow(self, probe_id: str) -> Iterator[bytes]:
        return following.follow(self._ports, "probe", probe_id, lambda: following.of_probe(self.probe(probe_id)))

    def follow_build(self, key: str) -> Iterator[bytes]:
        return following.follow(self._ports, "build", key, lambda: following.of_build(self.made.get(key), key))

    @property
    def _ports(self) -> Any:
        """As much of them as following needs."""
        return SimpleNamespace(live=self.live, artifacts=SimpleNamespace(read=self._pieces))

    def events(self, id: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        self.bisection(id)
        return tuple(event for event in self.told if event.bisection_id == id and event.id > after)[:limit]

    def happened(self, after: int, limit: int = 1000) -> tuple[Event, ...]:
        self.asked_what_happened += 1
        return tuple(event for event in self.told if event.id > after)[:limit]

    def last_event(self) -> int:
        return self.told[-1].id if self.told else 0

    def version(self, id: str) -> tuple[str, bool]:
        found, events = self.bisection(id), self.events(id)
        return queries.version(found, events[-1].id if events else 0), found.state in LIVE_BISECTIONS

    def nodes(self) -> tuple[Node, ...]:
        return self.machines

    def node_page(self, after: str = "", limit: int = 50) -> Page[Node]:
        found = [node for node in sorted(self.machines, key=lambda node: node.name) if node.name > after]
        return Page(tuple(found[:limit]), len(found) > limit)

    def node_of(self, name: str) -> Node:
        found = next((node for node in self.machines if node.name == name), None)
        if found is None:
            raise NotFound(f"there is no node {name!r}", value=name, advice="firstbad nodes lists them")
        return found

    def recipes(self) -> tuple[Recipe, ...]:
        return tuple(self.known_recipes.values())

    def recipe(self, name: str) -> Recipe:
        if name not in self.known_recipes:
            raise NotFound(f"there is no recipe {name!r}", value=name)
        return self.known_recipes[name]

    def bring_back(self, name: str) -> Node:
        for place, node in enumerate(self.machines):
            if node.name == name:
                back = replace(node, out="")
                self.machines = (*self.machines[:place], back, *self.machines[place + 1 :])
                return back
        raise NotFound(f"there is no node {name!r}", value=name, advice="firstbad nodes lists them")

    def clone(self, id: str, submission: Submission, caller: Caller, key: str | None = None) -> Bisection:
        request = as_cloned(self.draft(submission, caller), self.bisection(id).request)
        made = self.submit(submission, caller, key)
        self.kept[made.id] = replace(self.kept[made.id], request=request, clone_of=id)
        return self.kept[made.id]

    def override(
        self,
        id: str,
        commit: str,
        verdict: Verdict | None,
        why: str,
        caller: Caller,
        expected: str | None = None,
    ) -> Bisection:
        self._expected(id, expected)
        sha = self._commit(id, commit)
        said = Override(sha, verdict, caller.name, commits.reason(why), datetime.now(UTC))
        return self.change(id, "override", overrides=(*self.kept[id].overrides, said))

    def reprobe(self, id: str, commit: str, why: str, caller: Caller, key: str | None = None) -> Probe:
        commits.reason(why)
        index = next(index for index in range(len(self.history)) if sha(index) == self._commit(id, commit))
        return self.plan(id, index, Purpose.ASKED, state=ProbeState.QUEUED, started_at=None, node=None)

    def _commit(self, id: str, written: str) -> str:
        found = self.bisection(id)
        commits.check_looked_up(found)
        reopen.check_may_go_on(found)
        order = tuple(self.history)
        return commits.named(found, Range.of(order[1:]), written)

    def extend(self, id: str, budget: Budget, caller: Caller) -> Bisection:
        allowed.may_spend(budget, self.bisection(id).request, caller, self.policies)
        return self.change(id, "budget changed", budget=budget)

    def adjust(self, id: str, change: Change, caller: Caller, expected: str | None = None) -> Bisection:
        found = self._expected(id, expected)
        if change.priority is not None:
            allowed.may_prioritize(change.priority, caller, self.policies)
            self._live(id, "given another priority")
        if change.limits:
            found = self.extend(id, change.budget(found), caller)
        return found if change.priority is None else self.prioritize(id, change.priority, caller)

    def judge_again(self, id: str) -> tuple[Probe, ...]:
        self.bisection(id)
        return self.judged_again

    def checks(self) -> dict[str, health.Check]:
        return {name: partial(self._trouble, name) for name in self.parts}

    def figures(self) -> Figures:
        return self.counted

    def _trouble(self, name: str) -> str | None:
        return None if self.parts[name] == "ok" else self.parts[name]

    # What a test lets happen

    def change(self, id: str, kind: str, **changes: Any) -> Bisection:
        self.kept[id] = replace(self.kept[id], updated_at=datetime.now(UTC), **changes)
        return self._note(id, kind, **({"state": str(self.kept[id].state)} if kind == "state" else {}))

    def look_up(self, id: str, candidates: int, *, notes: tuple[str, ...] = ()) -> None:
        """The commits 0 (good) to `candidates` (bad) are known, and the ends come next."""
        self.history.update({sha(index): commit(index) for index in range(candidates + 1)})
        known = {"good_shas": (sha(0),), "bad_sha": sha(candidates), "candidates": candidates}
        known["notes"] = (*self.kept[id].notes, *notes)
        self.change(id, "state", state=BisectionState.CHECKING_ENDS, candidates_left=candidates, **known)

    def search(self, id: str, left: int, expected: float) -> None:
        self.change(id, "state", state=BisectionState.SEARCHING, candidates_left=left, expected_probes=expected)

    def plan(self, id: str, index: int, purpose: Purpose = Purpose.SEARCH, **more: Any) -> Probe:
        number = len(self.probes(id)) + 1
        now = datetime.now(UTC)
        fields = {"state": ProbeState.RUNNING, "started_at": now, "node": "node-1", **more}
        probe = Probe(f"{id}.{number}", id, number, sha(index), 1, purpose, planned_at=now, attempt=1, **fields)
        self.tried[probe.id] = probe
        self._note(id, "started", probe=probe.id)
        return probe

    def judge(self, probe: Probe, verdict: Verdict, reason: str, log: bytes = b"one\ntwo\n") -> Probe:
        path = f"logs/{probe.id}"
        self.logs[path] = log
        kept = Log(path, len(log), last_lines=tuple(log.decode(errors="replace").splitlines()[-10:]))
        status = {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.SKIP: 125}[verdict]
        outcome = Outcome("script", status, phases=(Phase("script", 0.0, 1.5),), log=kept, environment={"python": "3"})
        ended = replace(probe, state=ProbeState.JUDGED, verdict=verdict, reason=reason, outcome=outcome)
        self.tried[probe.id] = replace(ended, finished_at=probe.planned_at + timedelta(seconds=1.5))
        self._note(probe.bisection_id, "verdict", probe=probe.id)
        return self.tried[probe.id]

    def build(self, probe: Probe, state: BuildState, log: bytes | None = b"compiling\n", **more: Any) -> Build:
        """That of the probe's wheel."""
        key = f"k{probe.number}"
        kept = Log(f"logs/{key}.1.log", len(log)) if log is not None else None
        if kept is not None and log is not None:
            self.logs[kept.path] = log
        build = Build(key, state, "/srv/x.git", probe.sha, probe.bisection_id, probe.planned_at, log=kept, **more)
        self.made[key] = build
        self.tried[probe.id] = replace(probe, build_key=key)
        return build

    def fault(self, probe: Probe, fault: Fault) -> None:
        self.tried[probe.id] = replace(probe, faults=(*probe.faults, fault))
        self._note(probe.bisection_id, "fault", probe=probe.id)

    def end(
        self, id: str, state: BisectionState, answer: Answer | None = None, problem: Problem | None = None
    ) -> Bisection:
        now = datetime.now(UTC)
        for probe in self.probes(id):
            if probe.state in LIVE_PROBES:
                self.tried[probe.id] = replace(probe, state=ProbeState.CANCELLED, finished_at=now)
        return self.change(id, "state", state=state, answer=answer, problem=problem, ended_at=now)

    def find(self, id: str, index: int) -> Bisection:
        """The whole way: both ends, a parent that is good, and commit `index` that is bad."""
        if self.kept[id].candidates is None:
            self.look_up(id, 8)
        self.judge(self.plan(id, 8, Purpose.BAD_END), Verdict.BAD, "script ended with exit status 1")
        self.judge(self.plan(id, 0, Purpose.GOOD_END), Verdict.GOOD, "script passed")
        self.search(id, 8, 3.0)
        self.judge(self.plan(id, index - 1), Verdict.GOOD, "script passed")
        self.judge(self.plan(id, index), Verdict.BAD, "script ended with exit status 1")
        self.change(id, "narrowed", candidates_left=1, expected_probes=0.0)
        return self.end(id, BisectionState.FOUND, Answer((sha(index),), "bad in 1 run, and good at all of its parents"))

    def _pieces(self, path: str) -> Iterator[bytes]:
        if path not in self.logs:
            raise NotFound("the log is gone", value=path, advice="it was removed from the store")
        whole = self.logs[path]
        return (whole[at : at + 4096] for at in range(0, len(whole), 4096))

    def _note(self, id: str, kind: str, **data: object) -> Bisection:
        self.told.append(Event(len(self.told) + 1, id, datetime.now(UTC), kind, data))
        return self.kept[id]
