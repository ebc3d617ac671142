"""What each commit changes, and what it says about it."""

from functools import cache
from typing import NamedTuple

from examples.blocks import NOUNS, VERBS, name_block
from examples.dice import Dice
from examples.edits import EDITS
from examples.options import Options
from examples.plan import Job, Plan
from examples.slots import TRACE_FILES
from examples.tree import (
    BLOCK,
    EDIT,
    LICENSED,
    NEW_MODEL,
    Tree,
    changed_paths,
    parse_block,
    slot_value,
    with_facts,
    with_slot,
)
from examples.words import MODELS, NATIVE_SUBJECTS, SUBJECTS, TOPICS

MAX_FILES = 88
MAX_BLOCKS = 16
KERNEL_FILES = ("csrc/graphs.c", "csrc/tokens.c", "csrc/weights.c")
#: How many files an ordinary commit changes, as in the real case.
FILE_COUNTS = (
    (1, 91),
    (2, 55),
    (3, 20),
    (4, 17),
    (5, 15),
    (6, 12),
    (7, 8),
    (9, 10),
    (12, 8),
    (15, 5),
    (20, 3),
    (28, 5),
)
AREAS = (
    ("tests", 30),
    ("model_executor", 26),
    ("v1", 18),
    ("entrypoints", 9),
    ("config", 12),
    ("docs", 6),
    ("ci", 4),
    ("other", 14),
)


class Change(NamedTuple):
    tree: Tree
    subject: str
    body: str = ""


JOB_MESSAGES = {
    ("does_not_build", False): ("[Kernel] Name the alignment of graph pools after what it is", ""),
    ("does_not_build", True): ("[Bugfix][Build] Fix the build of graphs.c", ""),
    ("does_not_install", False): ("[Build] Depend on the kernels package", "Prepares moving csrc/ out of here."),
    ("does_not_install", True): ("[Build] Depend on nothing that is not published yet", ""),
    ("fails_otherwise", False): ("[Model] Call the rotary width what checkpoints call it", ""),
    ("fails_otherwise", True): ("[Bugfix] Read the rotary width by its new name", ""),
    ("hangs", False): ("[Distributed] Let the driver take part in every round", ""),
    ("hangs", True): ("[Bugfix][Distributed] Only ranks with a worker answer", ""),
    ("first_bad", False): (
        "[Core] Keep batch sizes in one place",
        "Mixed and decode batches had a list each. With one list they use one pool of memory,\n"
        "which is 0.4 GiB less on the largest model.",
    ),
    ("fix", False): (
        "[Bugfix][Spec Decode] Round decode batches up to whole queries",
        "With 2 speculative tokens a query is 3 tokens long, and sizes such as 40 held no whole number of them.",
    ),
    ("slower", False): (
        "[Core] Copy sampled tokens back without pinned memory",
        "Pinned memory runs out on small hosts.",
    ),
    ("less_accurate", False): ("[Quantization] Convert levels with int()", "It does the same in one call less."),
}


def change(number: int, tree: Tree, plan: Plan, options: Options) -> Change:
    dice = Dice(options.seed, "change", number)
    if number in plan.jobs:
        return job_change(number, tree, plan.jobs[number], options, dice)
    if number in plan.native:
        return native_change(number, tree, dice)
    if number in plan.trace:
        return trace_change(number, tree, dice)
    if number == plan.sweep:
        return sweep_change(tree)
    if number in plan.versions:
        return version_change(tree, plan.versions[number])
    return ordinary_change(number, tree, dice)


def job_change(number: int, tree: Tree, jobs: list[Job], options: Options, dice: Dice) -> Change:
    """The last job speaks for the commit, as beginnings come after what ends."""
    before = tree
    for job in sorted(jobs, key=lambda job: not job.ends):
        tree = with_job(tree, job, options)
        subject, body = JOB_MESSAGES[job.kind, job.ends]
    if any(path.startswith("csrc/") for path in changed_paths(before, tree)):
        tree = with_new_kernel(number, tree, dice)
    return Change(tree, subject, body)


def with_job(tree: Tree, job: Job, options: Options) -> Tree:
    """Names count up through the stretches: one file takes the next name first, the other follows when it ends."""
    later = str(job.nth + 1)
    match job.kind:
        case "does_not_build":
            return with_slot(tree, "macro", later, "csrc/graphs.c" if job.ends else "csrc/tinyserve.h")
        case "does_not_install":
            return with_slot(tree, "dependencies", "" if job.ends else later)
        case "fails_otherwise":
            folder = "tinyserve/model_executor"
            return with_slot(tree, "rope_key", later, f"{folder}/loader.py" if job.ends else f"{folder}/registry.py")
        case "hangs":
            return with_slot(tree, "arrivals", "" if job.ends else "driver")
        case "first_bad":
            sizes = "shared" if options.flaky == 1 else str(options.flaky)
            return with_slot(with_slot(tree, "decode_sizes", sizes), "captured", "counted")
        case "fix":
            return with_slot(tree, "decode_sizes", "rounded")
        case "slower":
            assert options.slower
            # A token costs 500 microseconds, 100 of them for copying it.
            return with_slot(tree, "copy_us", str(round(500 * options.slower.factor) - 400))
        case _:
            return with_slot(tree, "rounding", "int")


def native_change(number: int, tree: Tree, dice: Dice) -> Change:
    if dice.chance(0.15):
        tree = with_new_block(number, tree, "build_backend/native.py", dice)
    else:
        tree = with_new_kernel(number, tree, dice)
    return Change(tree, spoken(dice.pick(NATIVE_SUBJECTS), "csrc/graphs.c", dice))


def with_new_kernel(number: int, tree: Tree, dice: Dice) -> Tree:
    tree = with_new_block(number, tree, dice.pick(KERNEL_FILES), dice)
    return with_slot(tree, "native_version", str(int(slot_value(tree, "native_version")) + 1))


def trace_change(number: int, tree: Tree, dice: Dice) -> Change:
    """One of the changes by hand that is not made yet, else a new block."""
    left = [index for index, edit in enumerate(EDITS) if f"{EDIT}{index}" not in tree[edit.path]]
    if not left:
        path = dice.pick(TRACE_FILES)
        return Change(with_new_block(number, tree, path, dice), spoken(dice.pick(SUBJECTS["v1"]), path, dice))
    index = dice.pick(left)
    edit = EDITS[index]
    tree = with_facts(tree, edit.path, **{f"{EDIT}{index}": "made"})
    if dice.chance(0.4):
        tree = with_ordinary_edit(number, tree, "tests/test_linear_attn.py", dice)
    return Change(tree, edit.subject)


def sweep_change(tree: Tree) -> Change:
    for path in tree:
        if path.startswith(("tinyserve/", "tests/", "benchmarks/")) and path.endswith(".py"):
            tree = with_facts(tree, path, **{LICENSED: "yes"})
    return Change(tree, "[Misc] Put the license into every file", "Written by a script: no line of code changes.")


def version_change(tree: Tree, version: str) -> Change:
    released = not version.endswith("dev0")
    subject = f"[Release] v{version}" if released else f"Begin {version}"
    return Change(with_slot(tree, "version", version), subject)


def ordinary_change(number: int, tree: Tree, dice: Dice) -> Change:
    if len(tree) < MAX_FILES and dice.chance(0.03):
        return new_model_change(number, tree, dice)
    area = dice.weighted(AREAS)
    files = [path for path in tree if may_change(path)]
    home = [path for path in files if area_of(path) == area]
    chosen = [dice.pick(home)]
    for _ in range(dice.weighted(FILE_COUNTS) - 1):
        chosen.append(dice.pick(home if dice.chance(0.5) else files))
    for path in dict.fromkeys(chosen):
        tree = with_ordinary_edit(number, tree, path, dice)
    return Change(tree, spoken(dice.pick(SUBJECTS[area]), chosen[0], dice))


def new_model_change(number: int, tree: Tree, dice: Dice) -> Change:
    name = f"{dice.pick(MODELS)}{number}"
    tree = with_facts(tree, f"tinyserve/model_executor/models/{name}.py", **{NEW_MODEL: name})
    for path in ("docs/models.md", "tests/test_rotary.py"):
        tree = with_ordinary_edit(number, tree, path, dice)
    return Change(tree, f"[Model] Support {name.title()}")


def with_ordinary_edit(number: int, tree: Tree, path: str, dice: Dice) -> Tree:
    """Adds a block, or revises or removes one that is there."""
    blocks = [key for key in tree[path] if key.startswith(BLOCK)]
    if not blocks or dice.chance(0.6):
        return with_new_block(number, tree, path, dice)
    key = dice.pick(blocks)
    if dice.chance(0.2):
        return {**tree, path: {other: value for other, value in tree[path].items() if other != key}}
    name, revision = parse_block(tree[path][key])
    return with_facts(tree, path, **{key: f"{name}#{revision + 1}"})


def with_new_block(number: int, tree: Tree, path: str, dice: Dice) -> Tree:
    """A file that is full loses its oldest block, so that a long history has no long files."""
    facts = {**tree[path], f"{BLOCK}{number:06}": f"{name_block(dice, number)}#0"}
    blocks = sorted(key for key in facts if key.startswith(BLOCK))
    if len(blocks) > MAX_BLOCKS:
        del facts[blocks[0]]
    return {**tree, path: facts}


@cache
def may_change(path: str) -> bool:
    """Files that ordinary commits keep away from: native code, the traceback's, and those without room for more."""
    apart = ("csrc/", "build_backend/", "pyproject.toml", "LICENSE", ".gitignore", "tinyserve/native_version.py")
    return path not in TRACE_FILES and not path.startswith(apart) and not path.endswith("__init__.py")


@cache
def area_of(path: str) -> str:
    folder, _, rest = path.partition("/")
    if folder == ".ci":
        return "ci"
    if folder in ("tests", "docs"):
        return folder
    inner = rest.partition("/")[0] if folder == "tinyserve" else ""
    inner = {"engine": "config"}.get(inner, inner)
    return inner if inner in SUBJECTS else "other"


def merge_subject(number: int, options: Options) -> str:
    dice = Dice(options.seed, "merge", number)
    topic = spoken(dice.pick(TOPICS), "", dice)
    return f"Merge pull request #{2400 + 3 * number} from {topic}" if dice.chance(0.5) else f"Merge branch '{topic}'"


def spoken(form: str, path: str, dice: Dice) -> str:
    verb, noun = dice.pick(VERBS), dice.pick(NOUNS)
    module = path.rpartition("/")[2].rpartition(".")[0].removeprefix("test_")
    return form.format(verb=verb, Verb=verb.title(), noun=noun, module=module)
