"""What a search that has to stop says of the first bad commit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.search import UNKNOWN, Evidence, Found, Observation, Range, conclusion, known


@given(st.integers(2, 40), st.data())
def test_it_holds_the_first_bad_commit_and_is_what_is_found_in_the_end(n: int, data: st.DataObject) -> None:
    shas = [f"{number:040x}" for number in range(n)]
    range_, first = Range.of(shas), data.draw(st.integers(0, n - 1))
    seen = [Observation(shas[-1], "bad")]
    for index in data.draw(st.lists(st.integers(0, n - 1), max_size=8)):
        seen.append(Observation(shas[index], "bad" if index >= first else "good"))
        evidence = Evidence(tuple(seen))
        left = known(range_, evidence)
        assert shas[first] in left
        assert list(left) == [sha for sha in shas if sha in left]
        if isinstance(end := conclusion(range_, evidence), Found):
            assert left == (end.sha,)


@given(st.integers(3, 30), st.integers(1, 6))
def test_when_verdicts_may_err_none_is_excluded_and_the_most_suspect_comes_first(n: int, bad: int) -> None:
    shas = [f"{number:040x}" for number in range(n)]
    evidence = Evidence(tuple(Observation(shas[1], "bad", trial) for trial in range(bad)))
    left = known(Range.of(shas), evidence, noise=UNKNOWN, confidence=1 - 1e-12)
    assert len(left) == n
    assert set(left[:2]) == set(shas[:2])
