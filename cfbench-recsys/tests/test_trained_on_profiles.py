"""Fitting in epochs, of all recommenders that are trained on profiles."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.quality import evaluate
from cfbench_recsys.recommenders import diffrec, mf, ncf, vae
from cfbench_recsys.recommenders.trained_on_profiles import TrainedOnProfiles
from cfbench_recsys.testing.world import split, without_validation

SMALL: dict[str, tuple[type[Any], Any]] = {
    "mf": (mf.MF, mf.Config(dimensions=8, device="cpu")),
    "vae": (vae.VAE, vae.Config(hidden=24, dimensions=8, epochs=60, learning_rate=5e-3, device="cpu")),
    "ncf": (ncf.NCF, ncf.Config(dimensions=8, units=8, layers=2, learning_rate=0.01, device="cpu")),
    "ncf, towers first alone": (
        ncf.NCF,
        ncf.Config(dimensions=8, units=8, layers=2, learning_rate=0.01, pretraining=10, device="cpu"),
    ),
    "diffrec": (diffrec.DiffRec, diffrec.Config(hidden=24, epochs=120, learning_rate=0.01, device="cpu")),
}


def made(name: str, **changes: Any) -> TrainedOnProfiles:
    kind, config = SMALL[name]
    model: TrainedOnProfiles = kind(dataclasses.replace(config, **changes))
    return model


@pytest.mark.parametrize("name", SMALL)
def test_training_finds_what_popularity_does_not(name: str) -> None:
    data = split()
    model = made(name)
    summary = model.fit(data, generator)
    popular = np.asarray(data.train.sum(axis=0)).ravel()

    class Popularity:
        def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
            return np.tile(popular, (profiles.shape[0], 1))

    ours, theirs = (evaluate(m, data.test, data.profiles, ks=(3,)) for m in (model, Popularity()))
    assert ours["HR@3"] > theirs["HR@3"] + 0.2
    assert summary["validation"] == evaluate(model, data.validation, data.profiles)
    best = max(summary["history"], key=lambda look: look["NDCG@10"])
    assert summary["best_epoch"] == best["epoch"]


@pytest.mark.parametrize("name", SMALL)
def test_each_evaluation_on_the_validation_data_can_be_stored(name: str) -> None:
    seen: list[tuple[int, float, TrainedOnProfiles]] = []
    data = split()

    def keep(epoch: int, quality: Any, state: Any) -> None:
        model = made(name)
        model.load_state(state(), data.profiles)
        seen.append((epoch, quality["NDCG@10"], model))

    changes = {"eval_every": 1} if name == "diffrec" else {}
    made(name, epochs=3, **changes).fit(data, generator, checkpoint=keep)
    assert [epoch for epoch, _, _ in seen] == [1, 2, 3]
    assert all(evaluate(m, data.validation, data.profiles)["NDCG@10"] == ndcg for _, ndcg, m in seen)


@pytest.mark.parametrize("name", SMALL)
def test_progress_is_reported_for_each_epoch(name: str) -> None:
    seen: list[tuple[int, int]] = []
    made(name, epochs=3).fit(without_validation(split().train), generator, lambda *done: seen.append(done))
    assert seen == [(1, 3), (2, 3), (3, 3)]
