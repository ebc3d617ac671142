"""A submission, as a user wrote it, made into a complete request, or refused with what is wrong about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.application import checks, merged, metrics, pasted, reproduction
from service.application import ends as written_ends
from service.application.ports import Policy
from service.application.submission import BudgetForm, Submission
from service.domain.bisection import FailureIn, OtherFailures, Reproduction, Request
from service.domain.budget import Budget, Priority
from service.domain.errors import BadRequest
from service.domain.readers import Reader
from service.domain.recipe import BRIDGE, NO_NETWORK, Recipe, SandboxKind
from service.domain.servers import Server

MOST_PROBES, MOST_GPU_HOURS = 1_000_000, 1_000_000.0
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def complete(
    submission: Submission,
    recipes: Mapping[str, Recipe],
    policy: Policy,
    servers: Sequence[Server] = (),
    readers: Sequence[Reader] = (),
) -> Request:
    """`servers`: those that are known in a pasted script; `readers`: of numbers.

    Errors: BadRequest, TooLarge; each names the field.
    """
    failure_in = checks.enum(FailureIn, submission.failure_in, "failure_in") or FailureIn.RUN
    recipe = merged.recipe(submission, recipes, policy)
    sandbox = _sandbox(submission, recipe, policy)
    ends = written_ends.ends(submission)
    written_ends.check_package(ends, recipe)
    repo = _repo(submission, ends.site)
    hang = checks.choice(submission.hang, ("skip", "bad"), "hang")
    written = reproduction.reproduction(submission, policy, failure_in, recipe)
    made, notes = _unpasted(written, submission, recipe, repo, servers)
    control = reproduction.control(submission.control, made, policy)
    measured = metrics.metrics(submission, readers)
    return Request(
        repo=repo,
        good=ends.good,
        bad=ends.bad,
        reproduction=made,
        recipe=recipe,
        sandbox=sandbox,
        width=_width(submission, policy),
        first_parent=submission.first_parent,
        timeout_s=checks.duration(submission.timeout if submission.timeout is not None else 3600, "timeout"),
        hang_is_bad=hang == "bad",
        flaky=submission.flaky,
        failure_in=failure_in,
        control=_unpasted(control, submission, recipe, repo, servers)[0] if control is not None else None,
        other_failures=checks.enum(OtherFailures, submission.other_failures, "other_failures") or OtherFailures.SKIP,
        metric=measured[0] if measured else None,
        other_metrics=measured[1:],
        measuring=metrics.measuring(submission, served=made.serve is not None),
        priority=checks.enum(Priority, submission.priority, "priority") or Priority.NORMAL,
        budget=_budget(submission.budget, recipe),
        notes=(*ends.notes, *notes),
    )


def _unpasted(
    written: Reproduction, submission: Submission, recipe: Recipe, repo: str, servers: Sequence[Server]
) -> tuple[Reproduction, tuple[str, ...]]:
    """With what was done to a script that was pasted from where people tell of failures."""
    if written.script is None or not submission.pasted:
        return written, ()
    found = pasted.split(written.script, servers, pasted.Project.of(recipe, repo))
    return replace(written, script=found.script, serve=found.serve, check=found.check), found.notes


def _repo(submission: Submission, site: str | None) -> str:
    """`site`: that of the addresses which name the ends, where no other one is named."""
    written = submission.repo if submission.repo is not None else site
    if written is None:
        raise BadRequest("the repository is missing", field="repo", advice="add repo: with the URL to clone it from")
    return checks.text(written, "repo")


def _sandbox(submission: Submission, recipe: Recipe, policy: Policy) -> SandboxKind:
    # Who names an image wants what is in it, and its walls.
    asked = policy.default_sandbox if submission.image is None else SandboxKind.DOCKER
    kind = checks.enum(SandboxKind, submission.sandbox, "sandbox") or asked
    if kind not in policy.sandboxes:
        allowed = ", ".join(sorted(policy.sandboxes))
        raise BadRequest(
            f"this service does not allow the {kind} sandbox", value=kind, field="sandbox", advice=f"allowed: {allowed}"
        )
    if kind is SandboxKind.DOCKER and recipe.image is None:
        raise BadRequest("the docker sandbox needs an image", field="image", advice="add image: with the name of one")
    if kind is SandboxKind.PROCESS:
        _no_named_network(recipe)
    return kind


def _no_named_network(recipe: Recipe) -> None:
    for name, network in (("network", recipe.network), ("build_network", recipe.build_network)):
        if network not in (NO_NETWORK, BRIDGE):
            raise BadRequest(
                f"{name}: {network!r} is a network of container engines, which the process sandbox does not have",
                value=network,
                field="network" if name == "network" else "sandbox",
                advice="add sandbox: docker"
                + (f", or write network: {NO_NETWORK} or {BRIDGE}" if name == "network" else ""),
            )


def _width(submission: Submission, policy: Policy) -> int:
    width = submission.width if submission.width is not None else 1
    if not 1 <= width <= policy.width:
        raise BadRequest(
            f"width {width} is not between 1 and {policy.width}",
            value=str(width),
            field="width",
            advice="it is the number of probes in flight at once; with a metric, of benches that are measured on",
        )
    return width


def _budget(form: BudgetForm, recipe: Recipe) -> Budget:
    field, hours = "budget.gpu_hours", form.gpu_hours
    if hours is not None and not recipe.resources.gpus:
        budget_of(form)
        what = f"{field} is given, but no GPUs are asked for"
        raise BadRequest(what, value=str(hours), field=field, advice="add resources: {gpus: 1}, or remove it")
    return budget_of(form)


def budget_of(form: BudgetForm) -> Budget:
    """Errors: BadRequest."""
    return Budget(
        probes=_most_probes(form.probes) if form.probes is not None else None,
        wall_s=checks.duration(form.wall, "budget.wall") if form.wall is not None else None,
        gpu_s=3600.0 * _gpu_hours(form.gpu_hours) if form.gpu_hours is not None else None,
    )


def _most_probes(written: str | float) -> int:
    found = _number(written)
    if found is None or found != int(found) or not 2 <= found <= MOST_PROBES:
        raise BadRequest(
            f"budget.probes: {str(written)!r} is no number of probes",
            value=str(written),
            field="budget.probes",
            advice=f"both ends are tried first: write a whole number from 2 to {MOST_PROBES}, like 40, or leave it out",
        )
    return int(found)


def _gpu_hours(written: str | float) -> float:
    field, found = "budget.gpu_hours", _number(written)
    if found is None or not 0 < found <= MOST_GPU_HOURS:
        raise BadRequest(
            f"{field}: {str(written)!r} is no number of hours",
            value=str(written),
            field=field,
            advice="write hours of one card, more than 0, like 20 or 0.5, or leave it out",
        )
    return found


def _number(written: str | float) -> float | None:
    return float(str(written)) if _NUMBER.fullmatch(str(written).strip()) else None
