"""A submission, as a user wrote it, made into a complete request, or refused with what is wrong about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from service.application.ports import Policy
from service.domain.bisection import Reproduction, Request, Serve
from service.domain.duration import seconds
from service.domain.errors import BadRequest, TooLarge
from service.domain.recipe import Network, Recipe, SandboxKind

DEFAULT_RECIPE = "python"
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
E = TypeVar("E", Network, SandboxKind)


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


def complete(submission: Submission, recipes: Mapping[str, Recipe], policy: Policy) -> Request:
    """Errors: BadRequest, TooLarge; each names the field."""
    recipe = _recipe(submission, recipes)
    sandbox = _sandbox(submission, recipe, policy)
    return Request(
        repo=_repo(submission),
        good=_refs(submission.good),
        bad=_text(submission.bad, "bad"),
        reproduction=_reproduction(submission, policy),
        recipe=recipe,
        sandbox=sandbox,
        width=_width(submission, policy),
        first_parent=submission.first_parent,
        timeout_s=seconds(submission.timeout if submission.timeout is not None else 3600, field="timeout"),
        hang_is_bad=_choice(submission.hang, ("skip", "bad"), "hang") == "bad",
        flaky=submission.flaky,
    )


def _recipe(submission: Submission, recipes: Mapping[str, Recipe]) -> Recipe:
    name = submission.project or DEFAULT_RECIPE
    if name not in recipes:
        known = ", ".join(sorted(recipes))
        raise BadRequest(f"there is no recipe {name!r}", value=name, field="project", advice=f"known are: {known}")
    recipe = recipes[name]
    return replace(
        recipe,
        build_command=_text(submission.build, "build") if submission.build is not None else recipe.build_command,
        image=_text(submission.image, "image") if submission.image is not None else recipe.image,
        network=_enum(Network, submission.network, "network") or recipe.network,
        env={**recipe.env, **_env(submission.env)},
    )


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


def _reproduction(submission: Submission, policy: Policy) -> Reproduction:
    if (submission.script is None) == (submission.serve is None):
        raise BadRequest(
            "exactly one of script and serve is needed",
            field="script",
            advice="give script: to run it as `git bisect run` would, or serve: for a server that must get ready",
        )
    if submission.check is not None and submission.serve is None:
        raise BadRequest("check runs beside a server", field="check", advice="put it into script:, or add serve:")
    return Reproduction(
        script=_script(submission.script, "script", policy),
        serve=_serve(submission.serve, policy),
        check=_script(submission.check, "check", policy),
        failure=_line(submission.failure, "failure") if submission.failure is not None else None,
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
