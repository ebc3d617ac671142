"""How a user sees the failure, and the control that must pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from service.application import checks
from service.application.ports import Policy
from service.application.submission import ControlForm, ServeForm, Submission
from service.domain.bisection import FailureIn, Reproduction, Serve
from service.domain.errors import BadRequest, TooLarge
from service.domain.recipe import Recipe

MOST_REPLACED = 50


def reproduction(submission: Submission, policy: Policy, failure_in: FailureIn, recipe: Recipe) -> Reproduction:
    """Errors: BadRequest, TooLarge."""
    if failure_in is FailureIn.BUILD:
        _only_a_build(submission, recipe)
    else:
        _one_of(submission.script, submission.serve, submission.check, "")
    return Reproduction(
        script=checks.script(submission.script, "script", policy),
        serve=_serve(submission.serve, policy, "serve"),
        check=checks.script(submission.check, "check", policy),
        failure=checks.line(submission.failure, "failure") if submission.failure is not None else None,
    )


def _one_of(script: str | None, serve: ServeForm | None, check: str | None, inside: str) -> None:
    if (script is None) == (serve is None):
        raise BadRequest(
            f"exactly one of {inside}script and {inside}serve is needed",
            field=f"{inside}script",
            advice="give script: to run it as `git bisect run` would, or serve: for a server that must get ready",
        )
    if check is not None and serve is None:
        advice = f"put it into {inside}script:, or add {inside}serve:"
        raise BadRequest(f"{inside}check runs beside a server", field=f"{inside}check", advice=advice)


def _only_a_build(submission: Submission, recipe: Recipe) -> None:
    given = {name: getattr(submission, name) is not None for name in ("script", "serve", "check", "control")}
    for name, is_given in {**given, "metric": bool(submission.metrics)}.items():
        if is_given:
            raise BadRequest(
                f"{name} is given, but with failure_in: build nothing is run: the build itself is the reproduction",
                field=name,
                advice=f"leave {name} out, or leave failure_in out when the failure shows in a run",
            )
    if recipe.build_command is None:
        raise BadRequest(
            f"failure_in: build needs a build, and the recipe {recipe.name} has none",
            value=FailureIn.BUILD,
            field="failure_in",
            advice="add build: with the command that fails, or name another project:",
        )


def _serve(form: ServeForm | None, policy: Policy, name: str) -> Serve | None:
    if form is None:
        return None
    if form.ready_http is not None and not form.ready_http.startswith("/"):
        raise BadRequest(
            f"{name}.ready.http must be a path: {form.ready_http!r}",
            value=form.ready_http,
            field=f"{name}.ready.http",
            advice="write it like /health",
        )
    port = form.port if form.port is not None else Serve.port
    if not 1 <= port <= 65535:
        raise BadRequest(
            f"{name}.port: {port} is no port",
            value=str(port),
            field=f"{name}.port",
            advice="name the one that the command listens on, 1 to 65535",
        )
    return Serve(
        command=checks.script(form.command, f"{name}.command", policy) or "",
        ready_http=form.ready_http if form.ready_http or form.ready_log else "/health",
        ready_log=form.ready_log,
        within_s=checks.duration(form.within if form.within is not None else "20m", f"{name}.ready.within"),
        port=port,
    )


def control(form: ControlForm | None, reproduction: Reproduction, policy: Policy) -> Reproduction | None:
    """Written out in full. Errors: BadRequest, TooLarge."""
    if form is None:
        return None
    own = [name for name in ("script", "serve", "check") if getattr(form, name) is not None]
    if form.replace is not None and own:
        raise BadRequest(
            f"control has both replace and {own[0]}",
            field=f"control.{own[0]}",
            advice="give replace: to change texts of the reproduction, or a reproduction of its own",
        )
    if form.replace is not None:
        return _replaced(form.replace, reproduction, policy)
    _one_of(form.script, form.serve, form.check, "control.")
    return Reproduction(
        script=checks.script(form.script, "control.script", policy),
        serve=_serve(form.serve, policy, "control.serve"),
        check=checks.script(form.check, "control.check", policy),
    )


def _replaced(texts: Mapping[str, str], reproduction: Reproduction, policy: Policy) -> Reproduction:
    """All at once, the longest first, so that what one text put in is not replaced by another."""
    for old, new in texts.items():
        if not old or old == new:
            raise _bad_replace(f"{old[:80]!r} is replaced by itself" if old else "an empty text is replaced", old)
        checks.text(f"{new}.", "control.replace")
    if not 0 < len(texts) <= MOST_REPLACED:
        raise _bad_replace(f"{len(texts)} texts are replaced, not 1 to {MOST_REPLACED}", str(len(texts)))
    used: set[str] = set()

    def changed(written: str | None) -> str | None:
        return _with(texts, written, used, policy) if written is not None else None

    serve = reproduction.serve
    made = replace(
        reproduction,
        script=changed(reproduction.script),
        serve=replace(serve, command=changed(serve.command) or "") if serve is not None else None,
        check=changed(reproduction.check),
    )
    for old in texts:
        if old not in used:
            raise _bad_replace(f"{old[:80]!r} is nowhere in script, serve.command or check", old)
    if made == reproduction:
        raise _bad_replace("the texts are only put in each other's places, and nothing changes", "")
    return made


def _with(texts: Mapping[str, str], written: str, used: set[str], policy: Policy) -> str:
    """`used`: the texts that are in it are added. Errors: TooLarge, before anything as large is made."""
    found = list(_found(tuple(texts), written))
    times = Counter(old for _, old in found)
    grown = {old: times[old] * (_size(texts[old]) - _size(old)) for old in times}
    size = _size(written) + sum(grown.values())
    if size > policy.script_bytes:
        old = max(grown, key=grown.__getitem__)
        raise TooLarge(
            f"control.replace: {old[:80]!r} stands in {times[old]} places, and with what is put there the control has "
            f"{size} bytes, more than {policy.script_bytes}",
            value=str(size),
            field=f"control.replace.{old[:80]}",
            advice="replace a longer text, that stands in fewer places, or put less in its place",
        )
    used.update(times)
    pieces: list[str] = []
    at = 0
    for place, old in found:
        pieces += (written[at:place], texts[old])
        at = place + len(old)
    return "".join([*pieces, written[at:]])


def _found(texts: Sequence[str], written: str) -> Iterator[tuple[int, str]]:
    """One after another, and of those in the same place the longest. A pattern of all texts would try each of them in
    each place."""
    places = ((written.find(old), -len(old), old) for old in texts)
    waiting = [each for each in places if each[0] >= 0]
    heapify(waiting)
    at = 0
    while waiting:
        place, length, old = waiting[0]
        if place >= at:
            yield place, old
            at = place + len(old)
        following = written.find(old, at)
        if following < 0:
            heappop(waiting)
        else:
            heapreplace(waiting, (following, length, old))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _bad_replace(what: str, value: str) -> BadRequest:
    advice = "write replace: {text of the reproduction: what the control has in its place}; --dry-run shows the text"
    return BadRequest(f"control.replace: {what}", value=value, field="control.replace", advice=advice)
