"""Recipes from files: those that come along, an operator's own, and what is said of one that cannot be read."""

from pathlib import Path

import pytest

from service.adapters.recipes import BadRecipe, load
from service.domain.recipe import Network


def test_the_recipes_that_come_along() -> None:
    found = load()
    assert found["python"].build_command is not None
    assert found["source"].build_command is None
    assert all(recipe.network is Network.NONE for recipe in found.values())


def test_an_operator_s_recipe_goes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "python.yaml").write_text("build_command: make wheel\nimage: builder:1\nbuild_timeout_s: 60\n")
    (tmp_path / "notes.txt").write_text("not a recipe")
    found = load(tmp_path)
    assert (found["python"].build_command, found["python"].image) == ("make wheel", "builder:1")
    assert sorted(found) == ["python", "source"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bild_command: make", "bild_command"),
        ("- a list", "a mapping"),
        ("network: wan", "network"),
        ("build_timeout_s: soon", "build_timeout_s"),
        ("{", "no YAML"),
    ],
)
def test_a_recipe_that_cannot_be_read_names_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(BadRecipe, match="broken.yaml") as caught:
        load(tmp_path)
    assert said in str(caught.value)
