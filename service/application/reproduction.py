"""How a user sees the failure, and what is asked of it besides: a control that must pass, a number that got worse."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from typing import Any

import re2
from jsonpath_ng import Fields, Index, JSONPath, Root
from jsonpath_ng.ext.arithmetic import Operation
from jsonpath_ng.ext.filter import Expression
from jsonpath_ng.ext.parser import parse as parse_json_path

from service.application import checks
from service.application.ports import Policy
from service.application.submission import ControlForm, MetricForm, ServeForm, Submission
from service.domain.bisection import FailureIn, Reproduction, Serve
from service.domain.errors import BadRequest, TooLarge
from service.domain.metric import Better, Metric
from service.domain.recipe import Recipe

LONGEST_PATTERN = 1000
MOST_REPLACED = 50
#: What workers refuse: filters that run Python's regular expressions, which may take for ever.
_ENDLESS = re.compile(r"=~|\bsub\(|\bsplit\(")
_AGAIN = ("Parent", "Union", "_Union")


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
    for name in ("script", "serve", "check", "control", "metric"):
        if getattr(submission, name) is not None:
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


def metric(form: MetricForm | None, submission: Submission) -> Metric | None:
    """Errors: BadRequest, also for a key that a number leaves without a meaning."""
    if form is None:
        return None
    if (form.pattern is None) == (form.json is None):
        advice = "give pattern: with a regular expression, or json: with a JSONPath"
        raise BadRequest("metric: exactly one of pattern and json is needed", field="metric", advice=advice)
    _alone(submission)
    return Metric(
        better=checks.enum(Better, form.better, "metric.better") or Better.HIGHER,
        pattern=_pattern(form.pattern) if form.pattern is not None else None,
        json_path=_json_path(form.json) if form.json is not None else None,
    )


def _alone(submission: Submission) -> None:
    beside = {
        "flaky": (submission.flaky, "a number is measured again until it is sure enough by itself"),
        "hang": (submission.hang == "bad", "a run that gives no number is a skip"),
        "failure": (submission.failure is not None, "the number decides, and not what is printed"),
        "control": (submission.control is not None, "the number decides, and no failure that a control could share"),
    }
    for name, (is_given, why) in beside.items():
        if is_given:
            what = f"{name} is given beside metric: {why}"
            raise BadRequest(what, field=name, advice=f"leave {name} out, or leave metric out")


def _pattern(written: str) -> str:
    checks.text(written, "metric.pattern")
    if len(written) > LONGEST_PATTERN:
        raise _bad_pattern(f"has more than {LONGEST_PATTERN} characters", written)
    options = re2.Options()
    options.log_errors = False
    try:
        groups = re2.compile(written.encode(), options).groups
    except re2.error as error:
        what = f"is no regular expression that RE2 takes: {error.args[0].decode()}"
        raise _bad_pattern(what, written) from None
    if groups > 1:
        raise _bad_pattern(f"has {groups} groups", written)
    return written


def _bad_pattern(what: str, written: str) -> BadRequest:
    advice = "put one group around the number: 'throughput: +([0-9.]+)'; (?:…) is no group, and nothing may look around"
    return BadRequest(f"metric.pattern: {written[:80]!r} {what}", value=written, field="metric.pattern", advice=advice)


def _json_path(written: str) -> str:
    checks.text(written, "metric.json")
    wrong = _wrong_json_path(written)
    if wrong:
        what = f"metric.json: {written[:80]!r} cannot be used as a JSONPath: {wrong}"
        raise BadRequest(what, value=written, field="metric.json", advice="write it like $.results[0].throughput")
    return written


def _wrong_json_path(written: str) -> str:
    """By the rules that workers keep to, which would refuse it only when its first run is over."""
    if len(written) > LONGEST_PATTERN:
        return f"it has more than {LONGEST_PATTERN} characters"
    if written.count("..") > 1:
        return "it has .. more than once, which may take for ever"
    if _ENDLESS.search(written):
        return "it has =~, sub or split, whose regular expressions may take for ever"
    try:
        dear = _dear(parse_json_path(written))
    except Exception as error:  # noqa: BLE001 the library raises what it comes to, which is the request's fault
        return str(error)[:200] or type(error).__name__
    why = "it has a product, `parent`, |, $ or + behind something, or two indices: it may find more than memory holds"
    return why if dear else ""


def _dear(part: Any, first: bool = True) -> bool:
    """Whether what it finds may be more than the document holds: things that are found again and again, and products
    and sums of sums, of which a text may be larger than memory. `first`: it is asked once, and not of each match."""
    if isinstance(part, list | tuple):
        return any(_dear(each, False) for each in part)
    again = isinstance(part, Operation) and part.op is operator.mul or type(part).__name__ in _AGAIN
    if again or (isinstance(part, Root | Operation) and not first):
        return True
    if isinstance(part, Index) and len(part.indices) > 1 or isinstance(part, Fields) and _twice(part.fields):
        return True
    if not isinstance(part, JSONPath | Expression):
        return False
    once = {"left": first, "right": first and isinstance(part, Operation), "value": True}
    return any(_dear(each, once.get(name, False)) for name, each in vars(part).items())


def _twice(names: tuple[str, ...]) -> bool:
    return len(set(names)) < len(names)
