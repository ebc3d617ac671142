"""A submission, as a user wrote it, made into a complete request, or refused with what is wrong about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from service.application.ports import Policy
from service.domain.bisection import FailureIn, Reproduction, Request, Serve
from service.domain.duration import seconds
from service.domain.errors import BadRequest, TooLarge
from service.domain.recipe import Deps, Fixup, Recipe, SandboxKind
from service.domain.recipe_rules import Flaw, first_flaw

DEFAULT_RECIPE = "python"
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
#: A recipe's keys that a request calls by shorter names.
_SHORTER = {"build_command": "build", "overlay_command": "overlay"}
T = TypeVar("T")
E = TypeVar("E", SandboxKind, FailureIn)


@dataclass(frozen=True)
class ServeForm:
    command: str
    ready_http: str | None = None
    ready_log: str | None = None
    within: str | float | None = None


@dataclass(frozen=True)
class Submission:
    """As the user wrote it; None takes the recipe's or the service's default. docs/requests.md tells each key."""

    good: tuple[str, ...]
    bad: str
    project: str | None = None
    repo: str | None = None
    build: str | None = None
    image: str | None = None
    network: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    serve: ServeForm | None = None
    check: str | None = None
    failure: str | None = None
    sandbox: str | None = None
    width: int | None = None
    first_parent: bool = False
    timeout: str | float | None = None
    hang: str | None = None
    flaky: bool = False
    package: str | None = None
    wheel_paths: tuple[str, ...] | None = None
    native_paths: tuple[str, ...] | None = None
    overlay: str | None = None
    as_of: str | None = None
    constraints: str | None = None
    fixups: tuple[Fixup, ...] = ()
    failure_in: str | None = None


def complete(submission: Submission, recipes: Mapping[str, Recipe], policy: Policy) -> Request:
    """Errors: BadRequest, TooLarge; each names the field."""
    failure_in = _enum(FailureIn, submission.failure_in, "failure_in") or FailureIn.RUN
    recipe = _recipe(submission, recipes, policy)
    sandbox = _sandbox(submission, recipe, policy)
    return Request(
        repo=_repo(submission),
        good=_refs(submission.good),
        bad=_text(submission.bad, "bad"),
        reproduction=_reproduction(submission, policy, failure_in, recipe),
        recipe=recipe,
        sandbox=sandbox,
        width=_width(submission, policy),
        first_parent=submission.first_parent,
        timeout_s=seconds(submission.timeout if submission.timeout is not None else 3600, field="timeout"),
        hang_is_bad=_choice(submission.hang, ("skip", "bad"), "hang") == "bad",
        flaky=submission.flaky,
        failure_in=failure_in,
    )


def _recipe(submission: Submission, recipes: Mapping[str, Recipe], policy: Policy) -> Recipe:
    """The named one, with what the request has in the place of its keys, and its own fix-ups behind the recipe's."""
    named = _named(submission, recipes)
    fixups = tuple(_fixup(place, fixup, policy) for place, fixup in enumerate(submission.fixups))
    recipe = replace(
        named,
        build_command=_given(submission.build, named.build_command, "build"),
        image=_given(submission.image, named.image, "image"),
        network=_given(submission.network, named.network, "network"),
        env={**named.env, **_env(submission.env)},
        package=_given(submission.package, named.package, "package"),
        wheel_paths=_paths(submission.wheel_paths, named.wheel_paths, "wheel_paths"),
        native_paths=_paths(submission.native_paths, named.native_paths, "native_paths"),
        overlay_command=_given(submission.overlay, named.overlay_command, "overlay"),
        deps=Deps(
            as_of=_given(submission.as_of, named.deps.as_of, "deps.as_of"),
            constraints=_script(submission.constraints, "deps.constraints", policy) or named.deps.constraints,
        ),
        fixups=named.fixups + fixups,
    )
    if (flaw := first_flaw(recipe)) is not None:
        raise _bad_request(flaw, len(named.fixups))
    return recipe


def _bad_request(flaw: Flaw, fixups_before: int) -> BadRequest:
    """In the words of a request, whose fix-ups are counted without those of the recipe."""
    first, *rest = flaw.where
    if first == "fixups" and rest:
        rest[0] = int(rest[0]) - fixups_before
    field, what, advice = ".".join(map(str, [first, *rest])), flaw.what, flaw.advice
    for name, shorter in _SHORTER.items():
        field, what, advice = (text.replace(name, shorter) for text in (field, what, advice))
    return BadRequest(what, value=flaw.value, field=field, advice=advice)


def _given(written: str | None, otherwise: T, name: str) -> str | T:
    return _text(written, name) if written is not None else otherwise


def _paths(written: tuple[str, ...] | None, otherwise: tuple[str, ...], name: str) -> tuple[str, ...]:
    if written is None:
        return otherwise
    return tuple(_text(pattern, f"{name}.{place}") for place, pattern in enumerate(written))


def _fixup(place: int, fixup: Fixup, policy: Policy) -> Fixup:
    name = f"fixups.{place}"
    return Fixup(
        range=_text(fixup.range, f"{name}.range"),
        cherry_pick=_given(fixup.cherry_pick, None, f"{name}.cherry_pick"),
        patch=_script(fixup.patch, f"{name}.patch", policy),
    )


def _named(submission: Submission, recipes: Mapping[str, Recipe]) -> Recipe:
    name = submission.project or DEFAULT_RECIPE
    if name not in recipes:
        known = ", ".join(sorted(recipes))
        raise BadRequest(f"there is no recipe {name!r}", value=name, field="project", advice=f"known are: {known}")
    return recipes[name]


def _repo(submission: Submission) -> str:
    if submission.repo is None:
        raise BadRequest("the repository is missing", field="repo", advice="add repo: with the URL to clone it from")
    return _text(submission.repo, "repo")


def _refs(written: tuple[str, ...]) -> tuple[str, ...]:
    if not written:
        raise BadRequest("good is missing", field="good", advice="name a commit, tag or branch that still worked")
    return tuple(_text(ref, "good") for ref in written)


def _sandbox(submission: Submission, recipe: Recipe, policy: Policy) -> SandboxKind:
    kind = _enum(SandboxKind, submission.sandbox, "sandbox") or policy.default_sandbox
    if kind not in policy.sandboxes:
        allowed = ", ".join(sorted(policy.sandboxes))
        raise BadRequest(
            f"this service does not allow the {kind} sandbox", value=kind, field="sandbox", advice=f"allowed: {allowed}"
        )
    if kind is SandboxKind.DOCKER and recipe.image is None:
        raise BadRequest("the docker sandbox needs an image", field="image", advice="add image: with the name of one")
    return kind


def _reproduction(submission: Submission, policy: Policy, failure_in: FailureIn, recipe: Recipe) -> Reproduction:
    if failure_in is FailureIn.BUILD:
        _only_a_build(submission, recipe)
    elif (submission.script is None) == (submission.serve is None):
        raise BadRequest(
            "exactly one of script and serve is needed",
            field="script",
            advice="give script: to run it as `git bisect run` would, or serve: for a server that must get ready",
        )
    elif submission.check is not None and submission.serve is None:
        raise BadRequest("check runs beside a server", field="check", advice="put it into script:, or add serve:")
    return Reproduction(
        script=_script(submission.script, "script", policy),
        serve=_serve(submission.serve, policy),
        check=_script(submission.check, "check", policy),
        failure=_line(submission.failure, "failure") if submission.failure is not None else None,
    )


def _only_a_build(submission: Submission, recipe: Recipe) -> None:
    for name in ("script", "serve", "check"):
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


def _line(text: str, name: str) -> str:
    if "\n" in text.strip():
        raise BadRequest(f"{name} has several lines", field=name, advice="name one line that only this failure prints")
    return _text(text, name).strip()


def _serve(form: ServeForm | None, policy: Policy) -> Serve | None:
    if form is None:
        return None
    if form.ready_http is not None and not form.ready_http.startswith("/"):
        raise BadRequest(
            f"serve.ready.http must be a path: {form.ready_http!r}",
            value=form.ready_http,
            field="serve.ready.http",
            advice="write it like /health",
        )
    return Serve(
        command=_script(form.command, "serve.command", policy) or "",
        ready_http=form.ready_http if form.ready_http or form.ready_log else "/health",
        ready_log=form.ready_log,
        within_s=seconds(form.within if form.within is not None else "20m", field="serve.ready.within"),
    )


def _script(text: str | None, name: str, policy: Policy) -> str | None:
    if text is None:
        return None
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > policy.script_bytes:
        raise TooLarge(
            f"{name} has {size} bytes, more than {policy.script_bytes}",
            value=str(size),
            field=name,
            advice="keep data out of it: let it fetch what it needs",
        )
    return _text(text, name)


def _text(text: str, name: str) -> str:
    if not text.strip():
        raise BadRequest(f"{name} is empty", field=name, advice=f"say what {name} is, or leave the key out")
    if "\0" in text:
        raise BadRequest(f"{name} holds a NUL byte", field=name, advice="NUL bytes cannot be in a script or a name")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise BadRequest(f"{name} is no valid Unicode", field=name, advice="it holds half of a surrogate pair")
    return text


def _env(env: Mapping[str, str]) -> dict[str, str]:
    for key, value in env.items():
        if not _VARIABLE.fullmatch(key):
            raise BadRequest(f"env: {key!r} is no variable", value=key, field="env", advice="use letters, digits and _")
        if "\0" in value:
            raise BadRequest(f"env: {key} holds a NUL byte", value=key, field="env", advice="leave the byte out")
    return dict(env)


def _width(submission: Submission, policy: Policy) -> int:
    width = submission.width if submission.width is not None else 1
    if not 1 <= width <= policy.width:
        raise BadRequest(
            f"width {width} is not between 1 and {policy.width}",
            value=str(width),
            field="width",
            advice="it is the number of probes in flight at once",
        )
    return width


def _enum(kind: type[E], written: str | None, name: str) -> E | None:
    chosen = _choice(written, tuple(str(member) for member in kind), name)
    return kind(chosen) if chosen is not None else None


def _choice(written: str | None, known: tuple[str, ...], name: str) -> str | None:
    if written is not None and written not in known:
        raise BadRequest(
            f"{name}: {written!r} is unknown", value=written, field=name, advice=f"one of {', '.join(known)}"
        )
    return written
