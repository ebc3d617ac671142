"""Looks at a log's lines for signs, each rule's first line, and passes over what only quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from worker.observe.blocks import Block, Filter
from worker.observe.error_lines import QUIET
from worker.observe.failures import Record
from worker.observe.lines import readable, without_stamp
from worker.observe.reading import CAUGHT
from worker.observe.records import records_of
from worker.observe.signs import RULES, Rule

#: Of a line that is shown.
LONGEST = 300
#: So many lines of a rule are remembered.
NUMBERS = 1000
#: Lines are alike when so many of their first and last bytes are, digits aside. So many of each shape are looked at,
#: so many shapes remembered; after so many lines only rules that have seen nothing look on, and then none.
SHAPE, TIMES, SHAPES, MOST = 200, 20, 4096, 20_000
#: Lines between a frame and the end of its traceback; between a warning and the end of a traceback below it.
BEHIND, BELOW = 60, 120

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_HEADER = b"Traceback (most recent call last)"
_CHAINED = (b"During handling of the above", b"The above exception was")
_QUOTES = re.compile(
    # A shell's trace, a diff, the source that a traceback or a test's report prints, and comments.
    r"\+(?!-)|@@ |-(?:\s{2,}|[^\s-])|(?:>|\s)*(?:(?:raise|throw|printf?(?:ln)?|echo|assert|return|elif|if|except|case"
    r"|def)[ (](?!code\b)|log(?:ger|ging)?\.\w+\(|warnings\.warn|// |#(?!\d+ )|\*(?!\*\* )|[fr]?[\"'])"
    # Commits' subjects.
    r"|(?:[*|/\\ ]+)?(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,40} (?!.*\.\w{1,4}:\d)|HEAD is now at |Subject: "
    r"|\[\S+ [0-9a-f]{7,40}\] "
)
#: Tests that did not fail. By RE2, which takes linear time.
_PASSED = re2.compile(r"(?:::\S.* |\] )(?:PASSED|SKIPPED|XFAIL)\b")
#: What is tried again says nothing yet, and what is only for information never.
_AGAIN = re.compile(
    r"NCCL INFO |: [IW] (?:tensorflow|external)/"
    r"|(?i:\bretrying\b|will retry|will be retried|tries remaining|trying again|\bretry in \d)"
)


def _filter(rules: tuple[Rule, ...]) -> Filter:
    return Filter(re.sub(r"\(\?P<\w+>", "(?:", pattern) for rule in rules for pattern in rule.needs())


_ALL = _filter(RULES)
_EACH = {rule.name: _filter((rule,)) for rule in RULES}


@dataclass(frozen=True)
class Sign:
    """`said`: the line, without what stands before its text. `root`: the log's root failure itself says it."""

    rule: str
    said: str
    line: int
    root: bool = False


@dataclass
class _Seen:
    said: str
    numbers: list[int]


class Lookout:
    """For signs in one log."""

    def __init__(self, project: tuple[str, ...]) -> None:
        self._project = project
        self._rules: tuple[Rule, ...] = RULES
        self._filter = _ALL
        self._hits = 0
        self._seen: dict[str, _Seen] = {}
        self._shapes: dict[bytes, int] = {}
        self._behind: dict[str, int] = {}
        self._out: set[str] = set()

    def read(self, block: Block) -> None:
        if not self._rules:
            return
        for place in self._filter.places(block):
            self._count()
            if self._is_new(block.lines[place]):
                for record in records_of(block.lines[place].decode("utf-8", "replace"), block.first + place):
                    self._record(record, block, place)

    def _count(self) -> None:
        """Where there are too many lines to look at, only for what is still unseen, and then for nothing."""
        self._hits += 1
        if self._hits == MOST:
            self._rules = tuple(rule for rule in self._rules if rule.name not in self._seen)
            self._filter = _filter(self._rules)
        elif self._hits == 2 * MOST:
            self._rules = ()

    def _is_new(self, line: bytes) -> bool:
        """Lines of one shape are looked at a few times."""
        shape = (line[:SHAPE] + line[SHAPE:][-SHAPE:]).translate(_DIGITS)
        times = self._shapes.get(shape, 0)
        if times < TIMES and (times or len(self._shapes) < SHAPES):
            self._shapes[shape] = times + 1
        return times < TIMES

    def signs(self, root: tuple[int, int], said: str) -> tuple[Sign, ...]:
        """In the order of their lines. `root`: first and last line of the root failure; `said`: how it is put."""
        rules = {rule.name: rule for rule in RULES}
        found = (
            Sign(name, seen.said, seen.numbers[0], self._is_root(rules[name], seen, root, said))
            for name, seen in self._seen.items()
        )
        return tuple(sorted(found, key=lambda sign: sign.line))

    def _is_root(self, rule: Rule, seen: _Seen, root: tuple[int, int], said: str) -> bool:
        return any(root[0] <= number <= root[1] for number in seen.numbers) or rule.found(said, self._project)

    def _record(self, record: Record, block: Block, place: int) -> None:
        text = readable(record.text.encode())
        if _QUOTES.match(text) or _PASSED.search(text) or _AGAIN.search(text):
            return
        name = self._rule_of(record, text)
        if not name or _handled(record, block, place):
            return
        seen = self._seen.setdefault(name, _Seen(text.strip()[:LONGEST], []))
        if len(seen.numbers) < NUMBERS:
            seen.numbers.append(record.number)

    def _rule_of(self, record: Record, text: str) -> str:
        line = text.encode()
        for rule in self._rules:
            if not _EACH[rule.name].within(line):
                continue
            self._told_of(rule, record, text)
            if record.level in QUIET and not rule.warned:
                continue
            if rule.found(text, self._project, late=True) and self._counts(rule, record, text):
                return rule.name
        return ""

    def _counts(self, rule: Rule, record: Record, text: str) -> bool:
        near = rule.behind is None or record.number - self._behind.get(rule.name, -BEHIND) < BEHIND
        return rule.name not in self._out and (near or rule.found(text, self._project))

    def _told_of(self, rule: Rule, record: Record, text: str) -> None:
        """Keeps what the lines before say of a rule."""
        if rule.unless is not None and rule.unless.search(text):
            self._out.add(rule.name)
        if rule.behind is not None and rule.behind.search(text):
            self._behind[rule.name] = record.number


def _handled(record: Record, block: Block, place: int) -> bool:
    """In a traceback below a warning, or below what Python ignored: somebody went on after it."""
    if record.level or record.opens:
        return False
    led = False  # by another exception, which stands above
    for at in range(place - 1, max(place - BELOW, 0), -1):
        text = without_stamp(block.lines[at])
        if _HEADER in text:
            above = readable(without_stamp(block.lines[at - 1]))
            before = next(iter(records_of(above, block.first + at - 1)), None)
            if above.startswith("Exception ignored in"):
                return True
            if before is not None and before.opens:
                return before.level == "WARNING" and not before.source and CAUGHT.within(above.encode())
            led = False
        elif text.startswith(_CHAINED):
            led = True
        elif text and text[:1] not in b" \t" and not led:
            return False
    return False
