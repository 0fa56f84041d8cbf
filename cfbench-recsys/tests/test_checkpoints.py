"""Checkpoints: which evaluation is taken for which name, thinning, and a run over several levels of quality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.api import plan, run
from cfbench_core.errors import UserError
from cfbench_recsys.checkpoints import MOST, EvaluationHistory, load_checkpoint, save_checkpoint
from cfbench_recsys.config import Checkpoints


def recorded(folder, qualities, every=1):
    """EvaluationHistory with these NDCG@10 (and HR@10 twice that); each state holds the number of its epoch."""
    history = EvaluationHistory(folder / "evaluations")
    for number, value in enumerate(qualities, start=1):
        epoch = number * every
        state = {"epoch": np.array([epoch])}
        history.record(epoch, {"NDCG@10": value, "HR@10": 2 * value}, lambda state=state: state)
    return history


def epoch_at(history, name, best):
    state, evaluation = history.at(name, best)
    assert state["epoch"][0] == evaluation["epoch"]
    assert evaluation["of"] == best
    return evaluation["epoch"]


def test_shares_of_the_training_and_of_the_best_quality_name_their_evaluations(tmp_path):
    history = recorded(tmp_path, [0.1, 0.2, 0.25, 0.3, 0.31, 0.365, 0.38, 0.4, 0.39, 0.37])
    taken = {
        name: epoch_at(history, name, 8) for name in ("25%", "50%", "75%", "100%", "q50%", "q90%", "q100%")
    }
    assert taken == {"25%": 2, "50%": 4, "75%": 6, "100%": 8, "q50%": 2, "q90%": 6, "q100%": 8}


def test_names_follow_the_configuration():
    assert Checkpoints(training=(0.25, 1.0), quality=(0.8, 0.125)).names == ["25%", "100%", "q80%", "q12.5%"]


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.floats(0.01, 1), min_size=1, max_size=5 * MOST),
    every=st.integers(1, 3),
    share=st.floats(0.01, 1),
)
def test_few_evaluations_are_stored_yet_every_share_is_near_its_place(tmp_path_factory, values, every, share):
    folder = tmp_path_factory.mktemp("evaluations")
    history = recorded(folder, values, every)
    best = (int(np.argmax(values)) + 1) * every
    assert len(list((folder / "evaluations").iterdir())) <= MOST + 1
    assert epoch_at(history, "100%", best) == best
    stride = max(1, 2 * -(-len(values) // MOST))
    assert abs(epoch_at(history, f"{100 * share:g}%", best) - share * best) <= stride * every
    history.discard()
    assert not (folder / "evaluations").exists()


def test_shares_of_quality_need_validation_data(tmp_path):
    history = EvaluationHistory(tmp_path / "evaluations")
    for epoch in (1, 2, 3):
        history.record(epoch, {}, lambda: {"a": np.zeros(1)})
    with pytest.raises(UserError, match="no validation data"):
        history.at("q50%", 3)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    save_checkpoint(tmp_path, "25%", {"w": np.arange(3.0)}, {"epoch": 2, "HR@10": 0.5, "of": 8})
    state, evaluation = load_checkpoint(tmp_path, "25%")
    assert np.array_equal(state["w"], np.arange(3.0))
    assert evaluation == {"epoch": 2, "HR@10": 0.5, "of": 8}


CONFIGURATION = {
    "suite": "recsys",
    "data": "debian-python",
    "recommenders": [{"name": "mf", "dimensions": 8, "epochs": 8}, "ease"],
    "explainers": [{"import": "by_index:ByIndex"}],
    "protocol": {
        "k": 3,
        "level": "item",
        "format": "implicit",
        "users": 10,
        "checkpoints": {"training": [0.25, 1.0]},
    },
    "executor": "inline",
}

EXPLAINER = """
import numpy as np


class ByIndex:
    def __init__(self, config=None):
        pass

    def importances(self, targets, context):
        return targets.history.astype(float)
"""


@pytest.fixture
def by_index(tmp_path, monkeypatch):
    (tmp_path / "by_index.py").write_text(EXPLAINER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def test_a_trained_model_appears_at_each_checkpoint_and_one_in_closed_form_once(by_index):
    models = [cell.labels["model"] for cell in plan(CONFIGURATION).cells]
    assert models == ["mf@25%", "mf@100%", "ease"]


def test_the_last_checkpoint_is_the_model_that_training_chooses(by_index, tmp_path):
    at_checkpoints = run(CONFIGURATION, out=tmp_path / "levels")
    protocol = {**CONFIGURATION["protocol"], "checkpoints": {}}
    plainly = run({**CONFIGURATION, "protocol": protocol}, out=tmp_path / "plainly")
    quality = at_checkpoints.quality.set_index(["model", "metric"])["value"]
    plain = plainly.quality.set_index(["model", "metric"])["value"]
    assert quality["mf@25%"]["HR@20"] < quality["mf@100%"]["HR@20"]
    assert {"mf@25%", "mf@100%", "ease"} == set(quality.index.get_level_values("model"))
    assert (quality["mf@100%"] == plain["mf"]).all()
