"""Refined fidelity's metrics on ML-1M with trained weights equal the reference values; needs data of others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cfbench_recsys.edits import FloatArray
from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.cdcg import Cdcg
from cfbench_recsys.metrics.cdcg import Config as CdcgConfig
from cfbench_recsys.metrics.deletion import Config as DeletionConfig
from cfbench_recsys.metrics.deletion import Deletion
from cfbench_recsys.metrics.insertion import Config as InsertionConfig
from cfbench_recsys.metrics.insertion import Insertion
from cfbench_recsys.metrics.pos_at import Config as PosAtConfig
from cfbench_recsys.metrics.pos_at import PosAt
from cfbench_recsys.observations import ImplicitObservations
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Targets

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
GOLDEN = DATA.parent / "reference" / "golden_ml1m_mf"


class TwoTowers:
    """The reference's recommender, written out: the logit of item j is (W_p x + b_p) . (W_i[:, j] + b_i)."""

    link = "sigmoid"

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.profile = weights["profile.weight"].astype(float)
        self.bias = weights["profile.bias"].astype(float)
        self.items = weights["item.weight"].astype(float) + weights["item.bias"].astype(float)[:, None]

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return (profiles @ self.profile.T + self.bias) @ self.items


@pytest.fixture(scope="module")
def golden() -> dict[str, object]:
    pd = pytest.importorskip("pandas")
    safetensors = pytest.importorskip("safetensors.numpy")
    ratings = DATA / "recsys" / "ml-1m.parquet"
    if not ratings.is_file() or not GOLDEN.is_dir():
        pytest.skip("needs MovieLens 1M and the reference weights in the same folder (CFBENCH_DATA_DIR)")
    table = pd.read_parquet(ratings)
    users, rows = np.unique(table.user, return_inverse=True)
    _, columns = np.unique(table.item, return_inverse=True)
    interactions = sparse.csr_matrix((np.ones(len(table)), (rows, columns)))
    interactions.sort_indices()
    explained = np.searchsorted(users, pd.read_csv(GOLDEN / "test_users.csv").user.to_numpy())
    model = TwoTowers(safetensors.load_file(GOLDEN / "two_tower_mf_32.safetensors"))
    blank = Targets.of(interactions, explained, np.zeros((len(explained), 1)), 1, "item", "user-vector")
    best = top_k(model.score_profiles(interactions[explained]), blank.history, blank.padding, 1)
    return {
        "model": model,
        "interactions": interactions,
        "targets": Targets.of(interactions, explained, best, 1, "item", "user-vector"),
        "expected": pd.read_csv(GOLDEN / "refined_metrics.csv").query("scores == 'logit64'"),
    }


def cosine(golden: dict) -> FloatArray:
    """Cosine similarity of each interaction to the target, from the users who are not explained."""
    targets, interactions = golden["targets"], golden["interactions"]
    others = np.setdiff1d(np.arange(interactions.shape[0]), targets.users)
    together = (interactions[others].T @ interactions[others]).toarray()
    norms = np.sqrt(np.diag(together))
    product = norms[targets.history] * norms[targets.items]
    counts = together[targets.history, targets.items]
    return np.where(product > 0, counts / np.where(product > 0, product, 1), 0)


def exact_contribution(golden: dict) -> FloatArray:
    model, targets = golden["model"], golden["targets"]
    return (model.profile.T @ model.items)[targets.history, targets.items]


@pytest.mark.parametrize(
    ("explainer", "importances"), [("cosine", cosine), ("exact_contribution", exact_contribution)]
)
def test_refined_metrics_equal_the_reference_raw_and_normalized(
    golden: dict, explainer: str, importances
) -> None:
    seen = ImplicitObservations(
        golden["model"], golden["targets"], importances(golden), golden["interactions"]
    )
    published = {"supporting_only": False}
    results = compute_metrics(
        [
            PosAt(PosAtConfig(**published)),
            Cdcg(CdcgConfig(**published)),
            Deletion(DeletionConfig(**published)),
            Deletion(DeletionConfig(**published, normalize=False)),
            Insertion(InsertionConfig(**published)),
            Insertion(InsertionConfig(**published, normalize=False)),
        ],
        seen,
    )
    expected = golden["expected"].query("explainer == @explainer")
    assert len(expected) == 40
    for row in expected.itertuples():
        if row.metric.startswith("POS@"):
            name = f"POS-all@{row.metric[4:]},{row.k_e}"
        elif row.metric == "CDCG":
            name = f"CDCG-all@{row.k_e}"
        else:
            name = f"{row.metric}{'' if row.normalized else '-raw'}-all@{row.k_e}"
        assert results[name].mean() == pytest.approx(row.value, abs=1e-4), name


def test_no_order_deletes_more_or_inserts_more_than_exact_contribution(golden: dict) -> None:
    rng = np.random.default_rng(0)
    exact = exact_contribution(golden)
    curves = []
    for importances in (exact, cosine(golden), rng.random(exact.shape)):
        seen = ImplicitObservations(golden["model"], golden["targets"], importances, golden["interactions"])
        curves.append(
            (
                seen.scores_without_explanation((1, 2, 3, 4, 5), False),
                seen.scores_with_explanation((1, 2, 3, 4, 5), False),
            )
        )
    for deleted, inserted in curves[1:]:
        assert (curves[0][0] <= deleted + 1e-9).all()
        assert (curves[0][1] >= inserted - 1e-9).all()
