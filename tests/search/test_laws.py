"""Laws of the search when every verdict is true: the truth is never lost, the search ends, order does not matter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from service.search import Contradiction, Evidence, Found, Searching, Suspects, conclusion, next_probes, redundant
from tests.search.histories import LONG, descendants, parent_lists, range_of

EXAMPLES = 2000 if LONG else 150


def weights_or_none(shas) -> st.SearchStrategy[dict[str, float] | None]:
    """Also weights so far apart that next to the largest the others vanish."""
    some = st.dictionaries(st.sampled_from(shas), st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 3.0, 1e12, 1e300]))
    return st.none() | some


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=60), st.data())
def test_the_truth_is_never_lost_and_the_search_ends_in_any_order_of_answers(parents, data) -> None:
    range_ = range_of(parents)
    truth = data.draw(st.integers(0, len(parents) - 1))
    bad = descendants(parents, truth)
    skips = set(data.draw(st.lists(st.integers(0, len(parents) - 2), max_size=len(parents))))
    width = data.draw(st.integers(1, 4))
    prior, cost = data.draw(weights_or_none(range_.shas)), data.draw(weights_or_none(range_.shas))
    evidence, flying, started = Evidence(), [], set()
    while True:
        for sha in redundant(range_, evidence, flying):
            flying.remove(sha)
        new = next_probes(range_, evidence, prior, flying, width, cost)
        assert not started & set(new)
        assert len(flying) + len(new) <= width
        started |= set(new)
        flying += new
        if not flying:
            break
        sha = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
        place = int(sha)
        evidence = evidence.plus(sha, "skip" if place in skips else "bad" if place in bad else "good")
        said = conclusion(range_, evidence, prior)
        assert isinstance(said, Searching | Found | Suspects)
    assert said_holds(conclusion(range_, evidence, prior), str(truth), skips)


def said_holds(said, truth: str, skips: set[int]) -> bool:
    if isinstance(said, Found):
        return said.sha == truth
    return isinstance(said, Suspects) and truth in said.shas and len(set(said.shas) - {str(i) for i in skips}) <= 1


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=40), st.data())
def test_the_same_evidence_in_any_order_gives_the_same_choice_and_conclusion(parents, data) -> None:
    range_ = range_of(parents)
    bad = descendants(parents, data.draw(st.integers(0, len(parents) - 1)))
    tried = data.draw(st.lists(st.integers(0, len(parents) - 1), unique=True, max_size=8))
    skips = data.draw(st.sets(st.sampled_from(tried), max_size=3)) if tried else set()
    pairs = [(str(i), "skip" if i in skips else "bad" if i in bad else "good") for i in tried]
    shuffled = data.draw(st.permutations(pairs))
    one, other = Evidence.of(pairs), Evidence.of(shuffled)
    assert next_probes(range_, one) == next_probes(range_, other)
    assert conclusion(range_, one) == conclusion(range_, other)


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=40), st.data())
def test_any_verdicts_at_all_end_in_a_conclusion_and_a_contradiction_names_its_evidence(parents, data) -> None:
    range_ = range_of(parents)
    verdicts = st.tuples(st.integers(0, len(parents) - 1).map(str), st.sampled_from(["good", "bad", "skip"]))
    evidence = Evidence.of(data.draw(st.lists(verdicts, max_size=8)))
    said = conclusion(range_, evidence)
    if isinstance(said, Contradiction):
        assert said.evidence
        assert set(said.evidence) <= set(evidence)
        assert isinstance(conclusion(range_, Evidence(said.evidence)), Contradiction)
    else:
        assert isinstance(said, Searching | Found | Suspects)
