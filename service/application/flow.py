"""The public functions of the application: each opens its transactions and joins the steps. Doors call only these."""

from __future__ import annotations

from dataclasses import replace

from service.application import (
    allowed,
    cancel,
    health,
    nodes,
    once,
    pause,
    record,
    survey,
    sweep,
    wording,
)
from service.application import prepare as preparation
from service.application.access import Access
from service.application.actions import Actions
from service.application.adjust import Change
from service.application.begun import begun
from service.application.clone import as_cloned
from service.application.expected import locked
from service.application.keys import scope_of
from service.application.ports import Asked
from service.application.previews import Previews
from service.application.reads import Reads
from service.application.submission import Submission
from service.application.submit import complete
from service.application.upkeep import Upkeep
from service.application.webhooks import Webhooks
from service.domain.access import Caller
from service.domain.bisection import Bisection, Message, Node, Request
from service.domain.budget import Priority
from service.domain.errors import UserError
from service.domain.figures import Beat, Figures
from service.domain.lifecycle import BisectionState
from service.domain.results import BuildReport, ProbeReport, SurveyReport


class Flow(Access, Actions, Previews, Reads, Upkeep, Webhooks):
    # What a door asks for

    def draft(self, submission: Submission, caller: Caller) -> Request:
        """What `submit` would begin, with its notes. Errors: as of `submit`."""
        ports = self.ports
        request = complete(submission, ports.recipes, ports.policy, ports.servers, ports.readers)
        return self._allowed(request, caller)

    def submit(self, submission: Submission, caller: Caller, key: str | None = None) -> Bisection:
        """`key`: sent again with it, a request begins no second one. What needs the repository is checked later and
        ends as `refused`. Errors: BadRequest, TooLarge, NotAllowed."""
        return self._submit(self.draft(submission, caller), caller, key)

    def clone(self, id: str, submission: Submission, caller: Caller, key: str | None = None) -> Bisection:
        """`submission`: the request of that one with changes in it, checked and allowed as any. Errors: NotFound; as of
        `submit`."""
        request = as_cloned(self.draft(submission, caller), self.bisection(id).request)
        return self._submit(request, caller, key, clone_of=id)

    def _submit(self, request: Request, caller: Caller, key: str | None, clone_of: str | None = None) -> Bisection:
        now = self.ports.clock.now()
        id = self.ports.ids.new() if key is None else once.id_of(caller.name, key)
        bisection = replace(begun(id, request, caller.name, now), clone_of=clone_of)
        with self.ports.watch.doing("submit", bisection=bisection.id), self._work() as tx:
            if key is not None and (known := once.begun(tx, bisection)) is not None:
                return known
            tx.add_bisection(bisection)
            tx.add_event(bisection.id, now, "state", {"state": str(bisection.state), "by": caller.name})
            tx.post(Message("prepare", f"prepare:{bisection.id}", {"id": bisection.id}), now)
        return bisection

    def cancel(self, id: str, by: str, expected: str | None = None) -> Bisection:
        """`expected`: the version that it must have. Errors: NotFound; PreconditionFailed; NotNow when it has ended
        otherwise."""
        with self._work() as tx:
            return cancel.bisection(tx, locked(tx, id, expected), by, self.ports.clock.now())

    def pause(self, id: str, by: str, expected: str | None = None) -> Bisection:
        """Nothing new is begun for it; what runs goes on to its end. Errors: NotFound; PreconditionFailed; NotNow when
        it has ended."""
        with self._work() as tx:
            return pause.pause(tx, locked(tx, id, expected), by, self.ports.clock.now())

    def resume(self, id: str, by: str, expected: str | None = None) -> Bisection:
        """Errors: NotFound; PreconditionFailed; NotNow when it has ended."""
        with self._work() as tx:
            resumed = pause.resume(tx, locked(tx, id, expected), by, self.ports.clock.now())
        self._advance_all([id])
        return resumed

    def prioritize(self, id: str, priority: Priority, caller: Caller) -> Bisection:
        """Errors: NotFound; NotNow when it has ended; NotAllowed."""
        return self.adjust(id, Change(priority), caller)

    def bring_back(self, name: str) -> Node:
        """A node that was taken out gets probes again. Errors: NotFound."""
        with self._work() as tx:
            return nodes.bring_back(tx, name, self.ports.clock.now())

    def checks(self) -> dict[str, health.Check]:
        """Those of each part of the service. One may hang as long as what it asks does."""
        return health.checks(self.ports)

    def figures(self) -> Figures:
        settled = False
        while not settled:
            with self.ports.bisections.transaction() as tx:
                settled = tx.settle(self.ports.clock.now())
        with self.ports.bisections.transaction() as tx:
            return tx.figures(self.ports.clock.now())

    # What an entry passes on

    def beat(self, beat: Beat) -> None:
        """A control worker is alive."""
        with self.ports.bisections.transaction() as tx:
            tx.save_beat(beat)

    def beats_no_more(self, name: str) -> None:
        """It was told to end."""
        with self.ports.bisections.transaction() as tx:
            tx.remove_beat(name)

    def prepare(self, id: str) -> None:
        """Looks the commits up and starts with the ends. Done again, it finds the bisection prepared."""
        with self.ports.watch.doing("prepare", bisection=id):
            self._prepare(id)

    def _prepare(self, id: str) -> None:
        with self._work() as tx:
            bisection = tx.bisection(id, lock=True)
            if bisection.state not in (BisectionState.QUEUED, BisectionState.PREPARING):
                return
            if bisection.state is BisectionState.QUEUED:
                self._to(tx, bisection, BisectionState.PREPARING)
        if survey.asked(bisection):
            if bisection.setup.builder is not None:
                self._begin(id)
            return
        try:
            asked = Asked(bisection.created_at, self.ports.clock.now())
            prepared = preparation.prepare(self.ports.history, bisection.request, asked)
        except UserError as error:
            self._end(id, BisectionState.REFUSED, wording.problem_of(error))
        else:
            self._prepared(id, prepared)

    def surveyed(self, report: SurveyReport) -> None:
        """What builders have is known: now the commits' wheels have keys, and the ends can be tried."""
        with self.ports.watch.doing("record", bisection=report.bisection, attempt=str(report.attempt)):
            with self._work() as tx:
                bisection = tx.bisection(report.bisection, lock=True)
                if not survey.ended(tx, bisection, report, self.ports.clock.now()):
                    return
            self._begin(report.bisection)

    def failed(self, id: str, error: BaseException) -> None:
        """We broke in the middle of this bisection: say so instead of letting it hang."""
        self._end(id, BisectionState.FAILED, wording.internal_error(error))

    def started(self, kind: str, id: str, attempt: int, node: str, *, leased: bool = False) -> None:
        """`leased`: it holds its GPUs now."""
        if kind not in ("probe", "build"):
            return
        with self._work() as tx:
            if kind == "probe":
                record.probe_started(tx, id, attempt, node, self.ports.clock.now(), leased=leased)
            else:
                record.build_started(tx, id, attempt, node, self.ports.clock.now())

    def probed(self, report: ProbeReport) -> None:
        id = report.probe.rpartition(".")[0]
        with self.ports.watch.doing("record", bisection=id, probe=report.probe, attempt=str(report.attempt)):
            scope = self._scopes.get(id) or self._scope(id)
            with self._work() as tx:
                bisection = tx.bisection(id, lock=True)
                record.probe_ended(tx, report, self.ports.clock.now())
                led = scope is None or self._advance(tx, bisection, scope)
            if not led:
                self._advance_all([id])

    def built(self, report: BuildReport) -> None:
        with self.ports.watch.doing("record", build=report.key, attempt=str(report.attempt)):
            with self._work() as tx:
                touched = record.build_ended(tx, report, self.ports.clock.now())
            self._advance_all(touched)

    def stranger(self, name: str, why: str, *, left: bool = False) -> None:
        """A node whose messages are of another version of the contract, and so cannot be read."""
        with self._work() as tx:
            nodes.stranger(tx, name, why, self.ports.clock.now(), left=left)

    def node(self, node: Node, booted: bool, adopted: frozenset[tuple[str, str, int]] = frozenset()) -> None:
        """`adopted`: kind, id and attempt of what it goes on with after a restart."""
        with self._work() as tx:
            nodes.beat(tx, node)
            left = sweep.booted(tx, node.name, adopted, self.ports.clock.now()) if booted else ()
        touched: set[str] = set()
        for ticket in left:
            with self._work() as tx:
                touched |= sweep.give_back(tx, ticket, self.ports.clock.now())
        self._advance_all(touched)
        if booted:
            self._release_all()

    # How it is done

    def _allowed(self, request: Request, caller: Caller) -> Request:
        """As it may be begun: what every new bisection passes. Errors: NotAllowed, RepositoryUnavailable."""
        self.ports.history.check(request.repo)
        return allowed.allowed(request, caller, self.ports.policy.callers)

    def _prepared(self, id: str, prepared: preparation.Prepared) -> None:
        with self._work() as tx:
            bisection = tx.bisection(id, lock=True)
            if bisection.state is not BisectionState.PREPARING or survey.asked(bisection):
                return
            known = survey.with_gpus(tx, preparation.known(bisection, prepared), self.ports.clock.now())
            tx.save_bisection(known)
            if survey.waits_for_gpus(known):
                # The sweep has it prepared again now and then.
                return
            if survey.needed(known.request):
                survey.ask(tx, known, self.ports.clock.now())
                return
        self._begin(id)

    def _begin(self, id: str) -> None:
        """Done again, as by the sweep when a crash came between, it finds the bisection begun."""
        scope = scope_of(self.ports.history, self.bisection(id))
        with self._work() as tx:
            bisection = tx.bisection(id, lock=True)
            if bisection.state is not BisectionState.PREPARING:
                return
            led = self._advance(tx, self._to(tx, bisection, BisectionState.CHECKING_ENDS), scope)
        if not led:
            self._advance_all([id])
