"""What a classifier must do."""

from __future__ import annotations

import numpy as np

from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.classifiers.base import Classifier, predicted_classes, probabilities
from cfbench_tabular.table import FloatArray
from cfbench_tabular.testing.example import example_problem, fitted


def gives_probabilities(subject: Subject) -> None:
    """Are there two probabilities for each row, between 0 and 1, with the sum 1?"""
    problem = example_problem()
    found = probabilities(_trained(subject), problem.vectors)
    require(bool(((found >= 0) & (found <= 1)).all()), "a probability is not between 0 and 1")
    require(bool(np.allclose(found.sum(axis=1), 1.0)), "the probabilities of a row do not sum to 1")


def learns_what_is_easy(subject: Subject) -> None:
    """Is it right on at least 80 of 100 training rows of a problem that a line solves?"""
    vectors, labels = example_problem().sample("train")
    share = float((predicted_classes(_trained(subject), vectors) == labels).mean())
    require(share >= 0.8, f"is right on {share:.0%} of the training rows")


def is_what_its_state_says(subject: Subject) -> None:
    """Does an instance that takes up the state of another predict exactly the same?"""
    problem = example_problem()
    model, copy = _trained(subject), subject.create()
    copy.load_state({name: np.array(array) for name, array in model.state().items()})
    same = np.array_equal(probabilities(model, problem.vectors), probabilities(copy, problem.vectors))
    require(same, "the copy predicts something else")


def learns_the_same_again(subject: Subject) -> None:
    """Does training with the same random stream give the same model?"""
    problem = example_problem()
    first, again = (
        probabilities(model, problem.vectors)
        for model in (_trained(subject), fitted(subject.create(), problem))
    )
    require(np.array_equal(first, again), "the second model predicts something else")


def gradient_is_that_of_the_log_odds(subject: Subject) -> None:
    """Does ``log_odds_gradient`` agree with finite differences?"""
    if "gradients" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not offer gradients")
    model = _trained(subject)
    vectors, step = example_problem().vectors[:16], 1e-5
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


def predicts_a_row_as_among_many(subject: Subject) -> None:
    """Does a row get the same probability alone as among others, and is it left as it was?"""
    model, vectors = _trained(subject), example_problem().vectors.copy()
    together = probabilities(model, vectors)
    require(np.array_equal(vectors, example_problem().vectors), "the rows were changed")
    for place in (0, 50, 119):
        alone = probabilities(model, vectors[place : place + 1])[0]
        require(bool(np.allclose(alone, together[place], rtol=0, atol=1e-9)), f"row {place} is another alone")


def is_its_layers(subject: Subject) -> None:
    """Do its layers, with ReLU between them, give the log-odds that its probabilities give?"""
    if "layers" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not offer layers")
    model, vectors = _trained(subject), example_problem().vectors
    found, last = vectors, len(model.layers()) - 1  # type: ignore[attr-defined]
    for place, (weights, biases) in enumerate(model.layers()):  # type: ignore[attr-defined]
        found = found @ weights + biases
        found = np.maximum(found, 0.0) if place < last else found
    require(
        found.shape == (len(vectors), 2), f"the last layer gives shape {found.shape}, must have 2 outputs"
    )
    same = np.allclose(found[:, 1] - found[:, 0], _log_odds(model, vectors), rtol=1e-6, atol=1e-6)
    require(same, "the layers give other log-odds")


def _trained(subject: Subject) -> Classifier:
    if "weights" in subject.spec.details:
        raise NotApplicable("its weights come with the study")
    if "model" not in subject.memory:
        subject.memory["model"] = fitted(subject.create(), example_problem())
    model: Classifier = subject.memory["model"]
    return model


def _log_odds(model: Classifier, vectors: FloatArray) -> FloatArray:
    found = probabilities(model, vectors)
    return np.asarray(np.log(found[:, 1]) - np.log(found[:, 0]))


CLASSIFIER_CHECKS = checks_of(
    gives_probabilities,
    predicts_a_row_as_among_many,
    learns_what_is_easy,
    is_what_its_state_says,
    learns_the_same_again,
    gradient_is_that_of_the_log_odds,
    is_its_layers,
)
