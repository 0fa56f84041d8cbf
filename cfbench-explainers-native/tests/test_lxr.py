from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import cfbench_core
from cfbench_core.data_files import DataAccess
from cfbench_core.devices.batches import DeviceMemoryError
from cfbench_core.errors import UserError
from cfbench_core.store import Store
from cfbench_explainers_native.lxr import LXR, Config, hyperparameters
from cfbench_explainers_native.lxr_paper import PaperOptions
from cfbench_explainers_native.lxr_training import FLOOR, Lessons, initial, log_probability, loss
from cfbench_recsys.testing.limited_memory import memory_for

torch = pytest.importorskip("torch")


class Dense:
    """A linear recommender with gradients: logit ``bias + x W``."""

    def __init__(self, W, bias=None, link="sigmoid"):
        self.link = link
        self.W = np.asarray(W, dtype=float)
        self.bias = np.zeros(self.W.shape[1]) if bias is None else np.asarray(bias, dtype=float)

    def score_profiles(self, profiles):
        return profiles @ self.W + self.bias

    def score_dense(self, profiles):
        return profiles @ torch.from_numpy(self.W) + torch.from_numpy(self.bias)


class DenseCurved(Dense):
    """Logit ``tanh(x W) V``."""

    def __init__(self, items, link, seed=0):
        self.link = link
        draw = np.random.default_rng(seed)
        self.W, self.V = draw.normal(size=(items, 5)), draw.normal(size=(5, items))

    def score_profiles(self, profiles):
        return np.tanh(profiles @ self.W) @ self.V

    def score_dense(self, profiles):
        return torch.tanh(profiles @ torch.from_numpy(self.W)) @ torch.from_numpy(self.V)


def random_histories(users, items, size, seed=0):
    draw = np.random.default_rng(seed)
    return [draw.choice(items, size, replace=False) for _ in range(users)]


PAIRS = 12
"""Items 0..PAIRS-1 are signs, PAIRS..2 PAIRS-1 what they stand for, the rest says nothing."""


@pytest.fixture(scope="module")
def planted(make_world):
    """Item PAIRS + j is recommended to those who have item j, and for no other reason; apart from j all users have
    five items that say nothing. The first 40 users are explained."""
    items = 2 * PAIRS + 30
    W = np.zeros((items, items))
    W[np.arange(PAIRS), PAIRS + np.arange(PAIRS)] = 4.0
    draw = np.random.default_rng(3)
    signs = np.arange(240) % PAIRS
    histories = [[sign, *draw.choice(np.arange(2 * PAIRS, items), 5, replace=False)] for sign in signs]
    no_users: list[int] = []
    training = [no_users] * 40 + histories[40:]
    world = make_world(Dense(W, draw.normal(0, 0.05, items)), histories, items, training)
    return world, signs[:40]


def prepared(context, **options):
    explainer = LXR(Config(**options))
    return explainer, dataclasses.replace(context, state=explainer.prepare(context))


PROBABILITIES = [("sigmoid", "probability"), ("softmax", "probability")]
PROBABILITIES += [(link, target) for link in ("softmax", "identity") for target in ("margin", "logit")]


@pytest.mark.parametrize(("link", "target"), PROBABILITIES)
def test_it_finds_the_one_interaction_that_carries_the_recommendation(planted, link, target):
    """On users whom it has never seen; the others are masked out."""
    world, signs = planted
    linked = Dense(world.model.W, world.model.bias, link)
    context = dataclasses.replace(world.context, model=linked)
    explainer, context = prepared(context, target=target, k=1, epochs=20, hidden=32)
    found = explainer.importances(world.targets(range(40), PAIRS + signs), context)
    assert (found.argmax(axis=1) == 0).all(), "a sign has the lowest index of its history"
    assert (found[:, 0] > 0.5).all()
    assert (found[:, 1:] < 0.5).mean() > 0.95


def test_at_list_level_it_is_the_mean_of_the_masks_of_the_listed_items(planted):
    world, _ = planted
    explainer, context = prepared(world.context, epochs=2, k=3)
    lists = np.arange(PAIRS, PAIRS + 4)
    together = explainer.importances(world.targets([5], [lists], k=4), context)
    each = [explainer.importances(world.targets([5], [item]), context)[0] for item in lists]
    assert together[0] == pytest.approx(np.mean(each, axis=0))


def literal_mask(state, history, item):
    """The network of the module's docstring for one user and item, one number after the other."""
    first = [
        np.tanh(sum(state["profile.weight"][i][unit] for i in history) + state["profile.bias"][unit])
        for unit in range(len(state["profile.bias"]))
    ]
    first += list(np.tanh(state["item.weight"][item] + state["item.bias"]))
    t = [
        np.tanh(sum(x * w for x, w in zip(first, column, strict=True)) + bias)
        for column, bias in zip(state["hidden.weight"].T, state["hidden.bias"], strict=True)
    ]
    logits = [np.dot(state["output.weight"][i], t) + state["output.bias"][i] for i in history]
    return 1 / (1 + np.exp(-np.array(logits)))


def test_the_masks_are_those_of_the_network_as_written(world, make_world):
    histories = [[3], [0, 4, 7, 9], range(11)]
    state = {k: v + 0.1 for k, v in initial(12, 5, np.random.default_rng(0)).items()}
    setting = make_world(Dense(np.eye(12)), histories, 12)
    context = dataclasses.replace(setting.context, state=state)
    for user, item in itertools.product(range(3), (11, 1)):
        found = LXR(Config()).importances(setting.targets([user], [item]), context)[0]
        wide = {name: array.astype(float) for name, array in state.items()}
        assert found == pytest.approx(literal_mask(wide, list(histories[user]), item), abs=1e-12)


HISTORIES = [[0], [1, 5, 6], [2, 3, 4, 7, 8, 9]]


def lessons_of(setting, k):
    return Lessons.of(setting.context, np.arange(setting.profiles.shape[0]), k)


def literal_loss(network, setting, user, item, config):
    """For one user, from masked profiles scored one by one."""
    history = setting.profiles[user].indices.tolist()
    masks = literal_mask(network, history, item)
    logs = []
    for weights in (masks, 1 - masks):
        x = np.zeros(setting.profiles.shape[1])
        x[history] = weights
        scores = setting.model.score_profiles(sparse.csr_matrix(x))[0]
        unseen = np.setdiff1d(np.arange(len(x)), history)
        if config.target == "probability" and setting.model.link == "softmax":
            logs.append(scores[item] - np.log(np.exp(scores).sum()))
            continue
        logit = scores[item]
        full = setting.model.score_profiles(setting.profiles[user])[0]
        if config.target == "logit":
            logit = logit / full[unseen].std()
        if config.target == "margin":
            others = np.sort(scores[np.setdiff1d(unseen, [item])])[::-1]
            logit = (logit - others[config.k - 1]) / full[unseen].std()
        logs.append(-np.log1p(np.exp(-logit)))
    keeping, losing = logs
    return -config.lambda_pos * keeping + config.lambda_neg * max(losing, FLOOR) + config.alpha * masks.mean()


def tensors(seed=0, items=14, hidden=4):
    arrays = initial(items, hidden, np.random.default_rng(seed))
    return {name: torch.from_numpy(array.astype(float)).requires_grad_() for name, array in arrays.items()}


@pytest.mark.parametrize(("link", "target"), PROBABILITIES)
def test_the_loss_is_the_one_as_written(world, link, target):
    setting = world(DenseCurved(14, link), HISTORIES, 14, HISTORIES)
    config = hyperparameters(Config(lambda_pos=3.0, lambda_neg=0.7, alpha=2.0, k=2, target=target))
    lessons, network, rows, places = (
        lessons_of(setting, 2),
        tensors(),
        np.array([2, 0, 1]),
        np.array([1, 0, 1]),
    )
    arrays = {name: tensor.detach().numpy() for name, tensor in network.items()}
    items = setting.lists(2)[rows, places]
    wanted = [literal_loss(arrays, setting, row, item, config) for row, item in zip(rows, items, strict=True)]
    found = loss(network, setting.model, lessons, rows, places, config)
    assert float(found.detach()) == pytest.approx(np.mean(wanted), abs=1e-9)


@pytest.mark.parametrize(("link", "target"), PROBABILITIES)
def test_its_gradient_is_that_of_finite_differences(world, link, target):
    setting = world(DenseCurved(14, link), HISTORIES, 14, HISTORIES)
    config = hyperparameters(Config(lambda_pos=3.0, lambda_neg=0.7, alpha=2.0, k=2, target=target))
    lessons, rows, places = lessons_of(setting, 2), np.array([2, 0, 1]), np.array([1, 0, 1])
    names = list(tensors())

    def of_parameters(*parameters):
        network = dict(zip(names, parameters, strict=True))
        return loss(network, setting.model, lessons, rows, places, config)

    assert torch.autograd.gradcheck(of_parameters, tuple(tensors().values()), eps=1e-6, atol=1e-5)


def test_extreme_logits_give_finite_losses_and_gradients(world):
    W = 1e4 * np.random.default_rng(0).normal(size=(14, 14))
    for link, target in PROBABILITIES:
        setting = world(Dense(W, link=link), HISTORIES, 14, HISTORIES)
        network = tensors()
        rows, places = np.array([1, 2]), np.array([0, 0])
        value = loss(
            network,
            setting.model,
            lessons_of(setting, 2),
            rows,
            places,
            hyperparameters(Config(target=target, k=2)),
        )
        value.backward()
        assert np.isfinite(float(value.detach()))
        assert all(np.isfinite(tensor.grad.numpy()).all() for tensor in network.values())


def test_where_there_are_fewer_rivals_than_places_the_item_stays(world):
    """Its probability is one whatever the mask; only the mean mask is left to learn from."""
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    seen = (torch.tensor([0, 0]), torch.tensor([0, 3]))
    one = torch.tensor([1.0], dtype=torch.float64)
    found = log_probability(scores, torch.tensor([2]), seen, one, hyperparameters(Config(k=2)), "sigmoid")
    assert found.tolist() == [0.0]


def test_a_probability_of_scores_that_are_no_logits_is_an_error_before_the_training(world):
    setting = world(Dense(np.eye(14), link="identity"), HISTORIES, 14, HISTORIES)
    with pytest.raises(UserError, match=r"^lxr: target probability needs a recommender with the link"):
        LXR(Config(target="probability")).prepare(setting.context)


def test_a_margin_does_not_hang_on_the_scale_of_the_logits(world):
    W, histories = np.random.default_rng(1).normal(size=(20, 20)), random_histories(60, 20, 6)
    no_users: list[int] = []
    found = []
    for scale in (1.0, 1000.0):
        setting = world(Dense(scale * W), histories, 20, [no_users] * 10 + histories[10:])
        explainer, context = prepared(setting.context, epochs=4)
        found.append(explainer.importances(setting.targets(range(10), setting.lists(1)[:10, 0]), context))
    assert found[0] == pytest.approx(found[1], abs=1e-3)


@pytest.mark.parametrize("k", [1, 5])
def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone, k):
    setting = type(awkward)(Dense(awkward.model.W), awkward.profiles, awkward.training)
    explainer, context = prepared(setting.context, epochs=2, hidden=8)
    if k == 1:
        targets = setting.targets([*range(6), 2, 2] * 20, ([419] * 6 + [401, 402]) * 20)
        targets = targets.take(np.arange(70))
    else:
        targets = setting.targets(range(2, 6), np.tile(np.arange(410, 415), (4, 1)), k=5)
    assert_each_unit_stands_alone(explainer, targets, context)


def test_it_learns_from_training_users_only_and_is_the_same_again(planted):
    world, _ = planted
    once, again = (LXR(Config(epochs=3)).prepare(world.context) for _ in range(2))
    others = world.profiles.tolil()
    others[:40] = 0.0
    elsewhere = dataclasses.replace(world.context, interactions=others.tocsr())
    changed = LXR(Config(epochs=3)).prepare(elsewhere)
    for name in once:
        assert np.array_equal(once[name], again[name])
        assert np.array_equal(once[name], changed[name])


def test_a_training_without_users_is_an_error_of_one_line(world):
    setting = world(Dense(np.eye(8)), [[0, 1]], 8, [[]])
    with pytest.raises(UserError, match="no users to train on"):
        LXR(Config()).prepare(setting.context)


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")
@pytest.mark.parametrize("most", [7, 1])
@pytest.mark.parametrize("options", [{"epochs": 3}, {"variant": "paper", "paper": PaperOptions(epochs=2)}])
def test_batches_that_do_not_fit_are_learned_from_in_parts(planted, options, most):
    """Profiles of several lengths, so that the mean over all masks of a batch is no mean of those of its parts."""
    setting, _ = planted
    training = setting.training.tolil()
    training[60:, :PAIRS] = 1.0
    context = dataclasses.replace(setting.context, training=training.tocsr())
    _, whole = prepared(context, **options)
    with memory_for(most) as sizes:
        _, parts = prepared(context, **options)
    assert max(sizes) <= most
    assert whole.state.keys() == parts.state.keys()
    for name, array in whole.state.items():
        np.testing.assert_allclose(parts.state[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_a_user_that_does_not_fit_alone_says_what_to_make_smaller(planted):
    with memory_for(0), pytest.raises(DeviceMemoryError, match="make hidden or the recommender smaller"):
        prepared(planted[0].context, epochs=1)


def test_without_validation_all_epochs_are_run(planted):
    world, _ = planted
    state = LXR(Config(epochs=3, validation=0)).prepare(world.context)
    assert "validation" not in state
    looked = LXR(Config(epochs=5)).prepare(world.context)["validation"]
    assert looked[:, 0].tolist() == [2, 4, 5]


def test_the_selected_state_is_that_of_the_best_evaluation(planted):
    """The order on the validation users, read from the stored state, is that of the best evaluation."""
    world, _ = planted
    explainer = LXR(Config(epochs=12, k=2, learning_rate=0.03))
    state = explainer.prepare(world.context)
    gaps = state["validation"][:, 1] - state["validation"][:, 2]
    best = int(state["validation"][gaps.argmin(), 0])
    shorter = LXR(Config(epochs=best, k=2, learning_rate=0.03)).prepare(world.context)
    assert np.array_equal(shorter["profile.weight"], state["profile.weight"])


DATA = Path(os.environ.get("CFBENCH_DATA_DIR") or Path(__file__).parents[3] / "shared" / "data")
GOLDEN = DATA.parent / "reference" / "golden_ml1m_mf"
ML_1M = {
    "recommenders": [{"name": "mf", "weights": str(GOLDEN / "two_tower_mf_32.safetensors")}],
    "explainers": ["random", {"name": "lxr", "epochs": 4}],
}


@pytest.mark.parametrize(
    ("data", "needed", "options"),
    [
        ("debian-python", (), {}),
        pytest.param("amazon-fashion", (DATA / "recsys" / "amazon-fashion.csv",), {}, marks=pytest.mark.slow),
        pytest.param("ml-1m", (DATA / "recsys" / "ml-1m.parquet", GOLDEN), ML_1M, marks=pytest.mark.slow),
    ],
)
def test_its_masks_beat_random_on_users_it_has_not_seen(data, needed, options, tmp_path, monkeypatch):
    """POS-P and NEG-P at item level, user by user: the difference is clear of chance."""
    missing = [path.name for path in needed if not path.exists()]
    if missing:
        pytest.skip(f"no {missing[0]}")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    configuration = {
        "suite": "recsys",
        "data": data,
        "recommenders": [{"name": "mf", "epochs": 40}],
        "explainers": ["random", {"name": "lxr", "epochs": 10}],
        "protocol": {"users": 200, "k": [5], "level": ["item"], "format": ["implicit"]},
        "metrics": ["pos-p", "neg-p"],
        "executor": "inline",
        **options,
    }
    access = DataAccess(data_dir=DATA if needed else None, offline=True)
    scores = cfbench_core.run(configuration, out=tmp_path / "run", access=access).scores
    for metric, sign in (("POS-P@5", 1), ("NEG-P@5", -1)):
        of_users = scores[scores["metric"] == metric].groupby(["explainer", "user"])["value"].mean()
        gain = sign * (of_users["random"] - of_users["lxr-cfbench"])
        assert len(gain) == 200
        assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


def test_each_row_derives_its_explicit_answers_as_its_own_option_says(tmp_path, monkeypatch):
    """The published threshold in one row, the smallest prefix in the other, of the same masks."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    configuration = {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [{"name": "mf", "epochs": 3}],
        "explainers": [
            {"name": "lxr", "epochs": 4, "label": "prefix"},
            {"name": "lxr", "epochs": 4, "label": "published", "derive": "threshold"},
        ],
        "protocol": {"users": 20, "k": [3], "level": ["item"], "postprocess": {"verify": False}},
        "metrics": ["pos-p", "num-edits"],
        "executor": "inline",
    }
    run = cfbench_core.run(configuration, out=tmp_path / "run")
    kinds = [entry.kind for entry in Store().entries()]
    assert kinds.count("explainer") == 1  # trained once for both rows
    rows = run.explanations
    unit = ["explainer", "unit"]
    importances = rows[rows["format"] == "implicit"].set_index([*unit, "edge_item"])["importance"]
    edits = (
        rows[rows["format"] == "explicit"].dropna(subset=["edge_item"]).groupby(unit)["edge_item"].agg(set)
    )
    masks = importances.loc["published"]
    assert masks.sort_index().equals(importances.loc["prefix"].sort_index())
    above = masks[masks > 0.5].reset_index().groupby("unit")["edge_item"].agg(set)
    assert edits.loc["published"].to_dict() == above.to_dict()
    assert edits.loc["prefix"].to_dict() != above.to_dict()
