"""Every sentence that a person reads about a bisection, as pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.domain.bisection import Answer, Bisection, Commit, Probe, Problem
from service.domain.budget import Budget
from service.domain.duration import spoken
from service.domain.errors import BadEnds, UserError
from service.domain.evidence import Fault, Verdict
from service.domain.lifecycle import LIVE_BISECTIONS, BisectionState
from service.domain.recipe import Resources
from service.domain.spending import Spent
from service.domain.suspects import count, shown

LAST_LINES = 10
#: No answer that stands on chances is said to be surer.
SUREST = 0.999


def short(sha: str) -> str:
    return sha[:10]


def problem_of(error: UserError) -> Problem:
    return Problem(error.slug, error.title, error.detail, error.value, error.field, error.advice)


def last_lines(probe: Probe) -> str:
    """The end of a probe's log, indented; its own sentence when there is none."""
    log = probe.outcome.log if probe.outcome else None
    lines = log.last_lines[-LAST_LINES:] if log else ()
    return "\n".join(f"    {line}" for line in lines) or "    (nothing was printed)"


def both_logs(good: Probe, bad: Probe) -> str:
    return (
        f"good {short(good.sha)}, {good.reason}. Its last lines:\n{last_lines(good)}\n"
        f"bad {short(bad.sha)}, {bad.reason}. Its last lines:\n{last_lines(bad)}"
    )


def ends_both_bad(good: Probe, bad: Probe, kind: type[UserError]) -> Problem:
    detail = f"the good end {short(good.sha)} fails as well, so nothing broke between the two.\n{both_logs(good, bad)}"
    return Problem(kind.slug, kind.title, detail, good.sha, "good", _CHECK_SCRIPT + ", or name an older good commit")


def ends_both_good(good: Probe, bad: Probe, kind: type[UserError]) -> Problem:
    detail = f"the bad end {short(bad.sha)} passes, so the failure was not seen at all.\n{both_logs(good, bad)}"
    return Problem(kind.slug, kind.title, detail, bad.sha, "bad", _CHECK_SCRIPT + ", or name a commit where it fails")


def ends_swapped(good: Probe, bad: Probe, kind: type[UserError]) -> Problem:
    detail = f"the good end {short(good.sha)} fails and the bad end {short(bad.sha)} passes.\n{both_logs(good, bad)}"
    return Problem(kind.slug, kind.title, detail, good.sha, "good", "swap good and bad if that is what was meant")


_CHECK_SCRIPT = "check that the reproduction shows this failure here"


def refused(probe: Probe, kind: str, reason: str, advice: str) -> Problem:
    title = "The package under test was replaced" if kind == "replaced-package" else "No node can run this"
    return Problem(kind, title, f"{reason}.\n{last_lines(probe)}", probe.sha, "", advice)


def unfit(faulted: Sequence[Probe], tried: int, left: int | None) -> Problem:
    kinds = sorted({probe.faults[-1].kind for probe in faulted})
    last = faulted[-1].faults[-1]
    return Problem(
        "unfit-environment",
        "The nodes are not fit to judge this",
        f"{len(faulted)} of {tried} probes ended with faults ({', '.join(kinds)}) and {left} candidates are left; "
        f"the last: {last.message}",
        advice=last.advice or "mend the nodes and submit again; wheels that were built are kept",
    )


def waits_for_gpus(wanted: Resources, models: Sequence[str]) -> str:
    which = f" ({wanted.gpu})" if wanted.gpu else ""
    have = f"the nodes have {', '.join(models)}" if models else "no node has a GPU"
    cards = "1 GPU" if wanted.gpus == 1 else f"{wanted.gpus} GPUs"
    return f"waits for a node with {cards}{which}: {have}"


def waits_for_fit(wanted: Resources, missing: Sequence[tuple[str, Sequence[str]]], models: Sequence[str]) -> str:
    """`missing`: by node, labels and models that it lacks."""
    needs = [f"the label {label}" for label in wanted.labels] + [f"the model {model}" for model in wanted.models]
    lack = [f"{node} lacks {', '.join(what)}" for node, what in missing if what]
    gpus = [waits_for_gpus(wanted, models).removeprefix("waits for a node with ")] if wanted.gpus else []
    return "; ".join((f"waits for a node with {' and '.join(needs)}", *(lack or gpus or ("no node takes probes",))))


def waits_for_alike(name: str, hardware: str, out: str) -> str:
    like = f" or one of the same hardware ({hardware})" if hardware else ""
    why = f"; {name} is out: {out}" if out else ""
    return f"waits for {name}{like}, as numbers of other machines cannot be compared{why}"


def end_untestable(probe: Probe) -> Problem:
    detail = f"the {probe.purpose} {short(probe.sha)} cannot be judged: {probe.reason}.\n{last_lines(probe)}"
    return Problem(
        BadEnds.slug,
        "An end cannot be tested",
        detail,
        probe.sha,
        str(probe.purpose).split()[0],
        f"read its log (firstbad logs {probe.id}), mend what is wrong and submit again{_unbuilt(probe)}",
    )


def _unbuilt(probe: Probe) -> str:
    built = probe.outcome is not None and probe.outcome.ended_in == "build"
    return "; when nothing has to be built, say project: source" if built else ""


def end_faulted(probe: Probe) -> Problem:
    last = probe.faults[-1]
    return Problem(
        f"fault-{last.kind}",
        "The nodes could not run an end",
        f"the {probe.purpose} {short(probe.sha)} met {len(probe.faults)} faults; the last: {last.message}",
        probe.sha,
        "",
        last.advice,
    )


def survey_faulted(faults: Sequence[Fault]) -> Problem:
    last = faults[-1]
    return Problem(
        f"fault-{last.kind}",
        "No node can run this",
        f"what it would run in was asked for {len(faults)} times and met only faults; the last: {last.message}",
        advice=last.advice or "mend the nodes and submit again",
    )


def search_faulted(faulted: Sequence[Probe], left: int) -> Problem:
    last = faulted[-1].faults[-1]
    return Problem(
        f"fault-{last.kind}",
        "The nodes could not run what is left to try",
        f"{left} candidates are left, and all probes among them met only faults; the last: {last.message}",
        advice=last.advice or "mend the nodes and submit again; wheels that were built are kept",
    )


def internal_error(error: BaseException) -> Problem:
    return Problem(
        "internal-error",
        "firstbad itself failed",
        f"{type(error).__name__}: {error}",
        advice="the service's log has the traceback; submit again once it is mended",
    )


_LOOKED_FIRST = "looked first where "
_BUDGET, BUDGET_SPENT = "the budget of", "budget-spent"
CONTRADICTION = "the verdicts cannot all be true"


def looked_first(points: Sequence[str]) -> str:
    """`points`: files of the traceback or, where no commit touches these, words of the failure."""
    what = "the traceback points" if any("/" in point or "." in point for point in points) else "commits mention"
    return f"{_LOOKED_FIRST}{what}: {', '.join(points)}"


def noted(notes: Sequence[str], note: str) -> tuple[str, ...]:
    """With where it looked first, once; it may change when verdicts do."""
    return (*(other for other in notes if not other.startswith(_LOOKED_FIRST)), note) if note else tuple(notes)


def budget_spent(budget: Budget, spent: Spent) -> Problem:
    return Problem(
        BUDGET_SPENT,
        "The budget was spent before the ends were checked",
        f"{_of_budget(budget, spent)} before it was seen that good is good and bad is bad",
        field="budget",
        advice="give it a larger budget, and it goes on",
    )


def why_budget(budget: Budget, spent: Spent, expected: float | None) -> str:
    """`expected`: probes that would still have been tried."""
    more = max(round(expected), 1) if expected is not None else None
    needed = f"; about {more} more {'probe' if more == 1 else 'probes'} would have found it" if more else ""
    return f"{_of_budget(budget, spent)}{needed}"


def is_budget_spent(ended: Bisection) -> bool:
    """Whether it ended for that alone."""
    why = ended.answer.why if ended.answer is not None else ""
    early = ended.problem is not None and ended.problem.slug == BUDGET_SPENT
    return why.startswith(_BUDGET) if ended.state is BisectionState.SUSPECTS else early


def go_on(bisection: Bisection, spent: Spent) -> tuple[str, ...]:
    """The command with which one whose budget is spent goes on."""
    most, left = bisection.budget, bisection.candidates_left or 0
    if not is_budget_spent(bisection):
        return ()
    limits = []
    if most.probes is not None and spent.probes >= most.probes:
        limits.append(f"--probes {max(2 * most.probes, spent.probes + math.ceil(math.log2(max(left, 2))))}")
    if most.wall_s is not None and spent.wall_s >= most.wall_s:
        limits.append(f"--wall {math.ceil(2 * most.wall_s / 60)}m")
    if most.gpu_s is not None and spent.gpu_s >= most.gpu_s:
        limits.append(f"--gpu-hours {2 * most.gpu_s / 3600:.6g}")
    return (f"It goes on where it is with: firstbad extend {bisection.id} {' '.join(limits) or '--probes …'}",)


def _of_budget(budget: Budget, spent: Spent) -> str:
    """Which part of it is spent, and what was in all."""
    parts = []
    if budget.wall_s is not None and spent.wall_s >= budget.wall_s:
        parts.append(f"{spoken(budget.wall_s)} of time")
    if budget.gpu_s is not None and spent.gpu_s >= budget.gpu_s:
        parts.append(f"{spoken(budget.gpu_s)} of GPUs")
    if budget.probes is not None and (spent.probes >= budget.probes or not parts):
        parts.append(f"{budget.probes} {'probe' if budget.probes == 1 else 'probes'}")
    return f"{_BUDGET} {' and '.join(parts)} is spent ({what_was_spent(spent)})"


def what_was_spent(spent: Spent) -> str:
    gpus = f", {spoken(spent.gpu_s)} of GPUs" if spent.gpu_s else ""
    return f"{spent.probes} {'probe' if spent.probes == 1 else 'probes'} in {spoken(spent.wall_s)}{gpus}"


def why_found(sha: str, probes: Sequence[Probe], confidence: float | None = None, said: str = "") -> str:
    """`confidence`: given for a flaky failure, whose answer stands on all runs together. `said`: what a person says."""
    if said:
        return f"bad at {short(sha)} {said}; and good at all of its parents"
    verdicts = [probe.verdict for probe in probes if probe.sha == sha and probe.verdict is not None]
    bad = sum(verdict is Verdict.BAD for verdict in verdicts)
    if confidence is None:
        return f"bad at {short(sha)} in {times(bad)}, and good at all of its parents"
    runs = sum(probe.verdict in (Verdict.GOOD, Verdict.BAD) for probe in probes)
    sure = f"{min(confidence, SUREST) * 100:.1f} %"
    return f"{sure} sure after {times(runs)} of the range; bad at {short(sha)} in {bad} of {times(len(verdicts))}"


def why_contradiction(why: str) -> str:
    return (
        f"{CONTRADICTION}: {why}. "
        "The failure may come and go along the range, or be flaky: then submit it with flaky: true"
    )


def why_suspects(why: str, probes: Sequence[Probe]) -> str:
    skipped = sum(probe.verdict is Verdict.SKIP for probe in probes)
    return f"{why} ({skipped} skipped)"


def merge_base_used(good: str, bad: str, base: str) -> str:
    return f"good {short(good)} is no ancestor of bad {short(bad)}; their merge base {short(base)} is used as good"


def headline(bisection: Bisection, answer: Sequence[Commit]) -> str:
    """One sentence for the top of a page or a comment."""
    if bisection.paused_at is not None and bisection.state in LIVE_BISECTIONS:
        stands = headline(replace(bisection, paused_at=None), answer)
        return f"Paused; {stands[:1].lower()}{stands[1:]}"
    match bisection.state:
        case BisectionState.FOUND:
            return f"{short(answer[0].sha)} is the first bad commit: {answer[0].subject}"
        case BisectionState.SUSPECTS if bisection.request.metric is not None and bisection.answer is not None:
            # Several commits may be to blame, or none by itself.
            return _sentence(bisection.answer.why)
        case BisectionState.SUSPECTS:
            return f"one of {count(len(answer), bisection.candidates_left):,} commits is the first bad one"
        case BisectionState.REFUSED | BisectionState.FAILED:
            return f"{str(bisection.state).capitalize()}: {bisection.problem.title if bisection.problem else ''}"
        case BisectionState.CANCELLED:
            return "Cancelled"
        case BisectionState.SEARCHING | BisectionState.CONFIRMING:
            return f"Searching: {bisection.candidates_left} of {bisection.candidates} candidates left"
        case BisectionState.CHECKING_ENDS:
            return "Checking that good is good and bad is bad"
        case BisectionState.PREPARING if bisection.request.recipe.resources.gpus and bisection.candidates:
            return "Preparing: waiting for a node with GPUs"
        case BisectionState.PREPARING if bisection.setup.survey.attempt:
            return "Preparing: waiting for a node that builds to say what it has"
        case BisectionState.QUEUED | BisectionState.PREPARING:
            return "Preparing: fetching the repository and looking up the commits"


def explanation(bisection: Bisection, commits: Mapping[str, Commit], more: Sequence[str] = ()) -> tuple[str, ...]:
    """Further lines below the headline. `more`: what is to be read before a list of suspects."""
    lines = list(bisection.notes)
    if bisection.paused_at is not None and bisection.state in LIVE_BISECTIONS:
        lines.append(
            f"Paused since {bisection.paused_at:%Y-%m-%d %H:%M} UTC: what runs goes on to its end, and nothing new is "
            f"begun until firstbad resume {bisection.id}."
        )
    if bisection.problem is not None:
        lines += [bisection.problem.detail, *([bisection.problem.advice] if bisection.problem.advice else [])]
    if bisection.answer is not None:
        lines += _answer_lines(bisection.state, bisection.answer, metric=bisection.request.metric is not None)
    lines += more
    if bisection.answer is not None and bisection.state is BisectionState.SUSPECTS:
        lines += _suspects(bisection, bisection.answer, commits)
    return tuple(lines)


def drifted(told: Sequence[str]) -> tuple[str, ...]:
    """About dependencies that differ between the first bad commit and its parent."""
    if not told:
        return ()
    return (
        f"It was run with other dependencies than its parent ({', '.join(told)}), so a dependency may be the cause; "
        "to tell, pin them with deps: {constraints: …}.",
    )


def _answer_lines(state: BisectionState, answer: Answer, *, metric: bool) -> list[str]:
    told = metric and state is BisectionState.SUSPECTS  # in the headline
    lines = [] if told else [f"{_sentence(answer.why)}."]
    if state is BisectionState.FOUND:
        if answer.confidence is None and not metric:
            lines.append(
                "This is certain only if the failure is not flaky; for one that is, submit it with flaky: true."
            )
        lines.append("A bisection may find the commit that exposed a fault rather than the one that holds it.")
    return lines


def _suspects(bisection: Bisection, answer: Answer, commits: Mapping[str, Commit]) -> list[str]:
    named = [f"{short(sha)} {commits[sha].subject if sha in commits else ''}".strip() for sha in answer.shas]
    told = shown(named, bisection.candidates_left, ranked=bisection.request.flaky)
    return [*told.first, *([told.gap] if told.gap else []), *told.last]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def times(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
