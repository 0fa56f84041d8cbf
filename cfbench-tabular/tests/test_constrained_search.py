"""Explainers that do not know of constraints between columns return rows that satisfy them."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.config import Protocol
from cfbench_tabular.constrained_search import explain_with_constraints
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table, complete
from cfbench_tabular.testing import context_of, factuals_of, fitted

OPTIONS = {"lore": {"population": 200, "generations": 4}, "growing-spheres": {"samples": 300}}
READS_PARAMETERS = {"optimum", "tree-optimum", "mace"}
NAMES = sorted(set(installed().names("tabular", "explainer")) - READS_PARAMETERS - {"exhaustive"})
ACCESS = {
    name: installed().find("tabular", "explainer", name).spec.needs["classifier"]["access"] for name in NAMES
}
CASES = [
    *((name, "linear") for name in NAMES if "trees" not in ACCESS[name]),
    *((name, "trees") for name in NAMES if "gradients" not in ACCESS[name]),
]
ROWS = 240
CONSTRAINTS = (
    Constraint(column="area", relation="product", of=("height", "length"), absolute=0.5),
    Constraint(column="share", relation="ratio", of=("dark", "area"), absolute=0.0051),
    Constraint(column="price", relation="at_least", of=("tax",)),
)


def table_of(immutable: str = "") -> Table:
    """Rectangles with the share of their area that is dark; expensive ones are mostly large and dark."""
    draw = np.random.default_rng(3)
    height, length = draw.integers(2, 30, size=ROWS), draw.integers(2, 30, size=ROWS)
    area = height * length
    dark = np.floor(area * draw.uniform(0.05, 1, size=ROWS))
    tax = np.round(draw.uniform(0, 40, size=ROWS), 2)
    values = {
        "height": height.astype(float),
        "length": length.astype(float),
        "area": area.astype(float),
        "dark": dark,
        "share": np.round(dark / area, 2),
        "tax": tax,
        "price": np.round(tax + draw.uniform(0, 60, size=ROWS), 2),
        "paper": draw.choice(np.array(["thin", "thick", "card"], dtype=object), size=ROWS),
    }
    steps = {"share": 0.01, "tax": 0.01, "price": 0.01}
    columns = tuple(
        Column(name, "categorical", ("thin", "thick", "card"))
        if name == "paper"
        else Column(name, step=steps.get(name, 1.0), immutable=name == immutable)
        for name in values
    )
    score = area / area.std() + 2 * values["share"] + values["price"] / 40 + draw.normal(0, 0.3, size=ROWS)
    target = np.where(score > np.median(score), "yes", "no").astype(object)
    return Table("rectangles", columns, values, target, "yes", CONSTRAINTS)


@functools.cache
def prepared(kind: str, immutable: str = ""):
    data = PreparedDataset.make(table_of(immutable), 0.2, 0.2, generator("tabular", "split", 0))
    model = (
        LogisticRegression(LogisticConfig())
        if kind == "linear"
        else GradientBoosting(BoostingConfig(trees=20))
    )
    model = fitted(model, data)
    return data, model, factuals_of(model, data, slice(0, 20)), context_of(data, model)


def explainer_of(name: str):
    spec = installed().find("tabular", "explainer", name).spec
    return resolve(spec.target)(resolve(str(spec.config))(**OPTIONS.get(name, {})))


def feasible(data: PreparedDataset, model, factuals: Factuals, found: np.ndarray) -> np.ndarray:
    """(B,) by raw values: valid, constraints satisfied, at the steps, within the ranges."""
    good = complete(found)
    rows = data.encoding.decode(found[good])
    satisfied = np.ones(good.sum(), dtype=bool)
    satisfied &= np.abs(rows["area"] - rows["height"] * rows["length"]) <= 0.5 + 1e-6
    satisfied &= np.abs(rows["share"] - rows["dark"] / rows["area"]) <= 0.0051 + 1e-6
    satisfied &= rows["price"] >= rows["tax"] - 1e-6
    for column in data.encoding.columns:
        if column.kind == "numeric":
            seen, numbers = data.table.values[column.name], rows[column.name]
            satisfied &= (numbers >= seen.min() - 1e-6) & (numbers <= seen.max() + 1e-6)
            satisfied &= np.abs(numbers / column.step - np.rint(numbers / column.step)) < 1e-6
    valid = predicted_classes(model, found[good]) != factuals.classes[good]
    good[good] = satisfied & valid
    return good


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_each_explainer_returns_satisfies_the_constraints(name: str, kind: str) -> None:
    data, model, factuals, context = prepared(kind)
    found = explain_with_constraints(explainer_of(name), model, factuals, context).stacked()[:, 0]
    given = complete(found)
    assert given.mean() >= 0.5
    assert feasible(data, model, factuals, found)[given].all()


def test_without_repair_most_explainers_violate_the_constraints() -> None:
    data, model, factuals, context = prepared("linear")
    for name in ("nice", "cadex", "growing-spheres", "random"):
        found = Explanation.of(explainer_of(name).counterfactuals(model, factuals, context)).stacked()[:, 0]
        assert feasible(data, model, factuals, found).mean() < 0.5


@pytest.mark.parametrize("immutable", ["", "area", "height"])
def test_results_do_not_depend_on_the_rest_of_the_batch(immutable: str) -> None:
    data, model, factuals, context = prepared("linear", immutable)
    explainer = explainer_of("growing-spheres")
    together = explain_with_constraints(explainer, model, factuals, context).stacked()
    for place in range(0, len(factuals), 4):
        part = slice(place, place + 1)
        alone = Factuals(factuals.vectors[part], factuals.classes[part], factuals.units[part])
        one = explain_with_constraints(explainer, model, alone, context).stacked()
        assert np.array_equal(one[0], together[place], equal_nan=True)
    if immutable:
        given = complete(together[:, 0])
        position = [column.name for column in data.encoding.columns].index(immutable)
        unchanged = together[given, 0, position] == factuals.vectors[given, position]
        assert given.any() and unchanged.all()


def test_sets_and_details_are_those_of_each_factual() -> None:
    data, model, factuals, context = prepared("linear")
    several = replace(context, counterfactuals_per_instance=3)
    found = explain_with_constraints(explainer_of("dice"), model, factuals, several).stacked()
    assert found.shape == (len(factuals), 3, data.encoding.width)
    given = complete(found.reshape(-1, data.encoding.width))
    assert data.encoding.constraints_hold(found.reshape(-1, data.encoding.width)[given]).all()

    class Numbered:
        def counterfactuals(self, model, factuals: Factuals, context: Context) -> Explanation:
            return Explanation(
                np.full_like(factuals.vectors, np.nan), {"unit": np.array(factuals.units, dtype=float)}
            )

    details = explain_with_constraints(Numbered(), model, factuals, context).details
    assert details["unit"].tolist() == [float(unit) for unit in factuals.units]


@pytest.mark.parametrize("name", ["dice", "growing-spheres", "dice-random"])
def test_counterfactuals_of_a_set_are_as_far_apart_as_without_constraints(name: str) -> None:
    """They are repaired after they were spaced, which may move two of them together."""
    _, model, factuals, context = prepared("linear")
    explainer = explainer_of(name)
    several = replace(context, counterfactuals_per_instance=4)
    found = explain_with_constraints(explainer, model, factuals, several).stacked()
    minimum = explainer.config.minimum_distance
    assert minimum > 0
    pairs = 0
    for rows in found:
        own = rows[complete(rows)]
        assert not complete(rows)[len(own) :].any(), "what is missing comes last"
        for at, row in enumerate(own):
            distances = np.linalg.norm(own[at + 1 :] - row, axis=1)
            assert (distances >= minimum - 1e-9).all()
            pairs += len(distances)
    assert pairs


def test_rows_that_the_repair_moves_onto_another_are_left_out() -> None:
    _, model, factuals, context = prepared("linear")

    class Area:
        """Two rows that differ in a column which the repair computes from others, and a third one."""

        def counterfactuals(self, model, factuals: Factuals, context: Context) -> np.ndarray:
            sets = np.repeat(factuals.vectors[:, None], 3, axis=1)
            names = [column.name for column in context.encoding.columns]
            sets[:, 1, context.encoding.blocks[names.index("area")].start] += 1.0
            sets[:, 2, context.encoding.blocks[names.index("tax")].start] -= 0.5
            return sets

    several = replace(context, counterfactuals_per_instance=3)
    sets = explain_with_constraints(Area(), model, factuals, several).stacked()
    for rows in sets:
        own = rows[complete(rows)]
        assert len(np.unique(own, axis=0)) == len(own)


@pytest.mark.parametrize("name", ["nice", "growing-spheres", "sedc", "dice-random", "lore"])
def test_a_factual_outside_of_the_range_of_a_constrained_column_may_keep_its_value(name: str) -> None:
    """Half of the rectangles are larger than a counterfactual may be made; what only the price decides leaves them."""
    table = table_of()
    largest = float(np.median(table.values["area"]))
    columns = tuple(
        replace(column, high=largest) if column.name == "area" else column for column in table.columns
    )
    price = table.values["price"]
    target = np.where(price > np.median(price), "yes", "no").astype(object)
    table = replace(table, columns=columns, target=target)
    data = PreparedDataset.make(table, 0.2, 0.2, generator("tabular", "split", 0))
    model = fitted(GradientBoosting(BoostingConfig(trees=20)), data)
    factuals, context = factuals_of(model, data, slice(0, 30)), context_of(data, model)
    found = explain_with_constraints(explainer_of(name), model, factuals, context).stacked()[:, 0]
    before, given = data.encoding.decode(factuals.vectors), complete(found)
    outside = before["area"] > largest
    assert outside.sum() >= 5 and given.mean() >= 0.9
    after = data.encoding.decode(found[given])
    assert (after["area"] <= np.maximum(before["area"][given], largest)).all()
    unchanged = after["area"] == before["area"][given]
    assert unchanged[outside[given]].mean() >= 0.5


def test_explainers_search_among_such_rows_unless_the_study_is_that_of_the_paper() -> None:
    assert Protocol().in_search and not Protocol(study="paper").in_search
    assert Protocol(study="paper", constraints="search").in_search
    assert not Protocol(constraints="check").in_search
