"""Where to look first: weights from the clues of a failure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.histories import line
from benchmarks.search.simulate import deterministic
from service.search.priors import EVEN, Change, Clues, asked_words, pointers, weights, words_of

OTHERS = [Change(f"o{i}", {f"engine/other_{i}.py": 5}) for i in range(30)]


def ranked(changes: list[Change], clues: Clues) -> list[str]:
    found = weights(changes, clues)
    assert found is not None
    return sorted(found, key=lambda sha: -found[sha])


def test_the_commit_that_touches_the_innermost_file_comes_first_and_then_those_further_out() -> None:
    changes = [
        *OTHERS,
        Change("outer", {"engine/executor.py": 5}),
        Change("caller", {"engine/runner.py": 5}),
        Change("inner", {"engine/attention.py": 5}),
    ]
    clues = Clues(files=["engine/attention.py", "engine/runner.py"], outer=["engine/executor.py"])
    assert ranked(changes, clues)[:3] == ["inner", "caller", "outer"]


def test_a_commit_that_touches_everything_says_little() -> None:
    sweep = Change("sweep", {f"engine/module_{i}.py": 5 for i in range(200)} | {"engine/attention.py": 5})
    changes = [*OTHERS, sweep, Change("aimed", {"engine/attention.py": 5})]
    found = weights(changes, Clues(files=["engine/attention.py"]))
    assert found is not None
    assert found["aimed"] > 4 * found["sweep"]


def test_paths_match_where_the_traceback_has_an_installed_or_a_shorter_path() -> None:
    changes = [*OTHERS, Change("hit", {"src/engine/attention.py": 5})]
    for path in ("/usr/lib/python3/site-packages/src/engine/attention.py", "engine/attention.py"):
        assert ranked(changes, Clues(files=[path]))[0] == "hit"


def test_a_file_of_the_same_name_in_another_folder_is_no_match() -> None:
    assert weights([*OTHERS, Change("miss", {"tools/attention.py": 5})], Clues(files=["engine/attention.py"])) is None


def test_functions_and_options_are_found_in_the_words_of_a_change() -> None:
    changes = [*OTHERS, Change("hit", {"a.py": 1}, words_of("def build_for_capture(self, num_speculative_tokens):"))]
    assert ranked(changes, Clues(functions=["build_for_capture"]))[0] == "hit"
    assert ranked(changes, Clues(words=["num_speculative_tokens"]))[0] == "hit"


def test_documents_and_tests_alone_are_less_suspect_and_never_excluded() -> None:
    words = words_of("num_speculative_tokens")
    changes = [*OTHERS, Change("docs", {"docs/a.md": 5}, words), Change("code", {"engine/a.py": 5}, words)]
    found = weights(changes, Clues(words=["num_speculative_tokens"]))
    assert found is not None
    assert found["code"] > found["docs"] > 0


def test_without_a_match_there_is_no_prior() -> None:
    assert weights(OTHERS, Clues(files=["nowhere.py"], words=["nothing_like_it"])) is None
    assert weights(OTHERS, Clues()) is None


def test_a_clue_of_thousands_of_words_still_gives_weights() -> None:
    names = [f"name_{index}" for index in range(5000)]
    found = weights([*OTHERS, Change("hit", {"a.py": 1}, words_of(" ".join(names)))], Clues(words=names))
    assert found is not None
    assert found["hit"] > 0.8


names = st.sampled_from(["a.py", "b/a.py", "b/c.py", "d.md", "tests/e.py"])
changes_ = st.lists(st.dictionaries(names, st.integers(0, 500), max_size=4), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(changes_, st.lists(names, max_size=3), st.lists(names, max_size=3))
def test_every_commit_keeps_its_even_share_whatever_the_clues_say(paths, files, words) -> None:
    changes = [Change(str(index), mine) for index, mine in enumerate(paths)]
    found = weights(changes, Clues(files=files, words=words))
    if found is not None:
        assert sum(found.values()) == pytest.approx(1.0)
        assert min(found.values()) >= EVEN / len(changes) * (1 - 1e-9)


def test_the_words_that_clues_ask_for_weigh_the_same_without_all_others() -> None:
    clues = Clues(files=["engine/a.py"], functions=["build_for_capture"], words=["num_tokens", "Uniform"])
    texts = ["def build_for_capture(num_tokens): uniform", "nothing of it", "for tokens in num_tokens: pass"]
    whole = [Change(str(place), {f"engine/{'abc'[place]}.py": 3}, words_of(text)) for place, text in enumerate(texts)]
    asked = asked_words(clues)
    lean = [
        Change(one.sha, one.paths, {w: n for w, n in one.words.items() if w in asked}, sum(one.words.values()))
        for one in whole
    ]
    assert sum(len(change.words) for change in lean) < sum(len(change.words) for change in whole)
    assert weights(lean, clues) == weights(whole, clues) is not None


def test_it_points_to_the_files_that_commits_touch_innermost_first_and_else_to_words() -> None:
    changes = [*OTHERS, Change("hit", {"src/engine/runner.py": 5, "engine/attention.py": 1}, words_of("num_tokens"))]
    clues = Clues(["engine/nowhere.py", "engine/attention.py", "engine/runner.py"], words=["missing", "num_tokens"])
    assert pointers(changes, clues) == ("engine/attention.py", "engine/runner.py")
    assert pointers(changes, Clues(["engine/nowhere.py"], words=["missing", "num_tokens"])) == ("num_tokens",)
    assert pointers(changes, Clues(words=["missing"])) == ()


@pytest.mark.parametrize(("width", "plain"), [(1, 8), (2, 6), (4, 4), (8, 3)])
def test_a_prior_that_misleads_costs_one_round_at_most_with_any_number_of_workers(width: int, plain: int) -> None:
    range_ = line(249)
    prior = dict.fromkeys(range_.shas, EVEN / 249) | {
        range_.shas[place]: (1 - EVEN) / 5 for place in (9, 60, 61, 200, 247)
    }
    taken = [deterministic(range_, truth, width, prior).elapsed for truth in range(0, 249, 20)]
    assert max(taken) <= plain + 1


def test_words_are_identifiers_in_lower_case_and_their_parts() -> None:
    assert words_of("GDN num_reqs = x") == {"gdn": 1, "num_reqs": 1, "num": 1, "reqs": 1}
