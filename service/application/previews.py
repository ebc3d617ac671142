"""What is asked before anything is begun: what a request would come to, and what the text of an issue holds."""

from __future__ import annotations

import uuid

from service.application import allowed, dry_run, wording
from service.application.aside import StillAtIt
from service.application.begun import begun
from service.application.dry_run import Looked, Preview
from service.application.parse import Draft, Known, parse
from service.application.ports import Asked, HistoryFailed
from service.application.submission import Submission
from service.application.submit import complete
from service.application.work import Work
from service.domain.access import Caller
from service.domain.bisection import Bisection, Problem
from service.domain.errors import NotAllowed, NotFound, Refusal, UserError

#: Seconds that the repository may take; a clone that needs more goes on meanwhile.
PATIENCE_S = 20.0


class Previews(Work):
    def dry_run(self, submission: Submission, caller: Caller, patience_s: float = PATIENCE_S) -> Preview:
        """Errors: BadRequest, TooLarge, as of `submit`; what else it would be refused for is in the answer."""
        ports, now = self.ports, self.ports.clock.now()
        request = complete(submission, ports.recipes, ports.policy, ports.servers, ports.readers)
        problems: list[Problem] = []
        try:
            ports.history.check(request.repo)
            request = allowed.allowed(request, caller, ports.policy.callers)
        except (NotAllowed, Refusal) as error:
            problems.append(wording.problem_of(error))
        with ports.bisections.reading() as tx:
            before, stock, nodes = dry_run.past(tx, request), tx.stock(request.repo), tx.nodes()
        preview = Preview(request, nodes=dry_run.serving(nodes, request.recipe.resources, now), notes=request.notes)
        bisection = dry_run.as_built(begun(uuid.uuid4().hex, request, caller.name, now), before)
        looked: Looked | str = "" if problems else self._look(bisection, problems, patience_s)
        if isinstance(looked, str):
            return Preview(request, tuple(problems), unread=looked, nodes=preview.nodes, notes=preview.notes)
        made = dry_run.wheels(looked, stock, known=before.last is not None)
        return Preview(
            request,
            tuple(problems),
            looked,
            wheels=made,
            expected=dry_run.expected(looked, made, before, request.width),
            nodes=preview.nodes,
            notes=(*request.notes, *looked.notes),
        )

    def parse(self, text: str, project: str | None = None) -> Draft:
        """Errors: NotFound for a project that is none."""
        recipes = self.ports.recipes
        if project is not None and project not in recipes:
            known = ", ".join(sorted(recipes))
            raise NotFound(f"there is no recipe {project!r}", value=project, field="project", advice=f"known: {known}")
        packages = {recipe.package: name for name, recipe in recipes.items() if recipe.package}
        return parse(text, Known(packages, project), self.ports.servers, self.ports.failures)

    def _look(self, bisection: Bisection, problems: list[Problem], patience_s: float) -> Looked | str:
        """What the repository says, or why it says nothing. What it would be refused for is put into `problems`."""
        history, clock, request = self.ports.history, self.ports.clock, bisection.request
        asked = Asked(bisection.created_at, clock.now())
        have = (*request.good, request.bad)

        try:
            # Who asks for the same meanwhile waits for the same clone; what is made of it is each one's own.
            fresh = f"{request.repo}\0{have}"
            self._aside.run(fresh, lambda: history.refresh(request.repo, have=have, asked=asked), patience_s)
            left_s = patience_s - (clock.now() - asked.now).total_seconds()
            return self._aside.run(bisection.id, lambda: dry_run.look(history, bisection, clock.now()), left_s)
        except StillAtIt:
            return (
                f"The repository was not read within {patience_s:g} s, and is being read further: ask again, or submit,"
                " and the commits are looked up then."
            )
        except HistoryFailed as error:
            return f"The repository cannot be read now: {error}"
        except UserError as error:
            problems.append(wording.problem_of(error))
            return ""
