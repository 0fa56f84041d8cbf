"""ALIBIC's refinement on random tables: never worse by the objective, valid, and within types, locks, directions and ranges.

The objective and the checks are computed here from raw values. Only where the levels of a category of three or more are on
their line is taken from the package (``test_levels.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.classifiers.mlp import from_weights
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import alibic, alibic_nograd, refinement
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.table import Column, Table, complete

BETA, THETA = 0.5, 0.2
ROWS, EXPLAINED = 60, 12
LEVELS = ("low", "middle", "high", "top")
STEPS = {"whole": 1.0, "tenths": 0.1}
VARIANTS = {
    "alibic": lambda **options: alibic.ALIBIC(alibic.Config(**options)),
    "alibic-nograd": lambda **options: alibic_nograd.ALIBICNoGrad(alibic_nograd.Config(**options)),
}

kinds = st.sampled_from(["whole", "whole", "tenths", "any", "ordered", "binary", "colour"])
ways = st.sampled_from(["free", "free", "locked", "up", "down", "ranged"])
tables = st.lists(st.tuples(kinds, ways), min_size=2, max_size=5)


@dataclass
class Setting:
    """A random table, and rows of it with the classes of a model, for which ``answers`` are found."""

    table: Table
    encoding: Encoding
    model: object
    vectors: np.ndarray

    def __post_init__(self) -> None:
        self.known = self.model.predict_proba(self.vectors).argmax(axis=1)
        units = tuple(map(str, range(EXPLAINED)))
        self.factuals = Factuals(self.vectors[:EXPLAINED], self.known[:EXPLAINED], units)

    def answers(self, explainer) -> np.ndarray:
        context = Context(self.encoding, self.vectors, lambda unit: generator("test", unit))
        return Explanation.of(explainer.counterfactuals(self.model, self.factuals, context)).counterfactuals

    def coordinates(self, vectors: np.ndarray) -> np.ndarray:
        """(n, M) standardised numbers, 0 or 1 for two levels, the places of more levels on their line."""
        space = Space.of_columns(self.encoding, self.vectors, self.known, "mvdm")
        there = np.isfinite(space.places)
        lines = dict(zip(space.positions[there], space.places[there], strict=True))
        parts = []
        for block in self.encoding.blocks:
            if block.stop - block.start == 1:
                parts.append(vectors[:, block.start])
            else:
                parts.append(np.array([lines[block.start + row[block].argmax()] for row in vectors]))
        return np.stack(parts, axis=1)

    def objectives(self, vectors: np.ndarray) -> list[np.ndarray]:
        """beta ||c - x||_1 + ||c - x||_2^2 + theta ||c - p||_2^2 of each answer; infinite where there is none.

        (P,) of each: one for each row p of the other class that is nearest to x, of which the package chooses one.
        """
        known, found = self.coordinates(self.vectors), []
        for place, row in enumerate(vectors):
            others = known[self.known != self.known[place]]
            distances = ((others - known[place]) ** 2).sum(axis=1)
            nearest = np.unique(others[distances <= distances.min() + 1e-9], axis=0)
            if np.isnan(row).any():
                found.append(np.full(len(nearest), np.inf))
                continue
            (point,) = self.coordinates(row[None])
            away = point - known[place]
            terms = BETA * np.abs(away) + away**2 + THETA * (point - nearest) ** 2
            found.append(terms.sum(axis=1))
        return found


def setting_of(kinds_and_ways: list[tuple[str, str]], seed: int, hidden: int) -> Setting:
    """``hidden``: units of the network, 0 for a linear model."""
    draw = np.random.default_rng(seed)
    columns, values = [], {}
    for place, (kind, way) in enumerate(kinds_and_ways):
        name = f"x{place}"
        options = {"immutable": way == "locked"}
        if way in ("up", "down") and kind != "colour":
            options["direction"] = way
        if kind in ("ordered", "binary", "colour"):
            levels = LEVELS[:2] if kind == "binary" else LEVELS
            codes = draw.integers(len(levels), size=ROWS)
            values[name] = np.array(levels, dtype=object)[codes]
            columns.append(Column(name, "categorical", levels, ordered=kind == "ordered", **options))
            continue
        numbers = draw.normal(5, draw.choice([1.0, 3.0, 20.0]), size=ROWS)
        if kind in STEPS:
            numbers = np.round(numbers / STEPS[kind]) * STEPS[kind]
        if way == "ranged":  # some factuals are outside
            options |= {"low": float(np.quantile(numbers, 0.1)), "high": float(np.quantile(numbers, 0.8))}
        values[name] = np.round(numbers, 6)
        columns.append(Column(name, step=STEPS.get(kind), **options))
    target = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
    table = Table("random", tuple(columns), values, target, "yes")
    encoding = Encoding.fit(table, np.arange(ROWS))
    vectors, width = encoding.encode(values), encoding.width
    if hidden:
        shapes = {"W1": (width, hidden), "b1": hidden, "W2": (hidden, 2), "b2": 2}
        model = from_weights({name: draw.normal(size=shape) for name, shape in shapes.items()})
    else:
        model = LogisticRegression(LogisticConfig())
        model.coefficients, model.intercept = draw.normal(size=width), float(draw.normal())
    return Setting(table, encoding, model, vectors)


def assert_admissible(setting: Setting, answers: np.ndarray) -> None:
    """Types, locks, directions and ranges, column by column, by raw values."""
    encoding = setting.encoding
    for place, (column, block) in enumerate(zip(setting.table.columns, encoding.blocks, strict=True)):
        rows, own = answers[:, block], setting.factuals.vectors[:, block]
        given = complete(answers)
        rows, own = rows[given], own[given]
        if column.immutable:
            assert (rows == own).all()
        if not column.scalar:
            assert np.isin(rows, (0.0, 1.0)).all()
            if rows.shape[1] > 1:
                assert (rows.sum(axis=1) == 1.0).all()
            else:
                assert column.direction != "up" or (rows >= own).all()
                assert column.direction != "down" or (rows <= own).all()
            continue
        raw, mine = (part[:, 0] * encoding.scale[place] + encoding.mean[place] for part in (rows, own))
        step = 1.0 if column.ordered else column.step
        if step is not None:
            assert raw / step == pytest.approx(np.round(raw / step), abs=1e-6)
        seen = setting.table.values[column.name]
        least, most = (0, len(LEVELS) - 1) if column.ordered else (seen.min(), seen.max())
        least = least if column.low is None else column.low
        most = most if column.high is None else column.high
        least = np.minimum(mine if column.direction == "up" else least, mine)
        most = np.maximum(mine if column.direction == "down" else most, mine)
        assert (raw >= least - 1e-9).all() and (raw <= most + 1e-9).all()


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns=tables, seed=st.integers(0, 2**16), hidden=st.sampled_from([0, 4, 8]))
@example(
    columns=[("whole", "ranged"), ("any", "ranged"), ("colour", "locked"), ("ordered", "up")],
    seed=1,
    hidden=8,
)
@example(
    columns=[("any", "down"), ("tenths", "free"), ("binary", "up"), ("colour", "free")], seed=2, hidden=4
)
def test_refined_answers_are_never_worse_valid_and_admissible(variant, columns, seed, hidden):
    setting = setting_of(columns, seed, hidden)
    assume(0 < setting.known.mean() < 1)
    plain, refined = (setting.answers(VARIANTS[variant](refined=refined)) for refined in (False, True))
    given = complete(refined)
    assert (given | ~complete(plain)).all()
    for before, after in zip(setting.objectives(plain), setting.objectives(refined), strict=True):
        assert (after <= before + 1e-9).any()
    predicted = setting.model.predict_proba(refined[given]).argmax(axis=1)
    assert (predicted != setting.factuals.classes[given]).all()
    assert_admissible(setting, refined)


def test_refinement_improves_the_answers() -> None:
    """So that the test above compares two different answers."""
    setting = setting_of([("whole", "free"), ("any", "free"), ("colour", "free"), ("tenths", "free")], 3, 8)
    plain, refined = (setting.answers(alibic.ALIBIC(alibic.Config(refined=on))) for on in (False, True))
    pairs = zip(setting.objectives(plain), setting.objectives(refined), strict=True)
    assert any((after < before - 1e-3).all() and np.isfinite(before).all() for before, after in pairs)


def exchanged(setting: Setting, answer: np.ndarray, place: int) -> Iterator[np.ndarray]:
    """Every row of whole numbers with two columns (or one) other than the answer's, one of them as in the factual."""
    encoding, width = setting.encoding, len(answer)
    low, high = (np.rint(side * encoding.scale + encoding.mean) for side in encoding.bounds)
    for reset in range(width):
        for column in set(range(width)) - {reset}:
            values = np.arange(low[column], high[column] + 1)
            rows = np.tile(answer, (len(values), 1))
            rows[:, reset] = setting.factuals.vectors[place, reset]
            rows[:, column] = (values - encoding.mean[column]) / encoding.scale[column]
            yield rows


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(size=st.integers(2, 5), seed=st.integers(0, 2**16))
@example(size=3, seed=185)  # the better row is at the end of a range, missed by rounding
@example(size=5, seed=2520)  # one column alone goes back, which adds to the margin
def test_no_exchange_of_two_columns_is_better(monkeypatch, size, seed):
    """Whole numbers and a linear model, whose linearised margin is exact; theta = 0: columns are reset to the factual.

    Exchanges go on until none is better, not only while they are worth it.
    """
    monkeypatch.setattr(refinement, "WORTH", 0.0)
    monkeypatch.setattr(refinement, "EXCHANGES", 20)
    setting = setting_of([("whole", "free")] * size, seed, 0)
    assume(0 < setting.known.mean() < 1)
    refined = setting.answers(alibic.ALIBIC(alibic.Config(theta=0.0)))
    for place, answer in enumerate(refined):
        start = setting.factuals.vectors[place]
        rows = np.concatenate(list(exchanged(setting, answer, place)))
        lead = (setting.model.coefficients @ rows.T + setting.model.intercept) * (
            1 - 2 * setting.known[place]
        )
        away = rows[lead > 1e-6] - start
        if len(away) and not np.isnan(answer).any():
            least = (BETA * np.abs(away) + away**2).sum(axis=1).min()
            reached = (BETA * np.abs(answer - start) + (answer - start) ** 2).sum()
            assert reached <= least + 1e-9
