"""A classifier of pairs of statements by logistic regressions on ``pair_features.py``: its training, file and use.

Two models are nested. The first gives P(entailed), the second P(contradicted | not entailed), which is learned only from
pairs that are known to be contradicted or neither (SICK, made pairs). Then E = p, C = (1 - p) q, N = (1 - p)(1 - q).

Data sets differ in what a label means and in how many texts are right. All have the same weight, and each has an
intercept of its own, so that the weights of the features are learned within data sets. The common intercept and slope
are then calibrated by Platt scaling (Platt 1999) on predictions for data sets that a model did not see, each with the
same weight (with a single data set: for held-out documents).

Texts are labelled, not their sentences: each sentence of a text has the text's label, and is compared with the sentence
of the evidence to which its words are best aligned.

The file is JSON with numbers and names only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_text.judges.pair_features import NAMES
from cfbench_text.reviews import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FORMAT = "cfbench-text pair classifier 1"
PENALTY = 0.05
"""Inverse strength of the L2 penalty, for data sets of total weight ``WEIGHT``."""
WEIGHT = 1000.0
INTERCEPT = 30.0
"""Scale of the columns for the data sets, so that their intercepts are hardly penalised."""
FOLDS = 5


@dataclass(frozen=True)
class PairSet:
    """Pairs of a data set as features.

    Attributes:
        features: (N, F). entailed: (N,). contradicted: (N,) of 1, 0, and NaN where it is not known.
        documents: (N,) pairs with equal numbers belong together.
    """

    name: str
    features: FloatArray
    entailed: BoolArray
    contradicted: FloatArray
    documents: IntArray


@dataclass(frozen=True)
class Logistic:
    """(F,) weights of the standardised features, and the intercept."""

    weights: FloatArray
    intercept: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """(N,) probabilities, from standardised (N, F)."""
        return sigmoid(features @ self.weights + self.intercept)


@dataclass(frozen=True)
class PairClassifier:
    """What was learned, and from what.

    Attributes:
        mean, scale: (F,) of the features in training. contradiction: None if no pair was known to be contradicted.
        encoder: the signature of the encoder whose features it was trained on.
        about: for people: data sets, transfer.
        seen: digests of the labelled texts that it was trained on.
    """

    mean: FloatArray
    scale: FloatArray
    support: Logistic
    contradiction: Logistic | None
    encoder: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()

    def probabilities(self, features: FloatArray) -> FloatArray:
        """(N, 3) of entailment, contradiction and neutral, from (N, F)."""
        standard = (features - self.mean) / self.scale
        entailed = self.support(standard)
        denied = np.zeros(len(features)) if self.contradiction is None else self.contradiction(standard)
        return np.column_stack([entailed, (1 - entailed) * denied, (1 - entailed) * (1 - denied)])

    def document(self) -> dict[str, Any]:
        """As JSON; see :func:`read`."""
        return {
            "format": FORMAT,
            "features": list(NAMES),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "support": _written(self.support),
            "contradiction": None if self.contradiction is None else _written(self.contradiction),
            "encoder": dict(self.encoder),
            "about": dict(self.about),
            "seen": sorted(self.seen),
        }


def fit(sets: Sequence[PairSet]) -> PairClassifier:
    """Learns from at least one set, with pairs that are entailed and pairs that are not.

    Raises:
        UserError: if a set has only one of them.
    """
    for one in sets:
        if one.entailed.all() or not one.entailed.any():
            raise UserError(
                f"{one.name}: needs pairs that are entailed and pairs that are not, to learn from"
            )
    features = np.vstack([one.features for one in sets])
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale < 1e-9] = 1.0
    standard = [(one.features - mean) / scale for one in sets]
    weights = _weights(standard, [one.entailed for one in sets])
    slope, intercept = _calibration(sets, mean, scale)
    support = Logistic(slope * weights, intercept)
    known = [np.isfinite(one.contradicted) & ~one.entailed for one in sets]
    taught = [
        (x[some], one.contradicted[some] > 0)
        for x, one, some in zip(standard, sets, known, strict=True)
        if len(set(one.contradicted[some])) == 2
    ]
    denial = None
    if taught:
        inputs = np.vstack([x for x, _ in taught])
        labels = np.concatenate([y for _, y in taught])
        share = np.concatenate([np.full(len(y), WEIGHT / len(y)) for _, y in taught])
        model = _model().fit(inputs, labels, sample_weight=share)
        denial = Logistic(model.coef_[0], float(model.intercept_[0]))
    return PairClassifier(mean, scale, support, denial)


def _calibration(sets: Sequence[PairSet], mean: FloatArray, scale: FloatArray) -> tuple[float, float]:
    """Slope and intercept for scores of data sets, or documents, that a model did not see."""
    scores, labels, shares = [], [], []
    for others, held in _held_out(sets):
        weights = _weights([(one.features - mean) / scale for one in others], [o.entailed for o in others])
        scores.append(((held.features - mean) / scale) @ weights)
        labels.append(held.entailed)
        shares.append(np.full(len(held.entailed), WEIGHT / max(1, len(held.entailed))))
    model = _model(penalty=1.0).fit(
        np.concatenate(scores)[:, None], np.concatenate(labels), sample_weight=np.concatenate(shares)
    )
    return max(float(model.coef_[0, 0]), 1e-3), float(model.intercept_[0])


def _held_out(sets: Sequence[PairSet]) -> list[tuple[list[PairSet], PairSet]]:
    if len(sets) > 1:
        return [([one for one in sets if one is not held], held) for held in sets]
    (only,) = sets
    fold = only.documents % FOLDS
    parts = [(_some(only, fold != number), _some(only, fold == number)) for number in np.unique(fold)]
    usable = [([rest], part) for rest, part in parts if rest.entailed.any() and not rest.entailed.all()]
    return usable or [([only], only)]


def _some(one: PairSet, rows: BoolArray) -> PairSet:
    return PairSet(
        one.name, one.features[rows], one.entailed[rows], one.contradicted[rows], one.documents[rows]
    )


def _weights(inputs: Sequence[FloatArray], labels: Sequence[BoolArray]) -> FloatArray:
    """(F,) of the standardised features, common to all sets, each of which has its own intercept."""
    own = np.repeat(np.eye(len(inputs)) * INTERCEPT, [len(x) for x in inputs], axis=0)
    share = np.concatenate([np.full(len(x), WEIGHT / len(x)) for x in inputs])
    model = _model().fit(np.hstack([np.vstack(inputs), own]), np.concatenate(labels), sample_weight=share)
    return np.asarray(model.coef_[0, : inputs[0].shape[1]], dtype=np.float64)


def _model(penalty: float = PENALTY) -> LogisticRegression:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise UserError(
            "training a judge needs scikit-learn: pip install 'cfbench-text[train]'; using one does not"
        ) from None
    return LogisticRegression(C=penalty, max_iter=5000, tol=1e-8)


def sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -500, 500))), dtype=np.float64)


def write(classifier: PairClassifier, path: Path) -> None:
    from cfbench_core.files import write_atomically

    write_atomically(path, json.dumps(classifier.document(), indent=1) + "\n")


def read(path: Path) -> PairClassifier:
    """The classifier in a file.

    Raises:
        UserError: if there is none, it is not one, or it has other features than this version.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; make it with 'cfbench train-judge --output {path}'") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not a trained judge ({str(error).splitlines()[0]})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("features") != list(NAMES):
        raise UserError(
            f"{path}: is no trained judge of this version; make it anew with 'cfbench train-judge --output {path}'"
        )
    try:
        denial = found["contradiction"]
        return PairClassifier(
            _numbers(found["mean"]),
            _positive(found["scale"]),
            _logistic(found["support"]),
            None if denial is None else _logistic(denial),
            {str(name): str(value) for name, value in found["encoder"].items()},
            dict(found["about"]),
            frozenset(map(str, found["seen"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: is damaged ({type(error).__name__}: {error}); make it anew") from None


def _written(model: Logistic) -> dict[str, Any]:
    return {"weights": model.weights.tolist(), "intercept": model.intercept}


def _logistic(found: Mapping[str, Any]) -> Logistic:
    intercept = float(found["intercept"])
    if not np.isfinite(intercept):
        raise ValueError("an intercept is not finite")
    return Logistic(_numbers(found["weights"]), intercept)


def _numbers(values: Any) -> FloatArray:
    """(F,) finite numbers."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (len(NAMES),) or not np.isfinite(found).all():
        raise ValueError(f"needs {len(NAMES)} finite numbers")
    return found


def _positive(values: Any) -> FloatArray:
    found = _numbers(values)
    if not (found > 0).all():
        raise ValueError("a scale is not positive")
    return found
