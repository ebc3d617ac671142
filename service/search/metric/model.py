"""How well a history explains what was measured. Under a hypothesis a run's number is

    the bench's level + the sum of the steps that lie behind the commit + noise,

with a flat prior for the level of each bench, a normal one for each step and Jeffreys' for the noise, all integrated
out in closed form: the normal-inverse-gamma model of Bayesian regression (Gelman et al., Bayesian Data Analysis, 2013,
chapter 14). Flat levels take part by centring each bench's numbers on its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.search.graph import Floats, Ints
from service.search.metric.table import GOOD_END, Table

#: The noise is taken to be at least about this share of the difference between the ends, as if one run had shown it:
#: a metric that never varied so far may do so yet.
FLOOR = 0.03


@dataclass(frozen=True, eq=False)
class Columns:
    """`x[cell, column]`: how much of that change lies behind the cell's commit, from 0 to 1."""

    x: Floats
    gram: Floats
    fit: Floats
    mean: Floats


@dataclass(frozen=True, eq=False)
class Model:
    """`rest`: squares about the benches' means. `least`: what is added to all squares, as the floor of the noise.
    `freedom`: of the noise. `stride`: variance of the prior of a step, as a multiple of the noise's. `level`: the mean
    of everything, about the table's centre."""

    table: Table
    rest: float
    least: float
    freedom: float
    stride: float
    level: float

    def columns(self, x: Floats) -> Columns:
        cells = self.table
        sums = cells.by_bench(cells.runs[:, None] * x)
        means = sums / self.sizes[:, None]
        gram = (x * cells.runs[:, None]).T @ x - sums.T @ means
        fit = x.T @ cells.total - means.T @ cells.by_bench(cells.total)
        return Columns(x, gram, fit, sums.sum(axis=0) / cells.runs.sum())

    @property
    def sizes(self) -> Floats:
        return self.table.by_bench(self.table.runs)


def model(table: Table, bad: int) -> Model:
    sizes, sums = table.by_bench(table.runs), table.by_bench(table.total)
    rest = float(table.squares.sum() - (sums**2 / sizes).sum())
    gap, noise = gap_and_noise(table, bad)
    least = (FLOOR**2) * (gap**2 + rest / float(table.runs.sum())) or 1.0
    stride = max(gap**2 / max(noise, least), 1.0)
    freedom = max(float(table.runs.sum()) - len(sizes), 0.0) + 1.0
    return Model(table, max(rest, 0.0), least, freedom, stride, float(table.total.sum() / table.runs.sum()))


def gap_and_noise(table: Table, bad: int) -> tuple[float, float]:
    """By the ends alone: how much worse the bad one is, and the variance of a run. As good as nothing without both."""
    ends = (table.commits == GOOD_END) | (table.commits == bad)
    side = table.commits[ends] == bad
    runs, total, bench = table.runs[ends], table.total[ends], table.benches[ends]
    gaps, weights = [], []
    for one in set(bench.tolist()):
        mine = bench == one
        good, worse = mine & ~side, mine & side
        if good.any() and worse.any():
            gaps.append(float(total[worse].sum() / runs[worse].sum() - total[good].sum() / runs[good].sum()))
            weights.append(min(float(runs[good].sum()), float(runs[worse].sum())))
    within = float((table.squares[ends] - total**2 / runs).sum()) if ends.any() else 0.0
    noise = within / max(float(runs.sum()) - len(runs), 1.0)
    return (float(np.average(gaps, weights=weights)) if gaps else 0.0), noise


@dataclass(frozen=True, eq=False)
class Fits:
    """Of each hypothesis: the logarithm of its marginal likelihood, its steps and their covariance for noise 1, the
    noise's variance, and the level before every step."""

    likelihood: Floats
    steps: Floats
    spread: Floats
    noise: Floats
    level: Floats


def fits(model: Model, columns: Columns, chosen: Ints) -> Fits:
    """`chosen[h]`: the columns of hypothesis h, as many for each."""
    count = chosen.shape[1]
    system = np.empty((len(chosen), count + 1, count + 1))
    system[:, :count, :count] = columns.gram[chosen[:, :, None], chosen[:, None, :]] + np.eye(count) / model.stride
    system[:, :count, count] = system[:, count, :count] = columns.fit[chosen]
    system[:, count, count] = model.rest + model.least
    logdet = swept(system)
    likelihood = -0.5 * (logdet + count * np.log(model.stride)) - 0.5 * model.freedom * np.log(system[:, count, count])
    steps = system[:, :count, count]
    level = model.level - (steps * columns.mean[chosen]).sum(axis=1)
    return Fits(likelihood, steps, system[:, :count, :count], system[:, count, count] / model.freedom, level)


def swept(system: Floats) -> Floats:
    """Sweeps all but the last row of each symmetric matrix, in place: what is left is the inverse, the solution in the
    last column and the residual in the corner. Returns the logarithm of the determinant.

    Source: Goodnight, A tutorial on the SWEEP operator (1979).
    """
    logdet: Floats = np.zeros(len(system))
    for at in range(system.shape[1] - 1):
        pivot = system[:, at, at].copy()
        logdet += np.log(pivot)
        row = system[:, at, :] / pivot[:, None]
        column = system[:, :, at].copy()
        system -= column[:, :, None] * row[:, None, :]
        system[:, at, :] = row
        system[:, :, at] = -column / pivot[:, None]
        system[:, at, at] = 1 / pivot
    return logdet


def uneven(model: Model, x: Floats, ratio: float) -> Fits:
    """One step at each column, behind which the noise's variance is `ratio` times that before it."""
    cells = model.table
    weight = np.where(x > 0, 1 / ratio, 1.0)
    runs, total = cells.runs[:, None] * weight, cells.total[:, None] * weight
    size, sums, behind = cells.by_bench(runs), cells.by_bench(total), cells.by_bench(runs * x)
    system = np.empty((x.shape[1], 2, 2))
    system[:, 0, 0] = (runs * x).sum(axis=0) - (behind**2 / size).sum(axis=0) + 1 / model.stride
    system[:, 0, 1] = system[:, 1, 0] = (total * x).sum(axis=0) - (behind * sums / size).sum(axis=0)
    system[:, 1, 1] = (cells.squares[:, None] * weight).sum(axis=0) - (sums**2 / size).sum(axis=0) + model.least
    logdet = swept(system) + np.log(model.stride) + np.log(size / model.sizes[:, None]).sum(axis=0)
    logdet = logdet + np.log(ratio) * (cells.runs[:, None] * (x > 0)).sum(axis=0)
    steps = system[:, :1, 1]
    level = total.sum(axis=0) / runs.sum(axis=0) - steps[:, 0] * behind.sum(axis=0) / runs.sum(axis=0)
    rest = np.maximum(system[:, 1, 1], model.least)
    return Fits(
        -0.5 * logdet - 0.5 * model.freedom * np.log(rest), steps, system[:, :1, :1], rest / model.freedom, level
    )
