"""The conformance checks of classifiers."""

from __future__ import annotations

import numpy as np

from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.table import FloatArray
from cfbench_tabular.testing.example import example_data, fitted


def returns_probabilities(subject: Subject) -> None:
    """Are there two probabilities for each row, between 0 and 1, with the sum 1?"""
    data = example_data()
    found = probabilities(_trained(subject), data.vectors)
    require(bool(((found >= 0) & (found <= 1)).all()), "a probability is not between 0 and 1")
    require(bool(np.allclose(found.sum(axis=1), 1.0)), "the probabilities of a row do not sum to 1")


def learns_a_linear_boundary(subject: Subject) -> None:
    """Does it predict at least 80% of the training rows of a linearly separable data set?"""
    vectors, labels = example_data().sample("train")
    share = float((predicted_classes(_trained(subject), vectors) == labels).mean())
    require(share >= 0.8, f"predicts {share:.0%} of the training rows correctly")


def restores_its_state(subject: Subject) -> None:
    """Does an instance with the state of another predict exactly the same?"""
    data = example_data()
    model, copy = _trained(subject), subject.create()
    copy.load_state({name: np.array(array) for name, array in model.state().items()}, data)
    same = np.array_equal(probabilities(model, data.vectors), probabilities(copy, data.vectors))
    require(same, "the copy predicts differently")


def is_reproducible(subject: Subject) -> None:
    """Does training with the same random stream give the same model?"""
    data = example_data()
    first, again = (
        probabilities(model, data.vectors) for model in (_trained(subject), fitted(subject.create(), data))
    )
    require(np.array_equal(first, again), "the second model predicts differently")


def gradient_matches_finite_differences(subject: Subject) -> None:
    """Does ``log_odds_gradient`` agree with finite differences?"""
    if "gradients" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not declare gradients")
    model = _trained(subject)
    vectors, step = example_data().vectors[:16], 1e-5
    found = model.log_odds_gradient(vectors)  # type: ignore[attr-defined]
    require(found.shape == vectors.shape, f"has shape {found.shape} for rows of shape {vectors.shape}")
    numeric = np.empty_like(vectors)
    for place in range(vectors.shape[1]):
        moved = np.zeros(vectors.shape[1])
        moved[place] = step
        numeric[:, place] = (_log_odds(model, vectors + moved) - _log_odds(model, vectors - moved)) / (
            2 * step
        )
    wrong = np.abs(found - numeric) > 1e-4 * (1 + np.abs(numeric))
    require(wrong.mean() <= 0.02, f"{wrong.sum()} of {wrong.size} derivatives are wrong")


def does_not_depend_on_the_batch(subject: Subject) -> None:
    """Does a row get the same probability alone as in a batch, and are the rows unchanged?"""
    model, vectors = _trained(subject), example_data().vectors.copy()
    together = probabilities(model, vectors)
    require(np.array_equal(vectors, example_data().vectors), "the rows were changed")
    for place in (0, 50, 119):
        alone = probabilities(model, vectors[place : place + 1])[0]
        require(
            bool(np.allclose(alone, together[place], rtol=0, atol=1e-9)),
            f"row {place} has a different probability alone",
        )


def layers_match_the_predictions(subject: Subject) -> None:
    """Do its layers, with ReLU between them, give the log-odds of its probabilities?"""
    if "layers" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not declare layers")
    model, vectors = _trained(subject), example_data().vectors
    found, last = vectors, len(model.layers()) - 1  # type: ignore[attr-defined]
    for place, (weights, biases) in enumerate(model.layers()):  # type: ignore[attr-defined]
        found = found @ weights + biases
        found = np.maximum(found, 0.0) if place < last else found
    require(
        found.shape == (len(vectors), 2), f"the last layer gives shape {found.shape}, must have 2 outputs"
    )
    same = np.allclose(found[:, 1] - found[:, 0], _log_odds(model, vectors), rtol=1e-6, atol=1e-6)
    require(same, "the layers give different log-odds")


def _trained(subject: Subject) -> Classifier:
    if "weights" in subject.spec.details:
        raise NotApplicable("its weights are published with CF-tabular")
    if "model" not in subject.memory:
        subject.memory["model"] = fitted(subject.create(), example_data())
    model: Classifier = subject.memory["model"]
    return model


def _log_odds(model: Classifier, vectors: FloatArray) -> FloatArray:
    found = probabilities(model, vectors)
    return np.asarray(np.log(found[:, 1]) - np.log(found[:, 0]))


CLASSIFIER_CHECKS = checks_of(
    returns_probabilities,
    does_not_depend_on_the_batch,
    learns_a_linear_boundary,
    restores_its_state,
    is_reproducible,
    gradient_matches_finite_differences,
    layers_match_the_predictions,
)
