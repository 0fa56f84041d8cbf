"""The decision trees of the analysis ``advice``, as rows of its table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cfbench_tabular.analysis.advisor_training import FEATURES, NEURONS, TrainingSet
from cfbench_tabular.analysis.run_data import FloatArray

TIE = 1e-9
"""Difference of two values that is a rounding error."""


def tied(names: Iterable[str], values: Iterable[float]) -> list[str]:
    """The names with the largest value."""
    pairs = list(zip(names, values, strict=True))
    most = max(value for _, value in pairs)
    return [name for name, value in pairs if value >= most - TIE * max(1.0, abs(most))]


def fitted_tree(features: FloatArray, best: FloatArray, depth: int) -> Any:
    """A tree whose classes are the indices of the explainers."""
    from sklearn.tree import DecisionTreeClassifier

    factual, winner = np.nonzero(best)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    with warnings.catch_warnings():  # indices of explainers are classes, however few the factuals are
        warnings.filterwarnings("ignore", "The number of unique classes is greater than", UserWarning)
        return tree.fit(features[factual], winner, sample_weight=best[factual, winner])


def nodes(fitted: Any, training: TrainingSet) -> Iterator[dict[str, Any]]:
    """A row for each node: its condition (empty for a leaf), the best explainers of its factuals, and their share.

    Branches that advise the same are one leaf.
    """
    tree, leaves = fitted.tree_, _leaves(fitted, training)
    parents: dict[int, tuple[int, str]] = {0: (-1, "")}
    numbers: dict[int, int] = {}
    reached = np.asarray(fitted.decision_path(training.features).sum(axis=0)).ravel()
    for node in range(tree.node_count):
        if node not in parents:
            continue
        numbers[node] = len(numbers)
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if node not in leaves:
            parents |= {left: (numbers[node], "yes"), right: (numbers[node], "no")}
        parent, branch = parents[node]
        shares = _shares(fitted, node, training)
        yield {
            "node": numbers[node],
            "parent": parent,
            "branch": branch,
            "condition": "" if node in leaves else _condition(tree, node, training),
            "explainer": ", ".join(tied(training.names, shares)),
            "value": float(shares.max()),
            "n": int(reached[node]),
        }


def leaf_shares(fitted: Any, training: TrainingSet, setting: FloatArray) -> dict[str, float]:
    """The share of each explainer in the leaf of a setting (1, FEATURES)."""
    leaves = _leaves(fitted, training)
    path = fitted.decision_path(setting).indices.tolist()
    leaf = next(node for node in sorted(path) if node in leaves)  # a parent comes before its children
    return dict(zip(training.names, _shares(fitted, leaf, training).tolist(), strict=True))


def _shares(fitted: Any, node: int, training: TrainingSet) -> FloatArray:
    """(explainers,) the shares of the wins in a node."""
    found = np.zeros(len(training.names))
    own = fitted.tree_.value[node][0]
    found[fitted.classes_.astype(int)] = own / own.sum()
    return found


def _leaves(fitted: Any, training: TrainingSet) -> set[int]:
    """The nodes below which all leaves advise the same."""
    tree = fitted.tree_
    found: set[int] = set()
    for node in reversed(range(tree.node_count)):  # children come after their parent
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            found.add(node)
        elif {left, right} <= found:
            one, other = (tied(training.names, _shares(fitted, child, training)) for child in (left, right))
            if one == other:
                found.add(node)
    return found


def _condition(tree: Any, node: int, training: TrainingSet) -> str:
    feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
    name = FEATURES[feature]
    if np.isinf(threshold):  # all known values go to the left
        return "a network" if name == NEURONS else f"{name} known"
    condition = f"{name} <= {_short(threshold)}"
    if tree.missing_go_to_left[node] and np.isnan(training.features[:, feature]).any():
        condition += " or no network" if name == NEURONS else " or unknown"
    return condition


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
