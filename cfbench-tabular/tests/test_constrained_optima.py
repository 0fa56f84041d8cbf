"""Optima under constraints between columns are what trying every row of a small table gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from constrained_grid import Case, case_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights
from cfbench_tabular.classifiers.random_forest import Config as ForestConfig
from cfbench_tabular.classifiers.random_forest import RandomForest
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.constrained_search import explain_with_constraints
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.mace import MACE
from cfbench_tabular.explainers.mace import Config as MACEConfig
from cfbench_tabular.explainers.mace import costs_of as mace_costs
from cfbench_tabular.explainers.optimum import Config as OptimumConfig
from cfbench_tabular.explainers.optimum import Optimum, costs_of
from cfbench_tabular.explainers.tree_optimum import Config as TreeConfig
from cfbench_tabular.explainers.tree_optimum import TreeOptimum
from cfbench_tabular.table import Column

OBJECTIVES = ["l1", "l0", "madd"]
MARGIN = 1e-6


def network(width: int, seed: int, hidden: int = 5) -> MLP:
    draw = np.random.default_rng(seed)
    return from_weights(
        {
            "W1": draw.normal(size=(width, hidden)),
            "b1": draw.normal(size=hidden),
            "W2": draw.normal(size=(hidden, 2)),
            "b2": 0.3 * draw.normal(size=2),
        }
    )


class Forest:
    """Random trees over encoded rows, without training."""

    def __init__(self, encoding: Encoding, seed: int, trees: int = 5, depth: int = 3) -> None:
        self.draw, self.encoding, self.nodes = np.random.default_rng(seed), encoding, []
        roots = [self._grow(depth) for _ in range(trees)]
        feature, threshold, left, right, value = map(np.array, zip(*self.nodes, strict=True))
        indices = (part.astype(np.int32) for part in (feature, left, right))
        feature, left, right = indices
        self.trees = Trees(np.array(roots, np.int32), feature, threshold, left, right, value)

    def _grow(self, depth: int) -> int:
        node, feature = len(self.nodes), int(self.draw.integers(self.encoding.width))
        self.nodes.append([0, 0.0, node, node, float(self.draw.normal())])
        if depth:
            low, high = (side[feature] for side in self.encoding.bounds)
            threshold = float(self.draw.uniform(low, high))
            self.nodes[node] = [feature, threshold, self._grow(depth - 1), self._grow(depth - 1), 0.0]
        return node

    def ensemble(self) -> tuple[Trees, float]:
        return self.trees, 0.05

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        one = 1 / (1 + np.exp(-self.trees.total(vectors) - 0.05))
        return np.stack([1 - one, one], axis=1)


def log_odds(model: Any, rows: np.ndarray) -> np.ndarray:
    zero, one = model.predict_proba(rows).T
    return np.log(one) - np.log(zero)


def least_cost(case: Case, model: Any, label: int, costs: Any, margin: float) -> float:
    """Of all rows of the other class that satisfy the constraints and are within the limits; infinite without one."""
    low, high = case.encoding.allowed(case.factual[None])
    good = case.possible & ((case.rows >= low - 1e-9) & (case.rows <= high + 1e-9)).all(axis=1)
    score = log_odds(model, case.rows)
    assume((np.abs(score) > 1e-5).all())  # so near to the boundary, rounding decides
    good &= score >= margin if label == 0 else score <= -margin
    return float(costs.of(case.rows[good], case.factual).min()) if good.any() else np.inf


def check(case: Case, model: Any, explainer: Any, costs: Callable[[Context], Any], gap: float) -> None:
    context, factuals = case.context(), case.factuals(model)
    result = explainer.counterfactuals(model, factuals, context)
    least = least_cost(case, model, int(factuals.classes[0]), costs(context), MARGIN)
    row, details = result.counterfactuals[0], {name: part[0] for name, part in result.details.items()}
    assert details["proven"] == 1.0
    if np.isinf(least):
        assert np.isnan(row).all()
        return
    assert case.encoding.constraints_hold(row[None])[0]
    assert predicted_classes(model, row[None])[0] != factuals.classes[0]
    assert np.abs(case.rows - row).max(axis=1).min() < 1e-9, "it is one of the rows"
    assert least - 1e-5 <= details["objective"] <= least + gap
    assert details["bound"] <= least + 1e-6


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 1_000_000), objective=st.sampled_from(OBJECTIVES))
def test_the_optimum_of_a_network_is_that_of_trying_all_rows(seed: int, objective: Any) -> None:
    case = case_of(seed)
    assume(case is not None)
    explainer = Optimum(OptimumConfig(objective=objective))
    check(
        case, network(case.rows.shape[1], seed), explainer, lambda context: costs_of(objective, context), 1e-4
    )


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 1_000_000), objective=st.sampled_from(OBJECTIVES))
def test_the_optimum_of_trees_is_that_of_trying_all_rows(seed: int, objective: Any) -> None:
    pytest.importorskip("ortools", reason="tree-optimum needs cfbench-tabular[trees]")
    case = case_of(seed)
    assume(case is not None)
    explainer = TreeOptimum(TreeConfig(objective=objective))
    check(case, Forest(case.encoding, seed), explainer, lambda context: costs_of(objective, context), 1e-4)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1_000_000), norm=st.sampled_from(["l1", "l0", "linf"]))
def test_the_optimum_of_a_formula_is_that_of_trying_all_rows(seed: int, norm: Any) -> None:
    pytest.importorskip("z3", reason="needs cfbench-tabular[mace]")
    case = case_of(seed)
    assume(case is not None)
    explainer = MACE(MACEConfig(norm=norm, seconds=60))
    model = network(case.rows.shape[1], seed, hidden=3)
    check(case, model, explainer, lambda context: mace_costs(norm, context.encoding), 1e-3)


CONTINUOUS = {
    "product": Constraint(column="c", relation="product", of=("a", "b")),
    "product within 5%": Constraint(column="c", relation="product", of=("a", "b"), relative=0.05),
    "square": Constraint(column="c", relation="product", of=("a", "a")),
    "ratio": Constraint(column="c", relation="ratio", of=("a", "b"), absolute=0.01),
    "sum": Constraint(column="c", relation="sum", of=("a", "b"), factor=0.5),
    "at_least": Constraint(column="c", relation="at_least", of=("a", "b")),
}


def dense(constraint: Constraint, steps: tuple[float | None, ...]) -> tuple[Encoding, np.ndarray]:
    """Rows a from 1 to 5, b from 2 to 7 and c within the tolerance, near to each other."""
    axes = [
        np.arange(low, high + 1e-9, step) if step else np.linspace(low, high, 201)
        for low, high, step in zip((1.0, 2.0), (5.0, 7.0), steps, strict=False)
    ]
    a, b = (part.ravel() for part in np.meshgrid(*axes))
    expected = constraint.expected({"a": a, "b": b})
    room = constraint.absolute + constraint.relative * np.abs(expected)
    offsets = (0.0, 1.0, 3.0) if constraint.relation == "at_least" else (0.0,)
    middle = [expected + share * room * 0.999 for share in (-1, 0, 1)] + [expected + more for more in offsets]
    if steps[2]:
        middle = [np.floor(part / steps[2] + share) * steps[2] for part in middle for share in (0, 0.5, 1)]
    raw = np.concatenate([np.stack([a, b, part], axis=1) for part in middle])
    raw = raw[constraint.holds({name: raw[:, place] for place, name in enumerate("abc")})]
    mean, scale = raw.mean(axis=0), raw.std(axis=0)
    low, high = np.array([1.0, 2.0, 0.0]), np.array([5.0, 7.0, 40.0])
    columns = tuple(Column(name, step=step) for name, step in zip("abc", steps, strict=True))
    encoding = Encoding(columns, mean, scale, (low - mean) / scale, (high - mean) / scale, (constraint,))
    return encoding, (raw - mean) / scale


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("steps", [(None, None, None), (1.0, None, None), (None, 1.0, 0.5)])
@pytest.mark.parametrize("kind", ["network", "trees", "formula"])
def test_no_row_is_below_the_bound_where_columns_have_no_steps(
    name: str, steps: tuple[float | None, ...], kind: str
) -> None:
    """The rows that are compared lie on a dense surface; what is returned satisfies the constraint."""
    pytest.importorskip({"network": "scipy", "trees": "ortools", "formula": "z3"}[kind])
    encoding, rows = dense(CONTINUOUS[name], steps)
    for seed in range(2):
        draw = np.random.default_rng(seed)
        background = rows[draw.choice(len(rows), size=min(200, len(rows)), replace=False)]
        context = Context(
            encoding, background, lambda unit: generator("test", unit), respects_constraints=True
        )
        model: Any = Forest(encoding, seed) if kind == "trees" else network(3, seed, hidden=3)
        explainer: Any = {
            "network": Optimum(OptimumConfig()),
            "trees": TreeOptimum(TreeConfig()),
            "formula": MACE(MACEConfig(seconds=1)),
        }[kind]
        costs = mace_costs("l1", encoding) if kind == "formula" else costs_of("l1", context)
        score = log_odds(model, rows)
        factual = rows[np.abs(score).argmin()]  # near to the boundary
        factuals = Factuals(factual[None], predicted_classes(model, factual[None]), ("0",))
        label = int(factuals.classes[0])
        result = explainer.counterfactuals(model, factuals, context)
        others = rows[score >= MARGIN if label == 0 else score <= -MARGIN]
        if len(others) == 0:
            continue
        row, bound, least = (
            result.counterfactuals[0],
            result.details["bound"][0],
            costs.of(others, factual).min(),
        )
        assert bound <= least + 1e-6
        assert encoding.constraints_hold(row[None])[0]
        assert predicted_classes(model, row[None])[0] != label
        assert bound - 1e-6 <= result.details["objective"][0]
        if kind == "network" and seed == 0:  # its bound is nearly reached
            assert result.details["objective"][0] <= least + 1e-4


def test_without_feasible_rows_it_is_proven_that_there_is_none() -> None:
    """c = a + b with a and b immutable leaves c no room."""
    columns = (
        Column("a", step=1.0, immutable=True),
        Column("b", step=1.0, immutable=True),
        Column("c", step=1.0),
    )
    constraint = Constraint(column="c", relation="sum", of=("a", "b"))
    encoding = Encoding(columns, np.zeros(3), np.ones(3), np.zeros(3), np.full(3, 20.0), (constraint,))
    model = network(3, 0)
    rows = np.array([[a, b, a + b] for a in range(5) for b in range(5)], dtype=float)
    factuals = Factuals(rows[:3], predicted_classes(model, rows[:3]), ("0", "1", "2"))
    context = Context(encoding, rows, lambda unit: generator("test", unit), respects_constraints=True)
    result = Optimum(OptimumConfig()).counterfactuals(model, factuals, context)
    assert np.isnan(result.counterfactuals).all() and result.details["proven"].all()


@pytest.mark.parametrize("name", ["optimum", "mace", "tree-optimum"])
def test_they_declare_that_they_respect_constraints_and_are_called_as_they_are(name: str) -> None:
    spec = installed().find("tabular", "explainer", name).spec
    assert "between-columns" in spec.provides["constraints"]

    class Recorded:
        def counterfactuals(self, model: Any, factuals: Factuals, context: Context) -> Explanation:
            assert context.constraints == context.encoding.constraints and context.constraints
            assert model is given
            return Explanation(factuals.vectors)

    case = next(case for case in map(case_of, range(50)) if case is not None)
    given: Any = RandomForest(ForestConfig())
    factuals = Factuals(case.factual[None], np.zeros(1, dtype=np.int64), ("0",))
    explain_with_constraints(Recorded(), given, factuals, case.context())
