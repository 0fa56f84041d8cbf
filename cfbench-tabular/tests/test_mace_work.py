"""With a limit of work in place of time, MACE's answers are the same on every machine and in every order."""

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.mace import MACE, Config

pytest.importorskip("z3", reason="needs cfbench-tabular[mace]")

ROWS = np.random.default_rng(1).normal(size=(40, 8))
ENDLESS = 1e6


def explained(model, encoding, order, **options) -> Explanation:
    rows = ROWS[order]
    classes = model.predict_proba(rows).argmax(axis=1)
    factuals = Factuals(rows, classes.astype(np.int64), tuple(map(str, order)))
    context = Context(encoding, ROWS, lambda unit: generator("test", unit))
    return MACE(Config(seconds=ENDLESS, **options)).counterfactuals(model, factuals, context)


@pytest.mark.slow
def test_answers_do_not_depend_on_what_was_solved_before(network, numbers):
    model, encoding, order = network(8, hidden=30, seed=1), numbers(8), np.arange(6)
    one = explained(model, encoding, order, work=40_000)
    other = explained(model, encoding, order[::-1], work=40_000)
    assert 0 in one.details["proven"]  # the limit was reached
    np.testing.assert_array_equal(one.counterfactuals, other.counterfactuals[::-1])
    for name, values in one.details.items():
        np.testing.assert_array_equal(values, other.details[name][::-1])


@pytest.mark.slow
def test_more_work_comes_at_least_as_near(network, numbers):
    model, encoding, order = network(8, hidden=30, seed=1), numbers(8), np.arange(4)
    less, more = (explained(model, encoding, order, work=work) for work in (2_000, 100_000))
    assert (more.details["objective"] <= less.details["objective"]).all()
    assert (more.details["bound"] >= less.details["bound"]).all()
    assert (more.details["bound"] > less.details["bound"]).any()
