"""The certified optimum of tree ensembles: equal to trying all cells, and never beaten by any other row."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.random_forest import Config as ForestConfig
from cfbench_tabular.classifiers.random_forest import RandomForest
from cfbench_tabular.classifiers.tree_ensemble import Config as TreesConfig
from cfbench_tabular.classifiers.tree_ensemble import TreeEnsemble
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.exact import reach_of
from cfbench_tabular.explainers.optimum import costs_of
from cfbench_tabular.explainers.tree_boxes import Cells, EnsembleTests, Leaves, interval_of
from cfbench_tabular.explainers.tree_optimum import Config, TreeOptimum
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted

pytest.importorskip("ortools", reason="tree-optimum needs cfbench-tabular[trees]")
OBJECTIVES = ["l1", "l0", "madd"]


class Grown:
    """Random trees over encoded rows, without training."""

    def __init__(self, encoding: Encoding, seed: int, trees: int = 5, depth: int = 3) -> None:
        self.draw = np.random.default_rng(seed)
        self.encoding = encoding
        self.nodes: list[list[float]] = []  # feature, threshold, left, right, value
        roots = [self._grow(depth) for _ in range(trees)]
        feature, threshold, left, right, value = map(np.array, zip(*self.nodes, strict=True))
        whole = np.int32
        self.trees = Trees(
            np.array(roots, whole),
            feature.astype(whole),
            threshold,
            left.astype(whole),
            right.astype(whole),
            value,
        )
        self.offset = float(self.draw.normal(scale=0.3))

    def _grow(self, depth: int) -> int:
        node = len(self.nodes)
        self.nodes.append([0, 0.0, node, node, float(self.draw.normal())])
        if depth:
            feature = int(self.draw.integers(self.encoding.width))
            threshold = (
                0.5 if not self.encoding.numeric[feature] else round(float(self.draw.uniform(-2, 2)), 1)
            )
            left, right = self._grow(depth - 1), self._grow(depth - 1)
            self.nodes[node] = [feature, threshold, left, right, 0.0]
        return node

    def ensemble(self) -> tuple[Trees, float]:
        return self.trees, self.offset

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        one = 1 / (1 + np.exp(-self.trees.total(vectors) - self.offset))
        return np.stack([1 - one, one], axis=1)


def small_encoding(numbers: int = 2, **column: Any) -> Encoding:
    columns = (
        *(Column(f"x{n}", **column) for n in range(numbers)),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("smoker", "categorical", ("no", "yes")),
    )
    size = len(columns)
    low = np.where([c.kind == "numeric" for c in columns], -3.0, 0.0)
    return Encoding(columns, np.zeros(size), np.ones(size), low, np.where(low < 0, 3.0, 1.0))


def random_rows(encoding: Encoding, count: int, seed: int) -> np.ndarray:
    return encoding.snapped(_any_rows(encoding, count, seed))


def _any_rows(encoding: Encoding, count: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    parts = [
        draw.uniform(-2.5, 2.5, size=(count, 1))
        if column.kind == "numeric"
        else np.eye(3)[draw.integers(3, size=count)]
        if len(column.levels) == 3
        else draw.integers(2, size=(count, 1)).astype(float)
        for column in encoding.columns
    ]
    return np.concatenate(parts, axis=1)


def all_cells(model: Any, encoding: Encoding, row: np.ndarray) -> np.ndarray:
    """Every combination of levels and of values that are as near to ``row`` as an interval of thresholds allows."""
    low, high = (side[0] for side in encoding.allowed(row[None]))
    parts = []
    for block in encoding.blocks:
        if not encoding.numeric[block.start]:
            width = block.stop - block.start
            levels = np.eye(width) if width > 1 else np.array([[0.0], [1.0]])
            parts.append(
                [level for level in levels if (level >= low[block]).all() and (level <= high[block]).all()]
            )
            continue
        step = encoding.columns[encoding.column_of[block.start]].step
        if step is not None:
            values = np.arange(low[block.start], high[block.start] + step / 2, step)
            parts.append([np.array([value]) for value in values])
            continue
        values = [row[block.start]]
        for threshold in model.trees.threshold[model.trees.feature == block.start]:
            single = np.float32(threshold)
            for step in (-np.inf, np.inf):
                near = np.nextafter(single, np.float32(step))
                values += [float(near), float(single)]
        kept = np.unique([value for value in values if low[block.start] <= value <= high[block.start]])
        parts.append([np.array([value]) for value in kept])
    return np.array([np.concatenate(choice) for choice in product(*parts)])


def context_for(encoding: Encoding) -> Context:
    return Context(encoding, random_rows(encoding, 40, 1), lambda unit: generator("test", unit))


def explained(
    model: Any, encoding: Encoding, rows: np.ndarray, **options: Any
) -> tuple[Explanation, Factuals, Context]:
    classes = (model.predict_proba(rows)[:, 1] > 0.5).astype(np.int64)
    factuals = Factuals(rows, classes, tuple(map(str, range(len(rows)))))
    context = context_for(encoding)
    return TreeOptimum(Config(**options)).counterfactuals(model, factuals, context), factuals, context


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(OBJECTIVES),
    step=st.sampled_from([None, 0.25, 1.0]),
)
@example(seed=2688, objective="l1", step=0.25)  # thresholds at steps
@example(seed=112, objective="l0", step=0.25)  # a threshold at the step 0
@example(seed=246, objective="l1", step=0.25)  # the presolve of CP-SAT lost this optimum
def test_it_is_what_trying_every_cell_gives(seed: int, objective: str, step: float | None) -> None:
    encoding = small_encoding(step=step)
    model = Grown(encoding, seed)
    rows = random_rows(encoding, 4, seed)
    result, factuals, context = explained(model, encoding, rows, objective=objective)
    costs = costs_of(objective, context)
    assert result.details["proven"].all()
    for place, row in enumerate(rows):
        cells = all_cells(model, encoding, row)
        score = model.trees.total(cells) + model.offset
        other = score >= 1e-6 if factuals.classes[place] == 0 else score <= -1e-6
        if not other.any():
            assert np.isnan(result.counterfactuals[place]).all()
            continue
        least = costs.of(cells[other], row).min()
        assert result.details["objective"][place] == pytest.approx(least, rel=1e-4, abs=1e-6)
        assert result.details["bound"][place] <= least * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_immutable_and_one_way_columns_are_respected_and_the_proof_holds_within_them(seed: int) -> None:
    encoding = small_encoding()
    first, second, *others = encoding.columns
    encoding = replace(
        encoding, columns=(replace(first, immutable=True), replace(second, direction="up"), *others)
    )
    model, rows = Grown(encoding, seed), random_rows(encoding, 6, seed)
    result, factuals, context = explained(model, encoding, rows)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    low, high = encoding.allowed(rows)
    assert ((result.counterfactuals >= low) & (result.counterfactuals <= high))[given].all()
    for place, row in enumerate(rows):
        cells = all_cells(model, encoding, row)
        score = model.trees.total(cells) + model.offset
        other = score >= 1e-6 if factuals.classes[place] == 0 else score <= -1e-6
        assert other.any() == given[place]
        if given[place]:
            least = costs_of("l1", context).of(cells[other], row).min()
            assert result.details["objective"][place] == pytest.approx(least, rel=1e-4, abs=1e-6)


class Voting(Grown):
    """Trees whose leaves vote 0 or 1; where half of them votes 1, the class is ``boundary_class``."""

    def __init__(self, encoding: Encoding, seed: int, trees: int, boundary_class: int) -> None:
        super().__init__(encoding, seed, trees=trees)
        self.trees = replace(self.trees, value=(self.trees.value > 0).astype(float))
        self.offset, self.boundary_class = -trees / 2, boundary_class

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        share = self.trees.total(vectors) / len(self.trees.roots)
        one = np.where((share == 0.5) & (self.boundary_class == 1), np.nextafter(0.5, 1), share)
        return np.stack([1 - one, one], axis=1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    trees=st.sampled_from([2, 4, 6]),
    objective=st.sampled_from(OBJECTIVES),
    boundary_class=st.sampled_from([0, 1]),
)
def test_rows_for_which_half_of_a_forest_votes_count_as_what_the_model_predicts(
    seed: int, trees: int, objective: str, boundary_class: int
) -> None:
    """Leaves that vote 0 or 1 tie in many rows, which are of one class: the nearest counterfactual is often one of them."""
    encoding = small_encoding(step=1.0)
    model = Voting(encoding, seed, trees, boundary_class)
    rows = random_rows(encoding, 4, seed)
    result, factuals, context = explained(model, encoding, rows, objective=objective)
    costs = costs_of(objective, context)
    assert result.details["proven"].all()
    for place, row in enumerate(rows):
        cells = all_cells(model, encoding, row)
        votes = model.trees.total(cells)
        one = votes >= trees / 2 if boundary_class else votes > trees / 2
        other = one != (factuals.classes[place] == 1)
        if not other.any():
            assert np.isnan(result.counterfactuals[place]).all()
            continue
        least = costs.of(cells[other], row).min()
        assert result.details["objective"][place] == pytest.approx(least, rel=1e-4, abs=1e-6)
        assert result.details["bound"][place] <= least * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("target", ["cheap", "dear"])
@pytest.mark.parametrize("seed", range(4))
def test_of_a_forest_with_ties_the_proof_is_about_the_estimators_own_predictions(
    seed: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pretrained forest of two pure trees: the first class of the estimator wins its many ties."""
    draw = np.random.default_rng(seed)
    values = draw.integers(-3, 4, size=(120, 3)).astype(float)
    price = values.sum(axis=1) + draw.normal(scale=2, size=120) > 0
    names = np.where(price, "dear", "cheap").astype(object)
    columns = tuple(Column(name, step=1.0) for name in "abc")
    table = Table("goods", columns, dict(zip("abc", values.T, strict=True)), names, target)
    data = PreparedDataset.make(table, 0.2, 0.2, generator("tabular", "split"))
    estimator = RandomForestClassifier(2, random_state=seed).fit(data.vectors, names.astype(str))
    module: Any = ModuleType("own_forest")
    module.made = lambda: estimator
    monkeypatch.setitem(sys.modules, "own_forest", module)
    model: Any = fitted(TreeEnsemble(TreesConfig(factory="own_forest:made", train=False)), data)
    factuals, context = factuals_of(model, data, slice(0, 25)), context_of(data)
    result = TreeOptimum(Config(seconds=60)).counterfactuals(model, factuals, context)
    grid = np.array(list(product(range(-3, 4), repeat=3)), dtype=float)
    rows = data.encoding.encode(dict(zip("abc", grid.T, strict=True)))
    own = estimator.predict(rows) == target
    assert (estimator.predict_proba(rows)[:, 0] == 0.5).mean() > 0.1
    costs = costs_of("l1", context)
    assert result.details["proven"].all()
    for place, row in enumerate(factuals.vectors):
        assert factuals.classes[place] == int(estimator.predict(row[None])[0] == target)
        least = costs.of(rows[own != (factuals.classes[place] == 1)], row).min()
        assert result.details["objective"][place] == pytest.approx(least, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_trained_ensembles_get_valid_answers_that_no_training_row_beats(kind: str) -> None:
    data = example_data()
    model = fitted(
        RandomForest(ForestConfig(trees=12, depth=4))
        if kind == "forest"
        else GradientBoosting(BoostingConfig(trees=25)),
        data,
    )
    factuals, context = factuals_of(model, data, slice(0, 12)), context_of(data)
    result = TreeOptimum(Config(seconds=30)).counterfactuals(model, factuals, context)
    assert result.details["proven"].all()
    classes = (model.predict_proba(result.counterfactuals)[:, 1] > 0.5).astype(np.int64)
    assert (classes != factuals.classes).all()
    background = (model.predict_proba(context.background)[:, 1] > 0.5).astype(np.int64)
    costs = costs_of("l1", context)
    for place, row in enumerate(factuals.vectors):
        enemies = context.background[background != factuals.classes[place]]
        assert result.details["objective"][place] <= costs.of(enemies, row).min() + 1e-6


def test_the_score_of_an_ensemble_has_the_sign_of_the_class() -> None:
    data = example_data()
    vectors, _ = data.sample("test")
    for made in (RandomForest(ForestConfig(trees=7)), GradientBoosting(BoostingConfig(trees=9))):
        model = fitted(made, data)
        trees, offset = model.ensemble()
        score = trees.total(vectors) + offset
        assert ((score > 0) == (model.predict_proba(vectors)[:, 1] > 0.5)).all()


def test_leaves_contain_exactly_the_cells_of_the_rows_that_reach_them() -> None:
    encoding = small_encoding()
    model, row = Grown(encoding, 3), random_rows(encoding, 1, 4)[0]
    tested, reach = EnsembleTests.of(model.trees), reach_of(costs_of("l1", context_for(encoding)), row)
    cells = tested.cells(reach)
    leaves = Leaves.within(tested, reach, cells)
    for point in all_cells(model, encoding, row)[::7]:
        near = np.array([np.abs(cells[int(p)].values - point[p]).argmin() for p in leaves.positions])
        exact = point.copy()
        exact[leaves.positions] = [
            cells[int(p)].values[c] for p, c in zip(leaves.positions, near, strict=True)
        ]
        inside = ((leaves.first <= near) & (near < leaves.stop)).all(axis=1)
        assert tested.tree[leaves.node[inside]].tolist() == list(range(len(model.trees.roots)))
        assert model.trees.value[leaves.node[inside]].sum() == pytest.approx(
            model.trees.total(exact[None])[0]
        )


def test_a_budget_leaves_out_only_leaves_that_cost_more() -> None:
    encoding = small_encoding()
    model, row = Grown(encoding, 5), random_rows(encoding, 1, 6)[0]
    costs, tested = costs_of("l1", context_for(encoding)), EnsembleTests.of(model.trees)
    reach = reach_of(costs, row).within(1.2)
    leaves = Leaves.within(tested, reach, tested.cells(reach))
    points = all_cells(model, encoding, row)
    for point in points[costs.of(points, row) <= 1.2]:
        reached = model.trees._leaves(point[None].astype(np.float32))[0]
        assert set(reached.tolist()) <= set(leaves.node.tolist())


def test_the_cell_of_an_interval_is_its_value_nearest_to_the_factual() -> None:
    encoding = replace(small_encoding(1), low=np.array([-1.0, 0.0, 0.0]), high=np.array([2.0, 1.0, 1.0]))
    row = np.array([0.3, 1.0, 0.0, 0.0, 0.0])
    reach = reach_of(costs_of("l1", context_for(encoding)), row)
    cells = Cells.of(reach, 0, np.array([-5.0, 0.1, 0.25, 1.0, 7.0]))
    assert cells.intervals.tolist() == [1, 2, 3, 4]
    assert cells.values[2] == 0.3  # its own interval
    assert cells.values[0] <= 0.1 < cells.values[0] + 1e-7
    assert cells.values[1] == 0.25
    assert 1.0 < cells.values[3] < 1.0 + 1e-6


def test_the_cell_of_a_column_with_steps_is_at_a_step_and_an_interval_without_one_has_none() -> None:
    encoding = small_encoding(1, step=0.5)
    reach = reach_of(costs_of("l1", context_for(encoding)), np.array([0.5, 1.0, 0.0, 0.0, 0.0]))
    cells = Cells.of(reach, 0, np.array([-2.2, -0.3, -0.1, 0.0, 0.6, 0.9, 1.0, 1.2, 2.7]))
    values = dict(zip(cells.intervals.tolist(), cells.values.tolist(), strict=True))
    assert values == {0: -2.5, 1: -0.5, 3: 0.0, 4: 0.5, 6: 1.0, 8: 1.5, 9: 3.0}


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_the_cells_of_standardised_whole_numbers_are_those_of_trying_each(seed: int) -> None:
    """With thresholds at the numbers themselves, as between 3 and 5: rounded to 32 bits they lie on either side."""
    draw = np.random.default_rng(seed)
    mean, deviation = draw.normal(scale=3), draw.uniform(0.3, 5)
    numbers = (np.arange(-60, 61) - mean) / deviation
    within = numbers[(numbers >= -3) & (numbers <= 3)]
    encoding = small_encoding(1, step=1.0)
    encoding = replace(
        encoding,
        mean=np.array([mean, *encoding.mean[1:]]),
        scale=np.array([deviation, *encoding.scale[1:]]),
    )
    places = draw.choice(within, size=min(4, len(within)), replace=False)
    thresholds = np.unique(np.append(places, (places + 0.5 / deviation)[:2]).astype(np.float32)).astype(float)
    factual = float(draw.choice(within))
    reach = reach_of(costs_of("l1", context_for(encoding)), np.array([factual, 1.0, 0.0, 0.0, 0.0]))
    cells = Cells.of(reach, 0, thresholds)
    nearest: dict[int, float] = {}
    for number in sorted(within, key=lambda number: abs(number - factual)):
        nearest.setdefault(int(interval_of(np.array([number]), thresholds)[0]), number)
    assert dict(zip(cells.intervals.tolist(), cells.values.tolist(), strict=True)) == pytest.approx(nearest)


def test_without_time_the_answer_is_the_row_to_start_from_and_not_proven() -> None:
    data = example_data()
    model = fitted(RandomForest(ForestConfig(trees=60)), data)
    factuals, context = factuals_of(model, data, slice(0, 3)), context_of(data)
    result = TreeOptimum(Config(seconds=1e-4)).counterfactuals(model, factuals, context)
    assert not np.isnan(result.counterfactuals).any()
    assert (result.details["bound"] <= result.details["objective"]).all()
    assert (result.details["proven"] == 0).any()
