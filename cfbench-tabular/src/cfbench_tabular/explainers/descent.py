"""Margins and their gradients, Adam, and bisection, shared by the gradient-based explainers.

With class y of a factual and log-odds z(c) = log(p1 / p0), the margin is s z(c), s = +1 for y = 0 and -1 for
y = 1: positive where c is in the other class. Its gradient is that of every loss of one row that decreases
with the margin (log loss, hinge, probability), up to a positive factor; unlike that of a probability it does not
vanish where the model is confident.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.classifier_contracts import Classifier, DifferentiableClassifier
from cfbench_tabular.classifiers.base import probabilities
from cfbench_tabular.column_types import OFF
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.grid import Grid
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

CLEAR = 1e-9
"""Minimum lead in probability of the other class: rounding on storage could reverse a tie."""

CLEAR_MARGIN = 4 * CLEAR
"""The corresponding lead in log-odds."""

ROWS = 2_000
"""Rows that are processed at once, so that their data fit into the cache of the processor."""


def leads(model: Classifier, points: FloatArray, classes: IntArray) -> FloatArray:
    """(n,) probability of the other class minus that of ``classes`` (n,)."""
    found = probabilities(model, points)
    lead: FloatArray = np.where(classes == 0, 1.0, -1.0) * (found[:, 1] - found[:, 0])
    return lead


def flips(model: Classifier, points: FloatArray, classes: IntArray) -> BoolArray:
    """(n,) whether ``points`` (n, d) are in the other class than ``classes`` (n,), with a lead of ``CLEAR``."""
    return leads(model, points, classes) > CLEAR


def margins(model: Classifier, points: FloatArray, classes: IntArray) -> FloatArray:
    """(n,) log-odds of the other class; a probability of 0 counts as the smallest positive number."""
    found = np.maximum(probabilities(model, points), np.finfo(np.float64).tiny)
    margin: FloatArray = np.where(classes == 0, 1.0, -1.0) * (np.log(found[:, 1]) - np.log(found[:, 0]))
    return margin


def margin_gradients(model: DifferentiableClassifier, points: FloatArray, classes: IntArray) -> FloatArray:
    """(n, d) the gradient of :func:`margins`.

    Raises:
        UserError: if the model returns another shape, NaN or infinity.
    """
    if len(points) == 0:
        return np.empty_like(points)
    found = np.asarray(model.log_odds_gradient(points), dtype=np.float64)
    if found.shape != points.shape or not np.isfinite(found).all():
        wrong = f"shape {found.shape}" if found.shape != points.shape else "NaN or infinity"
        raise UserError(
            f"log_odds_gradient returned {wrong} for {len(points)} rows of {points.shape[1]} numbers"
        )
    toward: FloatArray = np.where(classes == 0, 1.0, -1.0)[:, None] * found
    return toward


def over_flats(gradients: FloatArray, last: FloatArray) -> FloatArray:
    """(n, d) ``gradients``, with rows of zeros replaced by the ``last`` gradients.

    A ReLU network is flat where no relevant neuron is active; descent would stop there.
    """
    if gradients.shape[1] == 0 or gradients[:, 0].all():
        return gradients
    flat: BoolArray = np.asarray(~gradients.any(axis=1))
    return np.where(flat[:, None], last, gradients) if flat.any() else gradients


def signs(differences: FloatArray) -> FloatArray:
    """-1, 0 or 1; differences of the size of rounding errors count as 0, so that they do not determine a direction."""
    found: FloatArray = np.sign(differences)
    found[np.abs(differences) < 1e-12] = 0.0
    return found


class Adam:
    """Kingma & Ba 2015: m / (sqrt(v) + 1e-8) with decay .9 and .999; each row has its own moments."""

    def __init__(self, learning_rate: float, *shape: int) -> None:
        self.learning_rate = learning_rate
        self.steps = 0
        self.first = np.zeros(shape)
        self.second = np.zeros(shape)

    def step(self, gradient: FloatArray) -> FloatArray:
        """The step to subtract; ``gradient`` has the shape of the moments."""
        self.steps += 1
        self.first += 0.1 * (gradient - self.first)
        self.second += 0.001 * (gradient * gradient - self.second)
        root = np.sqrt(self.second)
        root /= np.sqrt(1 - 0.999**self.steps)
        root += 1e-8
        moved: FloatArray = self.first / root
        moved *= self.learning_rate / (1 - 0.9**self.steps)
        return moved

    def select(self, rows: BoolArray | IntArray) -> None:
        """Removes the moments of all other rows."""
        self.first, self.second = self.first[rows], self.second[rows]


def pulled_back(
    found: Callable[[FloatArray], BoolArray],
    starts: FloatArray,
    ends: FloatArray,
    halvings: int,
    snapped: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """(n, d) the points nearest to ``starts`` on the lines to ``ends`` for which ``found`` is true.

    ``found`` must be true for ``ends``. By bisection: exact if the line crosses the boundary once; otherwise ``found``
    is still true for the result. Each point of the line is tested at its nearest admissible values, ``snapped``.
    """
    near, far = np.zeros(len(ends)), np.ones(len(ends))
    nearest = ends.copy()
    middle = near  # the start itself is tried first
    for _ in range(halvings + 1):
        tried = snapped(starts + middle[:, None] * (ends - starts))
        good = found(tried)
        nearest[good] = tried[good]
        far, near = np.where(good, middle, far), np.where(good, near, middle)
        middle = (near + far) / 2
    return nearest


def steps_undone(
    found: Callable[[FloatArray], BoolArray],
    starts: FloatArray,
    rows: FloatArray,
    grid: Grid,
    snapped: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """(n, d) the rows with each number moved one step towards ``starts`` where ``found`` stays true.

    ``found`` must be true for ``rows``. Columns with long steps come first. A number that rounding moved by a whole
    step, although a fraction would have sufficed together with the others, returns to its start.
    """
    rows, length = rows.copy(), grid.step / grid.scale
    for place in np.argsort(-length, kind="stable"):
        position, step = grid.positions[place], length[place]
        away = rows[:, position] - starts[:, position]
        moving = np.abs(away) > OFF * step
        if not moving.any():
            continue
        back = np.where(
            np.abs(away) <= (1 + OFF) * step, starts[:, position], rows[:, position] - np.sign(away) * step
        )
        tried = rows.copy()
        tried[moving, position] = back[moving]
        tried = snapped(tried)
        good = moving & found(tried)
        rows[good] = tried[good]
    return rows


class Columns:
    """The columns of an encoding as arrays, for vectorised operations on categories of all sizes.

    Attributes:
        starts, widths: (M,) the first position of each column and its number of positions.
        numeric, two_valued, grouped: (M,) the kind of each column.
        of: (d,) the column of each position.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.widths = np.array([block.stop - block.start for block in encoding.blocks])
        self.starts = np.array([block.start for block in encoding.blocks])
        self.numeric = encoding.numeric[self.starts]
        self.grouped = self.widths > 1
        self.two_valued = ~self.numeric & ~self.grouped
        self.of = encoding.column_of
        self.places = {
            name: np.flatnonzero(kind[self.of])
            for name, kind in (
                ("numeric", self.numeric),
                ("two_valued", self.two_valued),
                ("grouped", self.grouped),
            )
        }

    def largest(self, values: FloatArray) -> FloatArray:
        """(n, M) the maximum over the positions of each column, for values (n, d)."""
        found: FloatArray = np.maximum.reduceat(values, self.starts, axis=1)
        return found

    def switches(self, rows: FloatArray, values: FloatArray) -> FloatArray:
        """(n, d) the excess of the ``values`` of each level over that of the current level of ``rows``.

        For a two-valued column: the change of its value times the value of its position. Minus infinity for numbers
        and for the current level of a row.
        """
        found = np.full(rows.shape, -np.inf)
        places = self.places["grouped"]
        if len(places):
            current = np.add.reduceat(np.where(rows > 0, values, 0.0), self.starts, axis=1)[
                :, self.of[places]
            ]
            found[:, places] = np.where(rows[:, places] == 0, values[:, places] - current, -np.inf)
        places = self.places["two_valued"]
        found[:, places] = (1 - 2 * rows[:, places]) * values[:, places]
        return found

    def centred(self, gradients: FloatArray) -> FloatArray:
        """(n, d) ``gradients`` minus their mean over the levels of each one-hot category.

        Only differences within a category matter, and Adam, which normalises the length of steps, would lose them.
        """
        if not self.grouped.any():
            return gradients
        mean = np.add.reduceat(gradients, self.starts, axis=1) / self.widths
        mean[:, ~self.grouped] = 0.0
        found: FloatArray = gradients - mean[:, self.of]
        return found

    def switched(self, rows: FloatArray, places: IntArray) -> FloatArray:
        """(n, d) ``rows`` with the category that ``places`` (n,) belongs to at that level (two-valued: flipped)."""
        changed = rows.copy()
        each = np.arange(len(rows))
        own = self.of[None, :] == self.of[places][:, None]
        turned = 1 - rows[each, places]
        changed[own] = 0.0
        changed[each, places] = turned
        return changed


def in_parts(size: int) -> list[slice]:
    """Consecutive parts of up to ``ROWS`` rows."""
    return [slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS)]


def gradient_model(model: Classifier) -> DifferentiableClassifier:
    """The model, typed as differentiable; the plan guarantees this to explainers that need gradients."""
    return cast("DifferentiableClassifier", model)
