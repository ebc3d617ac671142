"""What a person does to one bisection besides holding and ending it."""

from __future__ import annotations

from service.application import adjust as adjusting
from service.application import commits, looks, reopen
from service.application import override as overriding
from service.application import reprobe as reprobing
from service.application.adjust import LIMITS, Change
from service.application.expected import locked
from service.application.keys import range_of, scope_of
from service.application.verdicts import derive, taken_back
from service.application.work import Work
from service.domain.access import Caller
from service.domain.bisection import Bisection, Probe
from service.domain.budget import Budget
from service.domain.evidence import Override, Verdict


class Actions(Work):
    def override(
        self,
        id: str,
        commit: str,
        verdict: Verdict | None,
        why: str,
        caller: Caller,
        expected: str | None = None,
    ) -> Bisection:
        """`verdict`: of a commit of the range or of an end, whatever its probes show; None takes back what was said.

        The search goes on from it, and an answer that it stands against is taken back. `expected`: the version that
        the bisection must have. Errors: NotFound; BadRequest; PreconditionFailed; NotNow when it cannot go on, or
        beside what was said before.
        """
        found, told = self._looked_up(id), commits.reason(why)
        range_ = range_of(self.ports.history, found)
        sha, now = commits.named(found, range_, commit), self.ports.clock.now()
        with self._work() as tx:
            said = Override(sha, verdict, caller.name, told, now)
            overriding.override(tx, locked(tx, id, expected), said, range_, now)
        self._advance_all([id])
        return self._found(id)

    def reprobe(self, id: str, commit: str, why: str, caller: Caller, key: str | None = None) -> Probe:
        """One more run of a commit. Until it is over there is no answer. `key`: sent again with it, it begins no
        second one. Errors: NotFound; BadRequest; NotNow when it cannot go on, or no more may be tried."""
        found, told = self._looked_up(id), commits.reason(why)
        scope = scope_of(self.ports.history, found)
        sha, now = commits.named(found, scope.range, commit), self.ports.clock.now()
        with self._work() as tx:
            found = tx.bisection(id, lock=True)
            probe = reprobing.reprobe(tx, found, sha, told, caller.name, scope.keys.get(sha), now, key)
        self._advance_all([id])
        with self.ports.bisections.reading() as tx:
            return tx.probe(probe.id)

    def extend(self, id: str, budget: Budget, caller: Caller) -> Bisection:
        """`budget`: as it is from now on. Errors: as of `adjust`."""
        return self.adjust(id, Change(asked=budget, limits=LIMITS), caller)

    def adjust(self, id: str, change: Change, caller: Caller, expected: str | None = None) -> Bisection:
        """One that ended since its budget was spent goes on with another. `expected`: the version that it must have.
        Errors: NotFound; PreconditionFailed; NotAllowed; NotNow when it ended otherwise."""
        with self._work() as tx:
            found, now = locked(tx, id, expected), self.ports.clock.now()
            changed = adjusting.adjust(tx, found, change, caller, self.ports.policy.callers, now)
        if not change.limits:
            return changed
        self._advance_all([id])
        return self._found(id)

    def judge_again(self, id: str) -> tuple[Probe, ...]:
        """Derives all verdicts anew from the outcomes that are kept; the probes whose verdict changed.

        An answer that they do not bear any more is taken back, and the search goes on from what they say.
        """
        range_ = looks.measured_range(self.ports.history, self._found(id))
        now = self.ports.clock.now()
        with self._work() as tx:
            bisection = tx.bisection(id, lock=True)
            before = {probe.id: probe.verdict for probe in tx.probes(id)}
            after = derive(tx, bisection, now, range_)
            changed = tuple(probe for probe in after if probe.verdict is not before[probe.id])
            again = bisection.state in reopen.ON_VERDICTS and (bool(changed) or taken_back(bisection, after))
            if again:
                reopen.reopened(tx, bisection, now)
        if again or changed:
            self._advance_all([id])
        return changed

    def _found(self, id: str) -> Bisection:
        with self.ports.bisections.reading() as tx:
            return tx.bisection(id)

    def _looked_up(self, id: str) -> Bisection:
        """Errors: NotFound; NotNow."""
        found = self._found(id)
        commits.check_looked_up(found)
        reopen.check_may_go_on(found)
        return found
