"""What the documents say of settings, modules and files is there, and what is there is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import service.settings
import worker.settings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: To a file, and of it to a heading.
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def table(page: Path, heading: str) -> set[str]:
    """What is in backquotes in the first column of the table with that heading."""
    lines = page.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading}"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(line.split("|")[1])
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_each_setting_of_the_worker_is_in_its_page() -> None:
    assert {name.upper() for name in worker.settings.Settings.model_fields} == table(ROOT / "docs/worker.md", "setting")


def test_each_setting_of_the_service_is_in_the_readme() -> None:
    known = {f"FIRSTBAD_{name.upper()}" for name in service.settings.Settings.model_fields}
    assert known == table(ROOT / "README.md", "variable")


def test_the_design_names_only_modules_that_there_are() -> None:
    places = table(ROOT / "docs/design.md", "place")
    modules = {path.name for path in (ROOT / "service/application").iterdir()}
    for place in places:
        assert (ROOT / place).exists() if "/" in place else place in modules, place


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_each_link_leads_somewhere(page: Path) -> None:
    for target, heading in LINK.findall(page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), f"{target}, which {page.name} names, is not there"
        if heading:
            assert heading in {anchor(line) for line in file.read_text().splitlines() if line.startswith("#")}


def anchor(line: str) -> str:
    return re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
