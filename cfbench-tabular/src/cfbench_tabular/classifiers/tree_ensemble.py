"""Decision trees, random forests and boosted trees of scikit-learn or XGBoost, trained here or pretrained.

Like ``scikit-learn`` with ``columns: encoded``, and with access to the trees, which ``tree-optimum`` needs. They are read
from the public attributes of a fitted ``DecisionTreeClassifier``, ``RandomForestClassifier``, ``ExtraTreesClassifier`` or
``GradientBoostingClassifier`` of two classes, and from the model that an ``XGBClassifier`` of two classes saves as JSON; its
trees compare with "less than", which is "at most" the next smaller number of 32 bits.

Trees vote with the share of the target class (forests), or add to its log-odds (boosted trees). That a class is the most
probable of more than two is no such sum: with ``classes: all`` there must be two classes or a
``protocol.decision_threshold``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import CodeReference, Help
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers.scikit_learn import LIBRARIES, ScikitLearn
from cfbench_tabular.classifiers.scikit_learn import Config as EstimatorConfig
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/tree-ensemble",
    summary="A tree ensemble of scikit-learn or XGBoost, trained here or loaded",
    target=f"{__name__}:TreeEnsemble",
    config=f"{__name__}:Config",
    provides={"access": {"scores", "trees"}},
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config(EstimatorConfig):
    factory: Annotated[
        str, CodeReference(LIBRARIES), Help("package.module:name of the estimator or of its factory")
    ] = "sklearn.ensemble:RandomForestClassifier"

    def __post_init__(self) -> None:
        if self.columns != "encoded":
            raise UserError(
                "tree-ensemble: columns: must be encoded, because thresholds are read for encoded columns; "
                "use scikit-learn for a pipeline of raw columns"
            )


class TreeEnsemble(ScikitLearn):
    """A :class:`ScikitLearn` classifier whose trees can be read."""

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        super().fit(data, generator, report)
        self._read(data)

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        super().load_state(state, data)
        self._read(data)

    def ensemble(self) -> tuple[Trees, float]:
        """The trees and the offset with which their sum is positive where class 1 is predicted."""
        return self._trees, self._offset

    @property
    def boundary_class(self) -> int:
        """The class that is predicted where both are equally probable: the one that the estimator predicts there."""
        if not self.compares or len(self.estimator.classes_) != 2:
            return 0
        predicted = int(type(self.estimator).__name__ == "GradientBoostingClassifier")  # else the first one
        return int(self.target_index == predicted)

    def _read(self, data: PreparedDataset) -> None:
        count = len(getattr(self.estimator, "classes_", ()))
        if self.compares and self.config.classes == "all" and count > 2:
            raise UserError(
                f"tree-ensemble: the most probable of {count} classes is not a sum of trees; use 'classes: target' for the "
                "target class or the rest, or scikit-learn instead of tree-ensemble"
            )
        rows, _ = data.sample("train")
        self._trees, self._offset = read_trees(self.estimator, self.target_index, rows[:1])


def read_trees(estimator: Any, target: int, rows: FloatArray) -> tuple[Trees, float]:
    """The trees of a fitted estimator and the offset; class ``target`` is predicted where sum + offset is positive.

    rows: (n, d) rows, at least one, from whose margin the offset of boosted trees is computed.

    Raises:
        UserError: if it is no such ensemble, or one of more than two boosted classes.
    """
    kind = type(estimator).__name__
    if kind in ("DecisionTreeClassifier", "ExtraTreeClassifier"):
        return _votes([estimator], target)
    if kind in ("RandomForestClassifier", "ExtraTreesClassifier"):
        return _votes(estimator.estimators_, target)
    if kind not in ("GradientBoostingClassifier", "XGBClassifier"):
        raise UserError(
            f"tree-ensemble: {kind} is no tree ensemble that can be read. It must be a DecisionTreeClassifier, "
            "RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier or XGBClassifier"
        )
    if len(estimator.classes_) != 2:
        raise UserError(
            f"tree-ensemble: {kind} has {len(estimator.classes_)} classes; boosted trees must have 2"
        )
    if kind == "GradientBoostingClassifier":
        found = estimator.estimators_[:, 0].tolist()
        trees = Trees.of(found, [estimator.learning_rate * tree.tree_.value[:, 0, 0] for tree in found])
        margin = estimator.decision_function(rows)
    else:
        trees = _of_xgboost(json.loads(bytes(estimator.get_booster().save_raw(raw_format="json"))))
        margin = estimator.predict(rows, output_margin=True)
    offset = float(np.asarray(margin, dtype=np.float64)[0] - trees.total(rows)[0])
    return (trees, offset) if target == 1 else (_negated(trees), -offset)


def _votes(estimators: list[Any], target: int) -> tuple[Trees, float]:
    """Each tree votes with the share of the target class; the target class needs more than half."""
    counts = [estimator.tree_.value[:, 0, :] for estimator in estimators]
    trees = Trees.of(estimators, [count[:, target] / count.sum(axis=1) for count in counts])
    return trees, -0.5 * len(estimators)


def _negated(trees: Trees) -> Trees:
    return Trees(trees.roots, trees.feature, trees.threshold, trees.left, trees.right, -trees.value)


def _of_xgboost(document: Mapping[str, Any]) -> Trees:
    """The trees of a saved model.

    Raises:
        UserError: if a booster is not made of trees, or a tree splits by sets of categories.
    """
    booster = document["learner"]["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise UserError(f"tree-ensemble: the booster {booster.get('name')} is not read, only gbtree")
    parts: dict[str, list[Any]] = {"feature": [], "threshold": [], "left": [], "right": [], "value": []}
    roots, first = [], 0
    for tree in booster["model"]["trees"]:
        if any(tree.get("split_type", ())):
            raise UserError("tree-ensemble: XGBoost's splits by sets of categories are not read")
        left, right = (np.asarray(tree[f"{side}_children"], dtype=np.int64) for side in ("left", "right"))
        conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
        leaf, own = left < 0, first + np.arange(len(left))
        parts["feature"].append(np.where(leaf, 0, np.asarray(tree["split_indices"])))
        parts["threshold"].append(np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64))
        parts["left"].append(np.where(leaf, own, first + left))
        parts["right"].append(np.where(leaf, own, first + right))
        parts["value"].append(np.where(leaf, conditions, 0.0))
        roots.append(first)
        first += len(left)
    joined = {name: np.concatenate(values) for name, values in parts.items()}
    return Trees(
        np.asarray(roots, dtype=np.int32),
        joined["feature"].astype(np.int32),
        joined["threshold"].astype(np.float64),
        joined["left"].astype(np.int32),
        joined["right"].astype(np.int32),
        joined["value"].astype(np.float64),
    )
