import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.l2 import L2
from cfbench_tabular.metrics.l2 import Config as L2Config
from cfbench_tabular.metrics.sparsity import Config as SparsityConfig
from cfbench_tabular.metrics.sparsity import Sparsity
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant, example_data


def plain(width):
    columns = tuple(Column(str(place)) for place in range(width))
    return Encoding(columns, np.zeros(width), np.ones(width), np.zeros(width), np.ones(width))


def results(factuals, counterfactuals, valid=None):
    factuals, counterfactuals = np.asarray(factuals, dtype=float), np.asarray(counterfactuals, dtype=float)
    return Observed(
        factuals=factuals,
        counterfactuals=counterfactuals,
        factual_classes=np.zeros(len(factuals), dtype=np.int64),
        valid=np.ones(len(factuals), dtype=bool) if valid is None else np.array(valid),
        encoding=example_data().encoding if factuals.shape[1] == 7 else plain(factuals.shape[1]),
        background=factuals,
        model=Constant(),
    )


def test_both_by_hand():
    given = results([[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0, 6.0, 8.0]])
    assert Sparsity(SparsityConfig()).compute(given)["sparsity"].tolist() == [0.5]
    assert L2(L2Config()).compute(given)["L2"].tolist() == [5.0]


def test_a_change_below_the_fourth_decimal_is_none_for_sparsity_but_counts_for_the_distance():
    given = results([[0.0, 0.0]], [[0.00004, 0.0]])
    assert Sparsity(SparsityConfig()).compute(given)["sparsity"].tolist() == [1.0]
    assert L2(L2Config()).compute(given)["L2"].tolist() == [0.00004]
    assert L2(L2Config(decimals=4)).compute(given)["L2"].tolist() == [0.0]


def test_counterfactuals_that_are_not_valid_have_no_value():
    given = results([[0.0], [0.0]], [[1.0], [np.nan]], valid=[False, False])
    assert np.isnan(Sparsity(SparsityConfig()).compute(given)["sparsity"]).all()
    assert np.isnan(L2(L2Config()).compute(given)["L2"]).all()


def test_raw_sparsity_counts_columns_as_people_do():
    """Columns: three numbers, a colour of three levels, and striped. A new colour is one change of five."""
    given = results([[0.0, 0, 0, 1, 0, 0, 1]], [[0.0, 0, 0, 0, 1, 0, 1]])
    scores = Sparsity(SparsityConfig()).compute(given)
    assert scores["sparsity"].tolist() == [5 / 7] and scores["raw sparsity"].tolist() == [4 / 5]


vectors = arrays(np.float64, 6, elements=st.sampled_from([-1.5, 0.0, 0.25, 0.25001, 1.0, 7.0]))


@given(vectors, vectors)
def test_they_are_the_literal_formulas(factual, counterfactual):
    given = results([factual], [counterfactual])
    unchanged = sum(round(x, 4) == round(c, 4) for x, c in zip(factual, counterfactual, strict=True))
    distance = math.sqrt(sum((x - c) ** 2 for x, c in zip(factual, counterfactual, strict=True)))
    assert Sparsity(SparsityConfig()).compute(given)["sparsity"][0] == pytest.approx(unchanged / 6)
    assert L2(L2Config()).compute(given)["L2"][0] == pytest.approx(distance)
