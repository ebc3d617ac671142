"""docs/verdicts.md prints the rules and what signs mean."""

import re
from pathlib import Path

from service.application.judge import RULES
from service.application.meanings import MEANINGS, Means
from worker.observe.signs import RULES as SIGNS

PAGE = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
SAYS = {
    Means.ELSEWHERE: "fault, another node",
    Means.LATER: "fault, again later",
    Means.OUT: "fault, and the node is taken out",
    Means.HOPELESS: "refused",
    Means.SKIP: "skip",
    Means.OWN_DAY: "once more with dependencies as of the commit, then skip",
    Means.HELD: "fault when another process holds the GPU, else nothing",
}


def rows(heading: str) -> list[list[str]]:
    table = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [re.split(r" ?\| ?", line.strip("| ")) for line in table.splitlines() if line.startswith("| `")]


def test_each_rule_stands_on_the_page_in_its_order() -> None:
    assert [[name.strip("`"), told] for name, told in rows("How an outcome is judged")] == [
        [each.name, each.told] for each in RULES
    ]


def test_what_each_sign_means_stands_on_the_page() -> None:
    found = {name.strip("`"): rest for name, *rest in rows("What signs mean")}
    assert list(found) == list(MEANINGS)
    for name, meaning in MEANINGS.items():
        extra = [word for word, holds in (("anywhere", meaning.anywhere), ("commit", meaning.commits)) if holds]
        says, marks, advice = found[name]
        assert (says, advice) == (SAYS[meaning.means], meaning.advice)
        assert all(word in marks for word in extra) and bool(marks) == bool(extra)


def test_workers_see_exactly_the_signs_that_have_a_meaning() -> None:
    assert {each.name for each in SIGNS} == set(MEANINGS)
