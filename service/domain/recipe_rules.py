"""What a recipe's keys may hold, and which need each other; the same for an operator's file and a user's request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import chain
from urllib.parse import urlsplit

import re2
from packaging.requirements import InvalidRequirement, Requirement

from service.domain.patterns import BadPattern, parse
from service.domain.recipe import Fixup, Recipe, Resources

LONGEST_BUILD_S = 30 * 86400.0
MOST_PATTERNS = 200
MOST_FIXUPS = 100
MOST_CONSTRAINTS = 5000
MOST_SECRETS = 50
MOST_GPUS, MOST_CPUS, MOST_PIDS = 64, 4096.0, 65536
#: The highest numbers of a CPU and of a node of memory.
LAST_CPU, LAST_NUMA = 8191, 1023
LONGEST_CPUSET = 200
LONGEST_GPU = 200
MOST_LABELS = MOST_MODELS = 20
#: A container engine takes no less.
LEAST_MEMORY = 6 << 20
AS_OF = ("bad", "commit", "today")
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|[{}]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_REF = r"(?!-)[^\s.](?:[^\s.]|\.(?!\.))*"
_RANGE = re.compile(rf"{_REF}(?<!\.)\.\.(?!\.){_REF}")
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
#: As variables that hold secrets are called; tokens are not, so that one in the place of its name is refused.
_SECRET = re.compile(r"(?!AKIA)[A-Z][A-Z0-9_]{0,199}")
_CPUS = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?")
#: What an operator may call a node by: a comma would end it in FIRSTBAD_LABELS.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:=/+-]{0,62}")
_MODEL_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"
_MODEL = re.compile(rf"(?:{_MODEL_PART}/)?{_MODEL_PART}")
_DIFF = re.compile(r"^(?:diff --git |--- )", re.MULTILINE)


@dataclass(frozen=True)
class Flaw:
    """`where`: the way to the value, by keys of a recipe and places in lists."""

    where: tuple[str | int, ...]
    what: str
    value: str
    advice: str


def first_flaw(recipe: Recipe) -> Flaw | None:
    rules = (_needs, _values, _patterns, _indexes, _fixups, _networks, _resources, _secrets)
    return next(chain.from_iterable(rule(recipe) for rule in rules), None)


def _needs(recipe: Recipe) -> Iterator[Flaw]:
    """A key without the one that gives it a meaning would be left aside in silence."""
    for name in ("wheel_paths", "native_paths", "overlay_command", "wheel_indexes"):
        if getattr(recipe, name) and recipe.build_command is None:
            yield Flaw((name,), f"{name} is given, but nothing is built", "", f"add a build command, or remove {name}")
    if recipe.overlay_command is not None and not recipe.native_paths:
        advice = "add native_paths: what the compiled files are made from"
        yield Flaw(("overlay_command",), "overlay_command needs native_paths", recipe.overlay_command, advice)
    if recipe.wheel_indexes and recipe.package is None:
        advice = "add package: the distribution's name, by which its wheels are known"
        yield Flaw(("wheel_indexes",), "wheel_indexes needs package", recipe.wheel_indexes[0], advice)


def _values(recipe: Recipe) -> Iterator[Flaw]:
    if not 0 < recipe.build_timeout_s < LONGEST_BUILD_S:
        value, advice = str(recipe.build_timeout_s), "write seconds, like 7200, less than 30 days of them"
        yield Flaw(("build_timeout_s",), f"build_timeout_s: {value} is no time to build in", value, advice)
    if recipe.package is not None and not _PACKAGE.fullmatch(recipe.package):
        advice = "write the name in the project's metadata, like vllm or my-project"
        yield Flaw(("package",), f"package: {recipe.package[:80]!r} is no name of a package", recipe.package, advice)
    if not _is_as_of(recipe.deps.as_of):
        written, advice = recipe.deps.as_of, f"write one of {', '.join(AS_OF)}, or a date like 2025-09-25"
        yield Flaw(("deps", "as_of"), f"deps.as_of: {written[:80]!r} is no time", written, advice)
    yield from _constraints(recipe.deps.constraints)


def _is_as_of(written: str) -> bool:
    if written in AS_OF or not _DATE.fullmatch(written):
        return written in AS_OF
    try:
        date.fromisoformat(written)
    except ValueError:
        return False
    return True


def _constraints(text: str) -> Iterator[Flaw]:
    where = ("deps", "constraints")
    lines = text.splitlines()
    if len(lines) > MOST_CONSTRAINTS:
        what = f"deps.constraints has {len(lines)} lines, more than {MOST_CONSTRAINTS}"
        yield Flaw(where, what, str(len(lines)), "name only the packages whose versions matter")
        return
    for number, line in enumerate(lines, start=1):
        bare = re.split(r"(?:^|\s)#", line)[0].strip()
        try:
            Requirement(bare or "nothing")
        except InvalidRequirement:
            what = f"deps.constraints, its line {number}: {bare[:80]!r} is no constraint"
            yield Flaw(where, what, bare, "write one package a line, like torch==2.8.0 or numpy<2")


def _patterns(recipe: Recipe) -> Iterator[Flaw]:
    for name, patterns in (("wheel_paths", recipe.wheel_paths), ("native_paths", recipe.native_paths)):
        if len(patterns) > MOST_PATTERNS:
            what = f"{name} has {len(patterns)} patterns, more than {MOST_PATTERNS}"
            yield Flaw((name,), what, str(len(patterns)), "name folders, like csrc/**, instead of files")
            continue
        try:
            parse(patterns)
        except BadPattern as error:
            yield Flaw((name, error.index), f"{name}: {error}", error.pattern, error.advice)


def _indexes(recipe: Recipe) -> Iterator[Flaw]:
    for place, template in enumerate(recipe.wheel_indexes):
        wrong = _wrong_index(template)
        if wrong is not None:
            what, advice = wrong
            yield Flaw(("wheel_indexes", place), f"wheel_indexes: {template[:200]!r} {what}", template, advice)


def _wrong_index(template: str) -> tuple[str, str] | None:
    like = "write it like https://wheels.example.org/{sha}/"
    others = [found for found in _PLACEHOLDER.findall(template) if found != "{sha}"]
    if "{sha}" not in template:
        return "holds no {sha}", f"{like}: each commit has wheels of its own"
    if others:
        return f"holds {others[0]}, which nothing is known to put in", f"{{sha}} is all that is replaced; {like}"
    if re.search(r"[\x00-\x20\x7f]", template):
        return "holds blanks or control characters", like
    try:
        url = urlsplit(template)
    except ValueError:
        return "is no URL", like
    if url.scheme not in ("http", "https") or not url.hostname:
        return "is no http or https URL", like
    return ("has {sha} in its host", like) if "{sha}" in url.netloc else None


def _fixups(recipe: Recipe) -> Iterator[Flaw]:
    if len(recipe.fixups) > MOST_FIXUPS:
        what = f"there are {len(recipe.fixups)} fix-ups, more than {MOST_FIXUPS}"
        yield Flaw(("fixups",), what, str(len(recipe.fixups)), "join those that apply to the same range")
    for place, fixup in enumerate(recipe.fixups):
        for key, what, value, advice in _wrong_fixup(fixup):
            yield Flaw(("fixups", place, *([key] if key else [])), f"fix-up: {what}", value, advice)


def _wrong_fixup(fixup: Fixup) -> Iterator[tuple[str, str, str, str]]:
    if (fixup.cherry_pick is None) == (fixup.patch is None):
        advice = "give cherry_pick: with a commit, or patch: with a diff, for each fix-up"
        yield "", "exactly one of cherry_pick and patch is needed", "", advice
    if not _RANGE.fullmatch(fixup.range):
        advice = "write A..B as git does: what B holds and A does not"
        yield "range", f"{fixup.range[:80]!r} is no range", fixup.range, advice
    if fixup.cherry_pick is not None and not re.fullmatch(_REF, fixup.cherry_pick):
        yield "cherry_pick", f"{fixup.cherry_pick[:80]!r} names no commit", fixup.cherry_pick, "write one SHA or tag"
    if fixup.patch is not None and not _DIFF.search(fixup.patch):
        yield "patch", "it is no patch", fixup.patch, "put in what `git diff` or `git format-patch` prints"


def _networks(recipe: Recipe) -> Iterator[Flaw]:
    for name, network in (("network", recipe.network), ("build_network", recipe.build_network)):
        if not _NETWORK.fullmatch(network):
            advice = "write none, bridge, or the name of a network that the nodes' container engines have"
            yield Flaw((name,), f"{name}: {network[:80]!r} is no name of a network", network, advice)


def _resources(recipe: Recipe) -> Iterator[Flaw]:
    wanted = recipe.resources
    for key, number, least, most, unit in (
        ("gpus", wanted.gpus, 0, MOST_GPUS, "GPUs"),
        ("cpus", wanted.cpus, 0.01, MOST_CPUS, "CPUs, parts of one too"),
        ("pids", wanted.pids, 16, MOST_PIDS, "processes and threads"),
    ):
        if number is not None and not least <= number <= most:
            advice = f"it is a number of {unit}, {least} to {most:g}"
            yield Flaw(("resources", key), f"resources.{key}: {number} cannot be had", str(number), advice)
    if wanted.memory_bytes is not None and wanted.memory_bytes < LEAST_MEMORY:
        what = f"resources.memory: {wanted.memory_bytes} bytes are too few to run in"
        yield Flaw(("resources", "memory"), what, str(wanted.memory_bytes), "write it like 64GiB, 6 MiB or more")
    yield from _had_by_nodes(wanted)
    yield from _gpu(wanted)
    yield from _pinned(wanted)


def _had_by_nodes(wanted: Resources) -> Iterator[Flaw]:
    for key, names, most, form, advice in (
        ("labels", wanted.labels, MOST_LABELS, _LABEL, "write it as in FIRSTBAD_LABELS of the nodes, like nvlink"),
        ("models", wanted.models, MOST_MODELS, _MODEL, "write it as its address ends, like Qwen/Qwen3-0.6B"),
    ):
        if len(names) > most:
            what, value = f"resources.{key} has {len(names)} names, more than {most}", str(len(names))
            yield Flaw(("resources", key), what, value, "name those alone that a node must have")
        for place, name in enumerate(names):
            if not form.fullmatch(name):
                what = f"resources.{key}: {name[:80]!r} is no name of a {key[:-1]}"
                yield Flaw(("resources", key, place), what, name, advice)


def _pinned(wanted: Resources) -> Iterator[Flaw]:
    """A node of memory has CPUs of its own, so that the two could contradict each other."""
    if wanted.numa is not None and not 0 <= wanted.numa <= LAST_NUMA:
        what, value = f"resources.numa: {str(wanted.numa)[:40]} is no node of memory", str(wanted.numa)[:40]
        yield Flaw(("resources", "numa"), what, value, f"it is a node's number as `lscpu` shows it, 0 to {LAST_NUMA}")
    if wanted.cpuset is None:
        return
    where = ("resources", "cpuset")
    if wanted.numa is not None:
        what = "resources has both cpuset and numa, which may name different CPUs"
        yield Flaw(where, what, wanted.cpuset, "leave one of them out: numa is all CPUs of a node, and its memory")
    if wrong := _wrong_cpuset(wanted.cpuset):
        what, advice = f"resources.cpuset: {wanted.cpuset[:80]!r} {wrong}", "write CPUs as `lscpu` numbers them: 0-3,8"
        yield Flaw(where, what, wanted.cpuset, advice)


def _wrong_cpuset(written: str) -> str:
    if len(written) > LONGEST_CPUSET:
        return f"has more than {LONGEST_CPUSET} characters"
    for part in written.split(","):
        if not _CPUS.fullmatch(part):
            return f"holds {part[:40]!r}, which is no number of a CPU and no range of them"
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            return f"holds {part!r}, a range that ends before it begins"
        if int(last or first) > LAST_CPU:
            return f"holds CPU {int(last or first)}, and there is none beyond {LAST_CPU}"
    return ""


def _gpu(wanted: Resources) -> Iterator[Flaw]:
    where = ("resources", "gpu")
    if wanted.gpu is None:
        return
    if not wanted.gpus:
        advice = "add gpus: how many, or remove gpu"
        yield Flaw(where, "resources.gpu is given, but no GPUs are asked for", wanted.gpu, advice)
    try:
        wrong = "is too long" if len(wanted.gpu) > LONGEST_GPU else "" if _models(wanted.gpu) else ""
    except re2.error as error:
        wrong = f"is no regular expression that RE2 takes: {error.args[0].decode('utf-8', 'replace')}"
    if wrong:
        advice = "write a part of the model's name, or several parts as in H800|H100"
        yield Flaw(where, f"resources.gpu: {wanted.gpu[:80]!r} {wrong}", wanted.gpu, advice)


def fits_model(wanted: Resources, model: str) -> bool:
    """Whether a GPU of this model will do, of a recipe that has no flaw."""
    return wanted.gpu is None or _models(wanted.gpu).search(model.encode("utf-8", "replace")) is not None


def _models(pattern: str) -> re2._Regexp[bytes]:
    """RE2, which takes linear time: what a user writes is searched within a transaction. Errors: re2.error."""
    options = re2.Options()
    options.log_errors, options.case_sensitive = False, False
    return re2.compile(pattern.encode("utf-8", "replace"), options)


def _secrets(recipe: Recipe) -> Iterator[Flaw]:
    """No value is ever quoted: what stands in the place of a name may be the secret itself."""
    if len(recipe.secrets) > MOST_SECRETS:
        what = f"there are {len(recipe.secrets)} secrets, more than {MOST_SECRETS}"
        yield Flaw(("secrets",), what, str(len(recipe.secrets)), "name only the variables that the runs read")
    for place, name in enumerate(recipe.secrets):
        where = ("secrets", place)
        if not _SECRET.fullmatch(name):
            advice = "write the name alone, like HF_TOKEN: its value is set on the nodes alone"
            yield Flaw(where, "secrets: one of them is no name of a variable", "", advice)
        elif name.startswith("FIRSTBAD_"):
            yield Flaw(where, f"secrets: {name} is a variable of firstbad's own", name, "choose another name")
        elif name in recipe.env:
            advice = "leave it out of one of them: env is kept with the request and shown, secrets are not"
            yield Flaw(where, f"{name} is in env and in secrets", name, advice)
