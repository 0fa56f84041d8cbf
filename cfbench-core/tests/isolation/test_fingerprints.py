"""Arrays in objects: made read-only, and digested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cfbench_core.isolation.fingerprints import fingerprint, freeze, leaves


@dataclass(frozen=True)
class Data:
    matrix: sparse.csr_matrix
    labels: np.ndarray
    nested: dict[str, list[np.ndarray]]


def data() -> Data:
    return Data(sparse.eye(3, format="csr"), np.array(["a", "b"]), {"x": [np.zeros(2)]})


def test_all_arrays_of_an_object_are_found_by_their_path() -> None:
    found = {path for path, leaf in leaves(data()) if isinstance(leaf, np.ndarray)}
    assert found == {"matrix.data", "matrix.indices", "matrix.indptr", "labels", "nested.x.0"}


def test_frozen_arrays_cannot_be_written() -> None:
    frozen = data()
    freeze(frozen)
    for array in (frozen.matrix.data, frozen.matrix.indices, frozen.labels, frozen.nested["x"][0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_an_object_that_contains_itself_is_searched_once() -> None:
    loop: dict[str, object] = {"array": np.zeros(1)}
    loop["self"] = loop
    assert [path for path, _ in leaves(loop)] == ["array"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([0.0, 1.0]), np.array([0.0, 2.0])),
        (np.array([1.0]), np.array([1], dtype=np.int64)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
        (np.array(["a"]), np.array(["b"])),
        (np.arange(6).reshape(2, 3).T, np.arange(6).reshape(3, 2)),
        (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
        (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"b": ["x"]})),
        (1.0, 2.0),
        (1, True),
    ],
)
def test_other_contents_have_other_fingerprints(one: object, other: object) -> None:
    if isinstance(one, np.datetime64):
        one, other = np.array(one), np.array(other)
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_nan_equals_itself() -> None:
    assert fingerprint(float("nan")) == fingerprint(float("nan"))
    assert fingerprint(np.array([np.nan])) == fingerprint(np.array([np.nan]))


def test_arrays_of_a_fitted_estimator_stay_writable() -> None:
    """Compiled code of scikit-learn asks for arrays that can be written."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    vectors = np.random.default_rng(0).normal(size=(60, 3))
    held = {
        "vectors": vectors.copy(),
        "model": ensemble.GradientBoostingClassifier(n_estimators=3).fit(vectors, vectors[:, 0] > 0),
    }
    expected = held["model"].predict_proba(vectors)
    freeze(held)
    assert not held["vectors"].flags.writeable
    assert np.array_equal(held["model"].predict_proba(vectors), expected)
