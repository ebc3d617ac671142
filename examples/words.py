"""Who commits, when, and in which words."""

from typing import NamedTuple

from examples.dice import Dice


class Person(NamedTuple):
    name: str
    email: str
    #: Offset from UTC as git writes it.
    zone: str


PEOPLE = (
    Person("Ada Lindqvist", "ada.lindqvist@example.org", "+0100"),
    Person("Bao Nguyễn", "bao@example.net", "+0700"),
    Person("Carlos Muñoz", "cmunoz@example.com", "-0300"),
    Person("Dana O'Neill", "dana.oneill@example.org", "+0000"),
    Person("Emre Yıldız", "emre@example.net", "+0300"),
    Person("Femi Adeyemi", "femi.adeyemi@example.com", "+0100"),
    Person("Grace Hallström", "grace@example.org", "+0100"),
    Person("Hiroshi 田中", "h.tanaka@example.com", "+0900"),
    Person("Ines Ferreira-Kováč", "ines@example.net", "+0000"),
    Person("Jun Park", "jun.park@example.org", "+0900"),
    Person("Kavya Raman", "kavya@example.com", "+0530"),
    Person("Lev Orlov", "lev@example.net", "+0200"),
    Person("Mia Schröder", "mia.schroeder@example.org", "+0100"),
    Person("Noor van Dijk", "noor@example.com", "+0100"),
    Person("Omar el-Sayed", "omar@example.net", "+0200"),
    Person("Priya S.", "priya@example.org", "+0530"),
    Person("Quentin Dubois", "quentin@example.com", "+0100"),
    Person("Rui 李", "rui.li@example.net", "+0800"),
    Person("Sam Carter", "sam@example.org", "-0700"),
    Person("Tess Whitfield", "tess.whitfield@example.com", "-0500"),
    Person("tinyserve-bot[bot]", "bot@example.org", "+0000"),
)

MAINTAINERS = Person("tinyserve maintainers", "maintainers@example.org", "+0000")

#: Subjects of ordinary commits, by the area of the first file that they change.
SUBJECTS = {
    "tests": (
        "[Test] Cover {noun} at their limits",
        "[CI] Make the test of {noun} independent of order",
        '[Test] Do not rely on "{verb} {noun}" in the log',
        "[Test] Split test_{module} | one case a test",
        "[CI/Build] Un-flake test_{module}",
    ),
    "docs": (
        "[Doc] Describe limits on {noun}",
        "[Doc] Fix a typo in {module}.md",
        "[Doc] {module}: “{noun}” — what they are, when they matter",
        "docs: say how to {verb} {noun} (thanks, José!)",
    ),
    "model_executor": (
        "[Model] {Verb} {noun} in {module}",
        "[Bugfix] Fix {noun} of {module} when there is only one",
        "[Model][Perf] {module}: {verb} {noun} once | not every layer",
        "[Quantization] Tidy {module} ({noun})",
        "[模型] {module}: {verb} {noun}",
    ),
    "v1": (
        "[Core] {Verb} {noun} in {module}",
        "[V1] {module}: {verb} {noun} before they are counted",
        "[Bugfix][Core] Handle zero {noun}",
        "[Core][Easy] Rename for clarity: {noun}",
        "[Perf] {Verb} {noun} without a copy, about 2 % on small batches",
    ),
    "entrypoints": (
        '[Frontend] Accept "{noun}" as a string | a list of strings',
        "[Frontend] {Verb} {noun} of long prompts",
        "[Bugfix][Frontend] Handle \\n and \\t in {noun}",
        "[Frontend] Better message when {noun} are missing",
    ),
    "config": (
        "[Config] Check {noun} early",
        "[Config] Move {noun} to {module}",
        "[Misc] {module}: `int | None`, not `Optional[int]`",
    ),
    "ci": ("[CI] {Verb} {noun} on 'main' & tags only", '[CI] Run the {noun} job weekly; skip with "[skip {noun}]"'),
    "other": (
        "[Misc] {Verb} {noun}",
        "[Misc] Remove what nobody uses: {noun}",
        "[Chore] {module}: {verb} {noun}, 100 % typed",
        "Update {module}",
        "[Platform] {Verb} {noun} on hosts with one core",
        'Revert "[Misc] {Verb} {noun}"',
    ),
}
NATIVE_SUBJECTS = (
    "[Kernel] {Verb} {noun} in one pass",
    "[Kernel] Avoid a division per {noun}",
    "[Kernel] {Verb} {noun} with 64-bit sums",
    "[Bugfix][Kernel] Overflow when {noun} > 2^31",
    "[Build] Group compiler flags by {noun}",
)
TOPICS = ("{verb}-{noun}", "fix-{noun}", "feature/{noun}", "{noun}_refactor")

MODELS = ("phi", "gem", "falcon", "olmo", "granite", "yi", "stable", "arctic")

#: Monday morning, in seconds since 1970.
FIRST_COMMIT_AT = 1741000000


class Stamp(NamedTuple):
    """A person at a time, as git records authors and committers."""

    person: Person
    at: int

    def __str__(self) -> str:
        return f"{self.person.name} <{self.person.email}> {self.at} {self.person.zone}"


class Clock:
    """Commit times that only go forward, some minutes to some hours apart."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.now = FIRST_COMMIT_AT

    def next_stamps(self, dice: Dice) -> tuple[Stamp, Stamp]:
        """Author and committer; work is often written days before it is merged."""
        self.now += 60 * self.dice.between(1, 77)
        written = self.now - (3600 * dice.between(1, 90) if dice.chance(0.7) else 0)
        author = dice.pick(PEOPLE)
        return Stamp(author, written), Stamp(MAINTAINERS if dice.chance(0.8) else author, self.now)


def message(subject: str, body: str, author: Person, number: int, dice: Dice) -> str:
    """With the number of its pull request, as most commits have, and a sign-off."""
    numbered = f"{subject} (#{pull_request(number, dice)})" if dice.chance(0.93) else subject
    paragraphs = [numbered, body, f"Signed-off-by: {author.name} <{author.email}>" if dice.chance(0.7) else ""]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def pull_request(number: int, dice: Dice) -> int:
    return 2400 + 3 * number + dice.below(90)
