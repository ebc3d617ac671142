"""A request as a document again, and what somebody changes in it: the way from one bisection to another like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain import refs
from service.domain.bisection import Reproduction, Request, Serve
from service.domain.budget import Budget
from service.domain.metric import Metric, Threshold
from service.domain.recipe import Fixup, Recipe, Resources

#: What a script stands in the place of, and what stands in the place of one.
_INSTEAD = {"script": ("serve", "check"), "serve": ("script",)}


def document(request: Request, recipes: Mapping[str, Recipe]) -> dict[str, Any]:
    """Begun from it, a request is the same; where its recipe has changed since, what only recipes say is as it is now.
    It holds what the request does: a password in an address, too."""
    recipe, made = request.recipe, request.reproduction
    deps = {"as_of": recipe.deps.as_of, "constraints": recipe.deps.constraints or None}
    return _given(
        project=recipe.name,
        repo=request.repo,
        good=list(request.good),
        bad=request.bad,
        build=recipe.build_command,
        image=recipe.image,
        network=recipe.network,
        env=dict(recipe.env) or None,
        **_reproduction(made),
        failure=made.failure,
        sandbox=str(request.sandbox),
        width=request.width,
        first_parent=request.first_parent,
        flaky=request.flaky,
        timeout=request.timeout_s,
        hang="bad" if request.hang_is_bad else None,
        package=recipe.package,
        wheel_paths=list(recipe.wheel_paths),
        native_paths=list(recipe.native_paths),
        overlay=recipe.overlay_command,
        deps=_given(**deps) or None,
        fixups=[_fixup(fixup) for fixup in _own_fixups(recipe, recipes.get(recipe.name))] or None,
        failure_in=str(request.failure_in),
        control=_reproduction(request.control) if request.control is not None else None,
        other_failures=str(request.other_failures),
        metric=[_metric(metric) for metric in (request.metric, *request.other_metrics) if metric is not None] or None,
        measuring=_measuring(request),
        resources=_resources(recipe.resources),
        secrets=list(recipe.secrets) or None,
        model_cache=str(recipe.model_cache),
        priority=str(request.priority),
        budget=_budget(request.budget) or None,
        pasted=False,
    )


def changed(written: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """With the changes merged in: null takes a key out (RFC 7396), and what cannot stand beside a key that is given
    goes with it."""
    gone = {name for key, names in _INSTEAD.items() if changes.get(key) is not None for name in names}
    if _is_pair(changes.get("good")):
        gone.add("bad")
    # A new script may be pasted; the old one was taken apart already.
    gone |= {"pasted"} if changes.get("script") is not None else set()
    kept = {key: value for key, value in written.items() if key not in gone or key in changes}
    if changes.get("metric") is not None:
        # A list is named as a whole.
        kept.pop("metric", None)
    return _merged(kept, changes)


def _merged(kept: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(kept)
    for key, value in changes.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = _merged(made[key], value)
        else:
            made[key] = value
    return made


def _is_pair(good: object) -> bool:
    return isinstance(good, str) and isinstance(refs.read(good).form, refs.Pair)


def _given(**parts: object) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part is not None}


def _reproduction(made: Reproduction) -> dict[str, Any]:
    return _given(script=made.script, serve=_serve(made.serve) if made.serve is not None else None, check=made.check)


def _serve(serve: Serve) -> dict[str, Any]:
    ready = _given(http=serve.ready_http, log=serve.ready_log, within=serve.within_s)
    return {"command": serve.command, "ready": ready, "port": serve.port}


def _own_fixups(recipe: Recipe, named: Recipe | None) -> tuple[Fixup, ...]:
    """Without those of the recipe, which come by themselves."""
    first = named.fixups if named is not None else ()
    return recipe.fixups[len(first) :] if recipe.fixups[: len(first)] == first else recipe.fixups


def _fixup(fixup: Fixup) -> dict[str, Any]:
    return _given(range=fixup.range, cherry_pick=fixup.cherry_pick, patch=fixup.patch)


def _metric(metric: Metric) -> dict[str, Any]:
    found = {} if metric.reader else {"pattern": metric.pattern, "json": metric.json_path}
    column = None if metric.reader or metric.csv is None else {"column": metric.csv.name, "where": metric.csv.where}
    return _given(
        reader=metric.reader or None,
        **found,
        csv=column,
        name=metric.name,
        better=str(metric.better),
        unit=metric.unit or None,
        unit_path=None if metric.reader else metric.unit_path,
        threshold=_threshold(metric.threshold),
        aggregate=str(metric.aggregate) if metric.aggregate is not None else None,
    )


def _threshold(least: Threshold | None) -> str:
    if least is None:
        return "auto"
    # Of a share that was written in per cent; seventeen digits are all that there are.
    return f"{least.value * 100:.15g}%" if least.relative else repr(least.value)


def _measuring(request: Request) -> dict[str, Any] | None:
    asked = request.measuring
    if request.metric is None:
        return None
    return {"warmup": asked.warmup, "runs": asked.runs, "recheck": asked.recheck}


def _resources(wanted: Resources) -> dict[str, Any]:
    return _given(
        gpus=wanted.gpus,
        gpu=wanted.gpu,
        shm=wanted.shm_bytes,
        memory=wanted.memory_bytes,
        cpus=wanted.cpus,
        pids=wanted.pids,
        cpuset=wanted.cpuset,
        numa=wanted.numa,
        labels=list(wanted.labels) or None,
        models=list(wanted.models) or None,
    )


def _budget(most: Budget) -> dict[str, Any]:
    # In hours, of which a request takes nine digits behind the point.
    hours = round(most.gpu_s / 3600, 9) if most.gpu_s is not None else None
    return _given(probes=most.probes, wall=most.wall_s, gpu_hours=f"{hours:.9f}" if hours is not None else None)
