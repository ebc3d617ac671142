"""Flaky failures: what is believed, when the search ends, and that the stated confidence is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from service.search import (
    UNKNOWN,
    Contradiction,
    Evidence,
    Found,
    Noise,
    Range,
    Searching,
    Suspects,
    conclusion,
    next_probes,
    redundant,
)
from service.search.belief import believe
from service.search.noise import Beta, Case, Fixed
from service.search.position import PATIENCE
from tests.search.histories import LONG, descendants, parent_lists, range_of

EXAMPLES = 500 if LONG else 60
SEEDS = 1000 if LONG else 100

verdicts = st.sampled_from(["good", "bad"])


def line(n: int) -> Range:
    return Range.of([str(index) for index in range(n)], goods=["end"])


def run(range_: Range, bad: set[str], rates: tuple[float, float], random, noise: Noise = UNKNOWN, untestable=()):
    evidence = Evidence()
    while probes := next_probes(range_, evidence, noise=noise):
        (sha,) = probes
        failed = random.random() >= rates[1] if sha in bad else random.random() < rates[0]
        evidence = evidence.plus(sha, "skip" if sha in untestable else "bad" if failed else "good")
    return evidence


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=30), st.data())
def test_the_same_runs_in_any_order_give_the_same_belief(parents, data) -> None:
    range_ = range_of(parents)
    places = st.integers(-1, len(parents) - 1).map(str)
    runs = data.draw(st.lists(st.tuples(places, verdicts), max_size=15))
    shuffled = data.draw(st.permutations(runs))
    one, other = (believe(range_, Evidence.of(some), noise=UNKNOWN) for some in (runs, shuffled))
    assert (one.weights == other.weights).all()
    assert (one.bad_if_bad == other.bad_if_bad).all()


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=30), st.data())
def test_no_run_ever_excludes_a_commit_and_beliefs_are_probabilities(parents, data) -> None:
    range_ = range_of(parents)
    runs = data.draw(st.lists(st.tuples(st.integers(-1, len(parents) - 1).map(str), verdicts), max_size=15))
    belief = believe(range_, Evidence.of(runs), noise=UNKNOWN)
    assert belief.weights.sum() == pytest.approx(1.0)
    assert (belief.weights > 0).all()
    for chance in (belief.bad_if_good, belief.bad_if_bad):
        assert ((chance >= 0) & (chance <= 1)).all()


@settings(max_examples=EXAMPLES, deadline=None)
@given(parent_lists(most=30), st.data())
def test_with_rates_of_zero_the_belief_is_the_set_of_candidates_left(parents, data) -> None:
    range_ = range_of(parents)
    bad = descendants(parents, data.draw(st.integers(0, len(parents) - 1)))
    tried = data.draw(st.lists(st.integers(0, len(parents) - 1), max_size=6))
    evidence = Evidence.of([(str(i), "bad" if i in bad else "good") for i in tried])
    exact, known = believe(range_, evidence), believe(range_, evidence, noise=Noise.known(0.0, 0.0))
    assert known.weights == pytest.approx(exact.weights)


def test_unknown_rates_are_integrated_over_and_not_estimated() -> None:
    noise = Noise((Case(1.0, Beta(2.0, 8.0), Beta(3.0, 5.0)),))
    evidence = Evidence.of([("0", "good"), ("1", "bad"), ("1", "good"), ("2", "bad"), ("2", "bad"), ("end", "bad")])
    grid = (np.arange(400) + 0.5) / 400
    false_bad, false_good = np.meshgrid(grid, grid)
    density = beta.pdf(false_bad, 2.0, 8.0) * beta.pdf(false_good, 3.0, 5.0)
    likelihoods = []
    for first_bad in range(4):
        chance = density.copy()
        for seen in evidence:
            fails = 1 - false_good if seen.sha != "end" and int(seen.sha) >= first_bad else false_bad
            chance *= fails if seen.verdict == "bad" else 1 - fails
        likelihoods.append(chance.sum())
    expected = np.array(likelihoods) / sum(likelihoods)
    assert believe(line(4), evidence, noise=noise).weights == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.1, 0.0), (0.0, 0.3), (0.1, 0.3), (0.2, 0.1), (0.05, 0.5)])
def test_answers_at_95_in_100_are_right_at_least_that_often(rates) -> None:
    random, range_ = np.random.default_rng(11), line(40)
    right = answered = 0
    for _ in range(SEEDS):
        truth = int(random.integers(len(range_)))
        evidence = run(range_, set(range_.shas[truth:]), rates, random)
        said = conclusion(range_, evidence, noise=UNKNOWN)
        if isinstance(said, Found):
            answered += 1
            right += said.sha == range_.shas[truth]
            assert said.confidence >= 0.95
        else:
            assert isinstance(said, Suspects)
    assert answered >= 0.8 * SEEDS
    # Two standard deviations of chance for so many seeds.
    assert right / answered >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / answered)


@settings(max_examples=30 if LONG else 8, deadline=None)
@given(parent_lists(most=25), st.data())
def test_a_flaky_search_ends_on_any_history_with_any_commits_that_cannot_be_tested(parents, data) -> None:
    range_ = range_of(parents)
    truth = data.draw(st.integers(0, len(parents) - 1))
    untestable = {str(i) for i in data.draw(st.sets(st.integers(0, len(parents) - 2), max_size=len(parents)))}
    bad = {str(i) for i in descendants(parents, truth)}
    random = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    evidence = run(range_, bad, (0.1, 0.3), random, untestable=untestable)
    said = conclusion(range_, evidence, noise=UNKNOWN)
    assert isinstance(said, Found | Suspects)
    assert sum(seen.verdict != "skip" for seen in evidence) <= PATIENCE * len(parents).bit_length()
    if isinstance(said, Suspects):
        assert list(said.odds) == sorted(said.odds, reverse=True)
        assert len(said.odds) == len(said.shas)


def test_a_failure_that_never_flakes_is_noticed_and_confirmed_in_few_runs() -> None:
    range_ = line(249)
    random = np.random.default_rng(2)
    runs = [len(run(range_, set(range_.shas[truth:]), (0.0, 0.0), random)) for truth in range(0, 249, 20)]
    assert max(runs) <= 15


def test_several_workers_share_a_flaky_search_and_the_answer_is_as_sure() -> None:
    random, range_ = np.random.default_rng(3), line(60)
    right = answered = 0
    for _ in range(40):
        truth, evidence, flying = int(random.integers(60)), Evidence(), []
        while True:
            for sha in redundant(range_, evidence, flying, noise=UNKNOWN):
                flying.remove(sha)
            flying += next_probes(range_, evidence, in_flight=flying, width=4, noise=UNKNOWN)
            assert len(flying) <= 4
            if not flying:
                break
            sha = flying.pop(int(random.integers(len(flying))))
            bad = sha != "end" and int(sha) >= truth
            evidence = evidence.plus(sha, "bad" if random.random() < (0.7 if bad else 0.1) else "good")
        said = conclusion(range_, evidence, noise=UNKNOWN)
        answered += isinstance(said, Found)
        right += isinstance(said, Found) and said.sha == str(truth)
    assert answered >= 38
    assert right >= 0.9 * answered


def test_untested_neighbours_of_the_answer_give_odds_and_no_answer() -> None:
    range_ = line(20)
    random = np.random.default_rng(1)
    untestable = {str(index) for index in range(8, 13)}
    evidence = run(range_, set(range_.shas[10:]), (0.1, 0.3), random, untestable=untestable)
    said = conclusion(range_, evidence, noise=UNKNOWN)
    assert isinstance(said, Suspects)
    assert "10" in said.shas
    assert max(said.odds) < 0.5


def test_the_good_end_is_tried_where_the_rate_of_good_commits_decides() -> None:
    little_known = Noise((Case(1.0, Beta(1.0, 4.0), Beta(1.0, 2.0)),))
    range_ = line(30)
    random = np.random.default_rng(4)
    tried = [seen.sha for _ in range(5) for seen in run(range_, set(range_.shas), (0.1, 0.3), random, little_known)]
    assert "end" in tried


def test_without_a_known_good_end_only_commits_of_the_range_are_tried() -> None:
    range_ = Range.of([str(index) for index in range(30)])
    random = np.random.default_rng(4)
    for _ in range(5):
        assert {seen.sha for seen in run(range_, set(range_.shas), (0.1, 0.3), random)} <= set(range_.shas)


def test_runs_that_no_known_rates_allow_are_a_contradiction() -> None:
    evidence = Evidence.of([("3", "good"), ("1", "bad")])
    said = conclusion(line(5), evidence, noise=Noise.known(0.0, 0.0))
    assert isinstance(said, Contradiction)
    assert {seen.sha for seen in said.evidence} == {"1", "3"}
    assert isinstance(conclusion(line(5), evidence, noise=Noise.known(0.1, 0.1)), Searching)


def test_once_the_answer_is_sure_enough_what_is_in_flight_is_worthless() -> None:
    evidence = Evidence.of([("4", "bad")] * 9 + [("3", "good")] * 9)
    assert redundant(line(9), evidence, ["4", "7"], noise=UNKNOWN) == ("4", "7")
    assert redundant(line(9), Evidence(), ["4", "4"], noise=UNKNOWN) == ()


def test_the_next_run_of_a_commit_is_chosen_beside_the_same_run_in_flight() -> None:
    range_ = line(64)
    alone = next_probes(range_, Evidence(), noise=Noise.known(0.1, 0.3), width=1)
    beside = next_probes(range_, Evidence(), noise=Noise.known(0.1, 0.3), in_flight=alone, width=2)
    assert len(beside) == 1
    assert beside != alone


def test_a_fixed_rate_is_the_binomial_and_never_means_never() -> None:
    hits, misses = np.array([2, 1]), np.array([3, 0])
    assert Fixed(0.25).log_likelihood(hits, misses) == pytest.approx(np.log([0.25**2 * 0.75**3, 0.25]))
    assert Fixed(0.0).log_likelihood(hits, misses).tolist() == [-np.inf, -np.inf]
