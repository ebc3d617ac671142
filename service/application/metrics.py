"""The numbers that a request asks for: how each is found, which of them decides, and how often it is measured."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

import re2

from service.application import checks, json_paths
from service.application.submission import CsvForm, MeasuringForm, MetricForm, Submission
from service.domain.errors import BadRequest
from service.domain.metric import Aggregate, Better, Column, Measuring, Metric
from service.domain.readers import Number, Reader, key
from service.domain.threshold import threshold

MOST_METRICS = 20
LONGEST_PATTERN = 1000
LONGEST_NAME, LONGEST_UNIT = 200, 40
MOST_WHERE = 10
MOST_WARMUP = 10
LEAST_RUNS, MOST_RUNS = 4, 200
LEAST_RECHECK, MOST_RECHECK = 2, 100
_WAYS = ("pattern", "json", "csv", "reader")
#: What is known of a number that no reader tells of.
_NOTHING = Number("")


def metrics(submission: Submission, readers: Sequence[Reader]) -> tuple[Metric, ...]:
    """The one that decides first. Errors: BadRequest, also for a key that a number leaves without a meaning."""
    forms = submission.metrics
    if not forms:
        return ()
    if len(forms) > MOST_METRICS:
        what, advice = f"there are {len(forms)} metrics, more than {MOST_METRICS}", "measure fewer numbers at once"
        raise BadRequest(what, value=str(len(forms)), field="metric", advice=advice)
    _alone(submission)
    made = [_metric(form, readers) for form in forms]
    _names_differ(forms, made)
    first = _decider(forms)
    return (made[first], *made[:first], *made[first + 1 :])


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


def _names_differ(forms: Sequence[MetricForm], made: Sequence[Metric]) -> None:
    seen: set[str] = set()
    for form, metric in zip(forms, made, strict=True):
        if metric.name in seen:
            field = f"{form.at}.name" if form.name is not None else form.at
            what = f"{field}: two metrics are called {metric.name[:80]!r}"
            raise BadRequest(what, value=metric.name, field=field, advice="give each a name: of its own")
        seen.add(metric.name)


def _decider(forms: Sequence[MetricForm]) -> int:
    deciding = [place for place, form in enumerate(forms) if form.decides]
    if len(deciding) > 1:
        field = f"{forms[deciding[1]].at}.decides"
        what = f"{field}: {len(deciding)} metrics are to decide"
        advice = "let one decide; the others are measured beside it, and shown"
        raise BadRequest(what, value="true", field=field, advice=advice)
    return deciding[0] if deciding else 0


def _metric(form: MetricForm, readers: Sequence[Reader]) -> Metric:
    _one_way(form)
    reader = _reader(form, readers)
    number = _number(form, reader) if reader is not None else _own(form)
    better = checks.enum(Better, form.better, f"{form.at}.better") or number.better
    if better is None:
        what = f"{form.at}.better is missing{f': {reader.name} prints numbers of both kinds' if reader else ''}"
        raise BadRequest(what, field=f"{form.at}.better", advice="add better: higher, or better: lower")
    return Metric(
        better=better,
        pattern=number.pattern,
        json_path=number.json_path,
        csv=number.csv,
        name=number.name,
        unit=_short(form.unit, f"{form.at}.unit", LONGEST_UNIT) if form.unit is not None else number.unit,
        unit_path=number.unit_path,
        reader=reader.name if reader is not None else "",
        aggregate=checks.enum(Aggregate, form.aggregate, f"{form.at}.aggregate") or number.aggregate,
        threshold=threshold(form.threshold or "auto", better, field=f"{form.at}.threshold"),
    )


def _one_way(form: MetricForm) -> None:
    given = [way for way in _WAYS if getattr(form, way) is not None]
    if len(given) != 1:
        field = f"{form.at}.{given[1]}" if given else form.at
        advice = (
            "give pattern: with a regular expression, json: with a JSONPath, csv: with a column, or reader: with a tool"
        )
        raise BadRequest(f"{form.at}: exactly one of {', '.join(_WAYS)} is needed", field=field, advice=advice)
    if form.unit_path is not None and form.json is None:
        what = f"{form.at}.unit_path is given, but no json"
        advice = "a pattern names the unit by a group, (?P<unit>…); elsewhere write unit: with what the number is in"
        raise BadRequest(what, value=form.unit_path, field=f"{form.at}.unit_path", advice=advice)


def _own(form: MetricForm) -> Number:
    """As the request itself finds it."""
    at = form.at
    return replace(
        _NOTHING,
        name=_short(form.name, f"{at}.name", LONGEST_NAME) if form.name is not None else Metric.name,
        pattern=_pattern(form.pattern, f"{at}.pattern") if form.pattern is not None else None,
        json_path=_json_path(form.json, f"{at}.json") if form.json is not None else None,
        unit_path=_json_path(form.unit_path, f"{at}.unit_path") if form.unit_path is not None else None,
        csv=_column(form.csv, f"{at}.csv") if form.csv is not None else None,
    )


def _reader(form: MetricForm, readers: Sequence[Reader]) -> Reader | None:
    if form.reader is None:
        return None
    known = {key(each.name): each for each in readers}
    found = known.get(key(form.reader))
    if found is None:
        near = difflib.get_close_matches(key(form.reader), known, n=1)
        names = ", ".join(each.name for each in readers)
        advice = f"did you mean {known[near[0]].name!r}? Known are: {names}" if near else f"known are: {names}"
        what = f"{form.at}.reader: there is no reader {form.reader[:80]!r}"
        raise BadRequest(what, value=form.reader, field=f"{form.at}.reader", advice=advice)
    return found


def _number(form: MetricForm, reader: Reader) -> Number:
    names = ", ".join(dict.fromkeys(each.name for each in reader.numbers))
    advice = f"those of {reader.name} are: {names}"
    if form.name is None:
        what = f"{form.at}.name is missing: which number of {reader.name}?"
        raise BadRequest(what, field=f"{form.at}.name", advice=advice)
    field = f"{form.at}.name"
    found = reader.number(_short(form.name, field, LONGEST_NAME))
    if found is None:
        what = f"{field}: {reader.name} prints no number {form.name[:80]!r}"
        raise BadRequest(what, value=form.name, field=field, advice=advice)
    if found.json_path is not None:
        _json_path(found.json_path, field)
    return found


def _short(written: str, field: str, most: int) -> str:
    text = checks.line(written, field)
    if len(text) > most:
        what = f"{field} has {len(text)} characters, more than {most}"
        raise BadRequest(what, value=text, field=field, advice="write less of it")
    return text


def _pattern(written: str, field: str) -> str:
    checks.text(written, field)
    if len(written) > LONGEST_PATTERN:
        raise _bad_pattern(f"has more than {LONGEST_PATTERN} characters", written, field)
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(f"(?m){written}".encode(), options)
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace").replace(": (?m)", ": ")
        raise _bad_pattern(f"is no regular expression that RE2 takes: {said}", written, field) from None
    names = {name.decode() if isinstance(name, bytes) else name for name in compiled.groupindex}
    if names - {"value", "unit"}:
        raise _bad_pattern(f"has a group {min(names - {'value', 'unit'})!r}", written, field)
    if compiled.groups > (len(names) if "value" in names else len(names) + 1):
        raise _bad_pattern(f"has {compiled.groups} groups, so that it is not clear which is the number", written, field)
    if names == {"unit"} and compiled.groups == 1:
        raise _bad_pattern("has a group for the unit, and none for the number", written, field)
    return written


def _bad_pattern(what: str, written: str, field: str) -> BadRequest:
    advice = (
        "put one group around the number: 'throughput: +([0-9.]+)', or two with names: (?P<value>[0-9.]+) "
        "(?P<unit>[a-z/]+); (?:…) is no group, and nothing may look around"
    )
    return BadRequest(f"{field}: {written[:80]!r} {what}", value=written, field=field, advice=advice)


def _json_path(written: str, field: str) -> str:
    checks.text(written, field)
    if wrong := json_paths.wrong(written):
        what = f"{field}: {written[:80]!r} cannot be used as a JSONPath: {wrong}"
        raise BadRequest(what, value=written, field=field, advice="write it like $.results[0].throughput")
    return written


def _column(form: CsvForm, field: str) -> Column:
    if len(form.where) > MOST_WHERE:
        what = f"{field}.where names {len(form.where)} columns, more than {MOST_WHERE}"
        raise BadRequest(what, value=str(len(form.where)), field=f"{field}.where", advice="choose the row by fewer")
    for column, value in form.where.items():
        checks.line(column, f"{field}.where")
        if "\0" in value:
            checks.text(value, f"{field}.where.{column}")
    return Column(_short(form.column, field, LONGEST_NAME), {name.strip(): text for name, text in form.where.items()})


def measuring(submission: Submission, *, served: bool) -> Measuring:
    """`served`: a server is warmed up once, unless the request says otherwise. Errors: BadRequest."""
    form = submission.measuring
    if not submission.metrics:
        if form is not None:
            advice = "add metric: with the number, or leave measuring out"
            raise BadRequest("measuring is given, but nothing is measured", field="measuring", advice=advice)
        return Measuring()
    form = form or MeasuringForm()
    usual = Measuring(warmup=1 if served else 0)
    return Measuring(
        warmup=_within(
            form.warmup, usual.warmup, "warmup", 0, MOST_WARMUP, "runs of the check before the one that counts"
        ),
        runs=_within(form.runs, usual.runs, "runs", LEAST_RUNS, MOST_RUNS, "runs of each end at most"),
        recheck=_recheck(form.recheck, usual.recheck),
    )


def _recheck(number: int | None, usual: int) -> int:
    if number == 0:
        return 0
    meaning = "measured commits after which an end is measured again; 0 is never"
    return _within(number, usual, "recheck", LEAST_RECHECK, MOST_RECHECK, meaning)


def _within(number: int | None, usual: int, name: str, least: int, most: int, meaning: str) -> int:
    if number is None:
        return usual
    if not least <= number <= most:
        raise BadRequest(
            f"measuring.{name}: {str(number)[:40]} is not between {least} and {most}",
            value=str(number)[:40],
            field=f"measuring.{name}",
            advice=f"it is the number of {meaning}",
        )
    return number
