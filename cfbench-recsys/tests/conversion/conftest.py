"""What tests of conversions share: data, the recommender that a conversion names, and a comparison with RecBole's scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import sparse

from cfbench_core.config import Document, decode_options
from cfbench_core.registry import installed
from cfbench_recsys.conversion import Conversion, convert
from cfbench_recsys.interactions import Interactions, from_pairs

Recommender = Callable[[Conversion, sparse.csr_matrix], Any]
CheckRecBole = Callable[[Path, str], None]


@pytest.fixture
def data() -> Interactions:
    """Three users, four items; their identifiers are words."""
    pairs = [("ann", "tea"), ("ann", "ale"), ("bob", "rum"), ("cat", "ale"), ("cat", "gin")]
    return from_pairs("drinks", np.array([user for user, _ in pairs]), np.array([item for _, item in pairs]))


def _component(kind: str, name: str, options: dict[str, Any]) -> Any:
    registry = installed()
    found = registry.find("recsys", kind, name)
    return decode_options(found, Document.of(options), registry).create()


@pytest.fixture
def recommender() -> Recommender:
    """Makes the recommender that a conversion names, with its options and weights, for a matrix of interactions."""

    def make(conversion: Conversion, interactions: sparse.csr_matrix) -> Any:
        model = _component("recommender", conversion.recommender, dict(conversion.options))
        model.load_state(load_file(conversion.path), interactions)
        return model

    return make


@pytest.fixture
def check_recbole(recommender: Recommender, tmp_path: Path) -> CheckRecBole:
    """Checks that the scores of a converted model in a folder are those that RecBole computed."""

    def check(folder: Path, name: str) -> None:
        dataset = _component("dataset", "file", {"path": str(folder / "ratings.csv")})
        data = dataset.load(dataset.find(None))
        user = {id: place for place, id in enumerate(data.user_ids.tolist())}
        item = {id: place for place, id in enumerate(data.item_ids.tolist())}
        expected = np.zeros(data.matrix.shape)
        with np.load(folder / f"{name}.npz") as known:
            rows = [user[id] for id in known["users"].tolist()]
            columns = [item[id] for id in known["items"].tolist()]
            expected[np.ix_(rows, columns)] = known["scores"]
            pairs = (
                [user[id] for id in known["train_users"].tolist()],
                [item[id] for id in known["train_items"].tolist()],
            )
        train = sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=data.matrix.shape)
        model = recommender(convert(folder / f"{name}.pt", data, tmp_path / f"{name}.safetensors"), train)
        if hasattr(model, "score_profiles"):
            found = model.score_profiles(train)
        else:
            found = model.user_embeddings() @ model.item_embeddings().T
        np.testing.assert_allclose(found, expected, atol=2e-5)
        assert np.ptp(expected) > 1e-3, "scores that are all equal would show nothing"

    return check
