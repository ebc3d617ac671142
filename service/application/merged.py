"""The named recipe, with what the request has in the place of its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from service.application import checks
from service.application.ports import Policy
from service.application.submission import ResourcesForm, Submission
from service.domain.errors import BadRequest
from service.domain.recipe import BRIDGE, NO_NETWORK, Deps, Fixup, ModelCache, Recipe, Resources
from service.domain.recipe_rules import Flaw, first_flaw
from service.domain.size import size

DEFAULT_RECIPE = "python"
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
#: A recipe's keys that a request calls by shorter names.
_SHORTER = {"build_command": "build", "overlay_command": "overlay"}
#: What each way to see the models allows besides itself.
_LESS = {
    ModelCache.NONE: (),
    ModelCache.READ_ONLY: (ModelCache.NONE,),
    ModelCache.SHARED: (ModelCache.NONE, ModelCache.READ_ONLY),
}


def recipe(submission: Submission, recipes: Mapping[str, Recipe], policy: Policy) -> Recipe:
    """The request's own fix-ups come behind the recipe's, and its secrets join them. Errors: BadRequest, TooLarge."""
    named = _named(submission, recipes)
    fixups = tuple(_fixup(place, fixup, policy) for place, fixup in enumerate(submission.fixups))
    merged = replace(
        named,
        build_command=checks.given(submission.build, named.build_command, "build"),
        image=checks.given(submission.image, named.image, "image"),
        network=_network(submission.network, named),
        env={**named.env, **_env(submission.env)},
        package=checks.given(submission.package, named.package, "package"),
        wheel_paths=_paths(submission.wheel_paths, named.wheel_paths, "wheel_paths"),
        native_paths=_paths(submission.native_paths, named.native_paths, "native_paths"),
        overlay_command=checks.given(submission.overlay, named.overlay_command, "overlay"),
        deps=Deps(
            as_of=checks.given(submission.as_of, named.deps.as_of, "deps.as_of"),
            constraints=checks.script(submission.constraints, "deps.constraints", policy) or named.deps.constraints,
        ),
        fixups=named.fixups + fixups,
        resources=_resources(submission.resources, named.resources),
        secrets=tuple(dict.fromkeys((*named.secrets, *submission.secrets))),
        model_cache=_model_cache(submission.model_cache, named),
    )
    if (flaw := first_flaw(merged)) is not None:
        raise _bad_request(flaw, named)
    return merged


def _bad_request(flaw: Flaw, named: Recipe) -> BadRequest:
    """In the words of a request, whose fix-ups and secrets are counted without those of the recipe."""
    first, *rest = flaw.where
    if first == "fixups" and rest:
        rest[0] = int(rest[0]) - len(named.fixups)
    if first == "secrets" and rest:
        first, rest = _secret(int(rest[0]) - len(dict.fromkeys(named.secrets)))
    field, what, advice = ".".join(map(str, [first, *rest])), flaw.what, flaw.advice
    for name, shorter in _SHORTER.items():
        field, what, advice = (text.replace(name, shorter) for text in (field, what, advice))
    return BadRequest(what, value=flaw.value, field=field, advice=advice)


def _secret(place: int) -> tuple[str, list[str | int]]:
    """What is wrong with one of the recipe's can only come of the request's `env`."""
    return ("secrets", [place]) if place >= 0 else ("env", [])


def _named(submission: Submission, recipes: Mapping[str, Recipe]) -> Recipe:
    name = submission.project or DEFAULT_RECIPE
    if name not in recipes:
        known = ", ".join(sorted(recipes))
        raise BadRequest(f"there is no recipe {name!r}", value=name, field="project", advice=f"known are: {known}")
    return recipes[name]


def _paths(written: tuple[str, ...] | None, otherwise: tuple[str, ...], name: str) -> tuple[str, ...]:
    if written is None:
        return otherwise
    return tuple(checks.text(pattern, f"{name}.{place}") for place, pattern in enumerate(written))


def _fixup(place: int, fixup: Fixup, policy: Policy) -> Fixup:
    name = f"fixups.{place}"
    return Fixup(
        range=checks.text(fixup.range, f"{name}.range"),
        cherry_pick=checks.given(fixup.cherry_pick, None, f"{name}.cherry_pick"),
        patch=checks.script(fixup.patch, f"{name}.patch", policy),
    )


def _network(written: str | None, named: Recipe) -> str:
    """A network of the nodes is reached by a request only where the operator's recipe names it."""
    allowed = tuple(dict.fromkeys((NO_NETWORK, BRIDGE, named.network)))
    return checks.choice(written, allowed, "network") or named.network


def _env(env: Mapping[str, str]) -> dict[str, str]:
    for key, value in env.items():
        if not _VARIABLE.fullmatch(key):
            raise BadRequest(f"env: {key!r} is no variable", value=key, field="env", advice="use letters, digits and _")
        if "\0" in value:
            raise BadRequest(f"env: {key} holds a NUL byte", value=key, field="env", advice="leave the byte out")
    return dict(env)


def _resources(form: ResourcesForm, named: Resources) -> Resources:
    """Key by key; labels and models join the recipe's. Without GPUs it does not matter which ones the recipe wants; a
    request that names CPUs in one way is not held to the recipe's other way."""
    gpus = form.gpus if form.gpus is not None else named.gpus
    return Resources(
        gpus=gpus,
        gpu=checks.given(form.gpu, named.gpu if gpus else None, "resources.gpu"),
        shm_bytes=_bytes(form.shm, named.shm_bytes, "resources.shm"),
        memory_bytes=_bytes(form.memory, named.memory_bytes, "resources.memory"),
        cpus=form.cpus if form.cpus is not None else named.cpus,
        pids=form.pids if form.pids is not None else named.pids,
        cpuset=checks.given(form.cpuset, named.cpuset if form.numa is None else None, "resources.cpuset"),
        numa=form.numa if form.numa is not None or form.cpuset is not None else named.numa,
        labels=tuple(dict.fromkeys((*named.labels, *form.labels))),
        models=tuple(dict.fromkeys((*named.models, *form.models))),
    )


def _bytes(written: str | float | None, otherwise: int | None, name: str) -> int | None:
    return size(written, field=name) if written is not None else otherwise


def _model_cache(written: str | None, named: Recipe) -> ModelCache:
    """A request may see less of the nodes' models than the recipe allows, never more."""
    chosen = checks.enum(ModelCache, written, "model_cache") or named.model_cache
    if chosen is not named.model_cache and chosen not in _LESS[named.model_cache]:
        allowed = ", ".join((*_LESS[named.model_cache], named.model_cache))
        raise BadRequest(
            f"model_cache: {str(chosen)!r} is more than the recipe {named.name} allows, which is {named.model_cache}",
            value=chosen,
            field="model_cache",
            advice=f"write {allowed}; more is the operator's to allow, in the recipe",
        )
    return chosen
