"""Small pieces of code and prose that ordinary commits add to a file, revise and remove again."""

from functools import lru_cache

from examples.dice import Dice

VERBS = ("clamp", "scale", "split", "merge", "align", "count", "fold", "shift", "trim", "pack", "limit", "spread")
NOUNS = (
    "blocks", "tokens", "slots", "pages", "ranks", "experts", "heads", "layers", "batches", "drafts", "queries",
    "states", "chunks", "lanes", "requests", "shards", "windows", "stops",
)  # fmt: skip

PYTHON = (
    '''def {name}(value: int, limit: int = {a}) -> int:
    """Keeps {noun} between {b} and a limit."""
    return max({b}, min(value, limit))
''',
    '''def {name}(values: list[int]) -> list[int]:
    """{Noun} above {b}, each once and in order."""
    return sorted({{value for value in values if value > {b}}})[:{a}]
''',
    '''def {name}(total: int, parts: int = {b}) -> list[int]:
    """Shares {noun} out as evenly as whole numbers allow."""
    return [total // parts + (index < total % parts) for index in range(parts)]
''',
    '''def {name}(start: int, count: int, step: int = {a}) -> range:
    """The {noun} that a pass over {b} of them visits."""
    return range(start, start + count * step, step)
''',
    """#: How many {noun} one step may hold.
MAX_{NAME} = {a}
""",
    '''def {name}(text: str) -> str:
    """A name for {noun} that fits into {a} characters."""
    return text if len(text) <= {a} else text[: {a} - {b}] + "." * {b}
''',
    '''def {name}(done: int, total: int) -> float:
    """The share of {noun} that are done, rounded to {b} places."""
    return round(done / total, {b}) if total else 1.0
''',
)
TESTS = (
    """def test_{name}():
    assert sorted([{a}, {b}]) == [{b}, {a}]
""",
    """def test_{name}_of_{a}():
    assert -(-{a} // {b}) * {b} >= {a}
""",
    """def test_{name}_keeps_its_bounds():
    for value in range({b}, {a}):
        assert {b} <= value < {a}
""",
)
KERNELS = (
    """uint64_t ts_{name}(uint64_t value) {{
    return ts_mix(value ^ {a}) % {b};
}}
""",
    """unsigned ts_{name}(unsigned first, unsigned count) {{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {{
        sum += (first + i * {a}) / {b};
    }}
    return sum;
}}
""",
)
BACKEND = (
    '''def {name}(flags):
    """At most {a} {noun} of flags are passed on."""
    return flags[:{a}]
''',
)
PROSE = (
    "## Limits on {noun}\n\nUp to {a} {noun} are taken at once; set a lower limit when memory is short.\n",
    "Note: since this release {noun} are counted from {b}, and {a} of them fit into one step.\n",
    "> {Noun} of {a} and more need a second pass.\n",
)
ENTRIES = ("- {Verb} {noun} in steps of {a}.\n", "- Fixed: {noun} beyond {a} were dropped.\n")
STEPS = ("  - label: {verb} {noun}\n    command: python -m pytest tests -k {noun} --maxfail {a}\n",)

NEW_MODEL = '''"""{Name}: {a} heads a layer, a window of {b} blocks."""

HEADS = {a}
WINDOW_BLOCKS = {b}


def window_of(layer: int) -> int:
    return 0 if layer % 2 else WINDOW_BLOCKS
'''


def name_block(dice: Dice, serial: int) -> str:
    return f"{dice.pick(VERBS)}_{dice.pick(NOUNS)}_{serial}"


@lru_cache(maxsize=10_000)
def render_block(path: str, name: str, revision: int) -> str:
    """The text of a block, the blank lines before it included; another revision changes its numbers."""
    verb, noun, serial = name.split("_")
    dice = Dice(name)
    form = dice.pick(forms_for(path))
    # Both numbers change with each revision, so that every form does, whichever it uses.
    numbers = {"a": 8 * (2 + (dice.below(63) + revision) % 63), "b": 2 + (dice.below(6) + revision) % 6}
    words = {"name": f"{verb}_{noun}", "noun": noun, "verb": verb, "Noun": noun.title(), "Verb": verb.title()}
    if not path.endswith((".md", ".yaml")):
        words["name"] = name if path.endswith(".c") else f"{verb}_{noun}_{serial}"
    return separator(path) + form.format(**words, NAME=words["name"].upper(), **numbers)


def forms_for(path: str) -> tuple[str, ...]:
    if path.startswith("tests/"):
        return TESTS
    if path.startswith("build_backend/"):
        return BACKEND
    if path == "CHANGELOG.md":
        return ENTRIES
    return {".md": PROSE, ".c": KERNELS, ".yaml": STEPS}.get(path[path.rindex(".") :], PYTHON)


def separator(path: str) -> str:
    if path.endswith(".py"):
        return "\n\n"
    return "" if path == "CHANGELOG.md" or path.endswith(".yaml") else "\n"


def render_new_model(name: str) -> str:
    dice = Dice(name)
    return NEW_MODEL.format(Name=name.title(), a=2 ** dice.between(3, 6), b=dice.between(2, 9))
