from dataclasses import replace

import numpy as np
import pytest

from cfbench_tabular.classifiers.mlp import MLP, from_weights
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.explainers.nice import NICE, Config
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of, fitted


def other_chance(model, row, label):
    return model.predict_proba(np.asarray(row)[None])[0, 1 - label]


def heom(encoding, one, other, scale="range"):
    """By column, as the paper returns it; encoded numbers are in standard deviations."""
    total = 0.0
    for column, block, low, high in zip(
        encoding.columns, encoding.blocks, encoding.low, encoding.high, strict=True
    ):
        if column.kind == "categorical":
            total += float((one[block] != other[block]).any())
        elif high > low:
            total += abs(one[block][0] - other[block][0]) / (high - low if scale == "range" else 1.0)
    return total


def by_hand(model, context, row, label, reward, scale, neighbours=5):
    """One copy at a time, one question to the model at a time."""
    encoding = context.encoding
    enemies = [t for t in context.background if model.predict_proba(t[None])[0].argmax() != label]
    target = min(enemies, key=lambda t: heom(encoding, row, t, scale))

    def unusual(z):
        return np.mean(sorted(heom(encoding, z, t, scale) for t in enemies)[:neighbours])

    current = row.copy()
    while model.predict_proba(current[None])[0].argmax() == label:
        best, best_reward = None, -np.inf
        for block in encoding.blocks:
            if (current[block] == target[block]).all():
                continue
            tried = current.copy()
            tried[block] = target[block]
            gain = other_chance(model, tried, label) - other_chance(model, current, label)
            if reward == "proximity":
                gain /= heom(encoding, row, tried, scale) - heom(encoding, row, current, scale)
            if reward == "plausibility":
                better = unusual(current) - unusual(tried)
                gain = -gain * better if gain < 0 and better < 0 else gain * better
            if gain > best_reward:
                best, best_reward = tried, gain
        current = best
    return current


def test_the_column_that_helps_most_is_copied_first(explain, linear, numbers):
    """Both columns of the neighbour (2, 3) count, but the second alone is enough."""
    model = linear([1.0, 1.0], -2.5)
    results = explain(NICE(Config()), model, numbers(2), [[0.0, 0.0]], [[2.0, 3.0], [8.0, 8.0], [0.0, 0.0]])
    assert results.tolist() == [[0.0, 3.0]]


def test_proximity_prefers_what_gains_more_for_its_length(explain, linear, numbers):
    """Either column of the neighbour (6, 2) is enough: the first gains more, the second more per step."""
    model = linear([1.0, 2.0], -2.5)
    given = (model, numbers(2), [[0.0, 0.0]], [[6.0, 2.0], [0.0, 0.0]])
    assert explain(NICE(Config()), *given).tolist() == [[6.0, 0.0]]
    assert explain(NICE(Config(reward="proximity")), *given).tolist() == [[0.0, 2.0]]


@pytest.mark.parametrize("reward", ["sparsity", "proximity", "plausibility"])
@pytest.mark.parametrize("scale", ["range", "deviation"])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_it_follows_the_steps_of_the_paper(reward, scale, seed):
    data = example_data()
    draw = np.random.default_rng(seed)
    model = from_weights(
        {
            "W1": draw.normal(size=(data.encoding.width, 8)),
            "b1": draw.normal(size=8),
            "W2": draw.normal(size=(8, 2)),
            "b2": np.zeros(2),
        }
    )
    context = replace(context_of(data), labels=None)
    factuals = factuals_of(model, data, slice(0, 20))
    assert 0 < factuals.classes.mean() < 1
    results = NICE(Config(reward=reward, scale=scale)).counterfactuals(model, factuals, context)
    for row, label, result in zip(factuals.vectors, factuals.classes, results, strict=True):
        assert result == pytest.approx(by_hand(model, context, row, label, reward, scale), abs=1e-12)


def test_every_counterfactual_flips_and_mixes_the_factual_with_one_training_row():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    context = context_of(data)
    factuals = factuals_of(model, data)
    results = NICE(Config()).counterfactuals(model, factuals, context)
    data.encoding.decode(results)  # raises unless each is a row
    assert ((model.predict_proba(results).argmax(axis=1) == 1) != (factuals.classes == 1)).all()
    for factual, result in zip(factuals.vectors, results, strict=True):
        changed = result != factual
        assert changed.any()
        assert (context.background[:, changed] == result[changed]).all(axis=1).any()


def test_it_copies_from_rows_that_the_model_is_right_about(linear, numbers):
    context = context_of(example_data())
    model, background = linear([1.0], 0.0), np.array([[-2.0], [1.0], [3.0]])
    context = replace(context, encoding=numbers(1), background=background, labels=np.array([0, 0, 1]))
    factuals = Factuals(np.array([[-1.0]]), np.array([0]), ("a",))
    assert NICE(Config()).counterfactuals(model, factuals, context).tolist() == [[3.0]]
    assert NICE(Config(right=False)).counterfactuals(model, factuals, context).tolist() == [[1.0]]
    never_right = replace(context, labels=np.array([0, 0, 0]))
    assert NICE(Config()).counterfactuals(model, factuals, never_right).tolist() == [[1.0]]


def test_what_may_not_change_is_not_copied(linear, numbers):
    encoding = numbers(3)
    columns = (
        replace(encoding.columns[0], immutable=True),
        replace(encoding.columns[1], direction="up"),
        encoding.columns[2],
    )
    background = np.array([[3.0, -1.0, 1.0], [0.0, 2.0, 4.0], [0.0, -3.0, 5.0]])
    context = replace(
        context_of(example_data()),
        encoding=replace(encoding, columns=columns),
        background=background,
        labels=None,
    )
    factuals = Factuals(np.array([[0.0, 0.0, 0.0]]), np.array([0]), ("a",))
    # The nearest enemy (3, -1, 1) may lend 1 only, which is not enough; the next lends 2 or 4.
    found = NICE(Config()).counterfactuals(linear([1.0, 1.0, 1.0], -1.5), factuals, context)
    assert found.tolist() == [[0.0, 0.0, 4.0]]
    impossible = NICE(Config()).counterfactuals(linear([1.0, 0.0, 0.0], -1.5), factuals, context)
    assert np.isnan(impossible).all()


def test_without_an_enemy_there_is_no_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    assert np.isnan(NICE(Config()).counterfactuals(Constant(), factuals, context_of(data))).all()


@pytest.mark.parametrize("name", ["Iris", "MagicGT", "TicTacToe"])
def test_on_cf_tabular_every_factual_has_a_counterfactual(explain, study, name):
    factuals = np.concatenate([study.factuals(name, 0)[:30], study.factuals(name, 1)[:30]])
    model = study.network(name)
    results = explain(NICE(Config()), model, study.encoding(name), factuals, factuals)
    before, after = model.predict_proba(factuals), model.predict_proba(results)
    assert ((before[:, 1] > before[:, 0]) != (after[:, 1] > after[:, 0])).all()
