"""How often verdicts are wrong: a bad commit may pass, a good one may fail, and at first nobody knows how often.

The rates are never estimated. For each candidate the likelihood of all verdicts is integrated over every pair of
rates that the model allows, in closed form, so that what is not known about the rates stays in the answer's confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.graph import Floats, Ints


@dataclass(frozen=True)
class Beta:
    """An unknown rate, believed in as if `hits` and `misses` had been seen before."""

    hits: float
    misses: float

    def log_likelihood(self, hits: Ints, misses: Ints) -> Floats:
        """Source: the Beta-binomial distribution, for one order of the hits and misses."""
        # Loading scipy takes longer than all the rest of this package, and only a flaky failure needs it.
        from scipy.special import betaln

        found: Floats = betaln(self.hits + hits, self.misses + misses) - betaln(self.hits, self.misses)
        return found


@dataclass(frozen=True)
class Fixed:
    """A known rate. Zero means never."""

    rate: float

    def log_likelihood(self, hits: Ints, misses: Ints) -> Floats:
        from scipy.special import xlog1py, xlogy

        found: Floats = xlogy(hits, self.rate) + xlog1py(misses, -self.rate)
        return found


Rate = Beta | Fixed


@dataclass(frozen=True)
class Case:
    """One way in which the verdicts may err, and how much it is believed in."""

    weight: float
    false_bad: Rate
    false_good: Rate


@dataclass(frozen=True)
class Noise:
    """The ways in which verdicts may err. `UNKNOWN` is the one to take when a failure may be flaky.

    `caution` multiplies the doubt that is left in an answer before it is stated: where the rates are unknown, some that
    are real are less likely under the cases than they should be.
    """

    cases: tuple[Case, ...]
    caution: float = 1.0

    @classmethod
    def known(cls, false_bad: float, false_good: float) -> Noise:
        """Rates known beforehand: the share of good commits' runs that fail, of bad commits' runs that pass."""
        return cls((Case(1.0, Fixed(false_bad), Fixed(false_good)),))

    def stated(self, share: float) -> float:
        """The confidence to state for a candidate that holds this share of the belief."""
        return max(0.0, 1.0 - self.caution * (1.0 - share))

    def log_likelihood(self, counts: Counts) -> Floats:
        parts = [
            np.log(case.weight)
            + case.false_bad.log_likelihood(counts.bad_below, counts.good_below)
            + case.false_good.log_likelihood(counts.good_above, counts.bad_above)
            for case in self.cases
        ]
        found: Floats = np.logaddexp.reduce(parts, axis=0)
        return found


@dataclass(frozen=True)
class Counts:
    """For each candidate, were it the first bad commit: verdicts of commits that would be good ("below" the fault) and
    of commits that would be bad ("above" it)."""

    good_below: Ints
    bad_below: Ints
    good_above: Ints
    bad_above: Ints

    def distinct(self) -> tuple[Counts, Ints]:
        """Each combination once, and for each candidate which one is its own: they are few."""
        key = self.good_above * (int(self.bad_above.max()) + 1) + self.bad_above
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        parts = (self.good_below, self.bad_below, self.good_above, self.bad_above)
        return Counts(*(part[first] for part in parts)), same

    def plus(self, bad_below: int = 0, bad_above: int = 0) -> Counts:
        return Counts(self.good_below, self.bad_below + bad_below, self.good_above, self.bad_above + bad_above)


NEVER = Fixed(0.0)
SOME_BAD, SOME_GOOD = Beta(3.4, 27.0), Beta(2.8, 5.4)
#: Fitted on simulations, so that answers are right as often as stated whether a failure is flaky or not, over rates of
#: up to 20 % false bad and 50 % false good, in as few runs as possible. docs/search.md has the figures.
UNKNOWN = Noise(
    (
        Case(0.38, NEVER, NEVER),
        Case(0.1, SOME_BAD, NEVER),
        Case(0.14, NEVER, SOME_GOOD),
        Case(0.38, SOME_BAD, SOME_GOOD),
    ),
    caution=2.0,
)
