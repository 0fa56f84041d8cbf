"""The library gives the same counterfactuals as cfbench's own NICE, and passes the conformance checks."""

import numpy as np
import pytest
from cfbench_explainer_nicex.nicex import Columns, Config, NICEx

from cfbench_core.testing import Check, checks_for, verify
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.explainers.nice import NICE
from cfbench_tabular.explainers.nice import Config as OwnConfig
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted

ID = "tabular/explainer/nicex"

pytest.importorskip("nice", reason="pip install --no-deps NICEx==0.2.3")


def test_columns_are_encoded_and_back() -> None:
    data = example_data()
    rows = Columns(data.encoding)
    assert np.array_equal(rows.vectors(rows.of(data.vectors)), data.vectors)


@pytest.mark.parametrize(("scale", "own"), [("minmax", "range"), ("std", "deviation")])
def test_the_library_and_cfbench_agree(scale, own) -> None:
    data = example_data()
    model = fitted(LogisticRegression(LogisticConfig()), data)
    factuals, context = factuals_of(model, data, slice(0, 60)), context_of(data)
    theirs = NICEx(Config(scale=scale)).counterfactuals(model, factuals, context)
    ours = NICE(OwnConfig(scale=own)).counterfactuals(model, factuals, context)
    assert not np.isnan(theirs).any()
    assert np.isclose(theirs, ours).all(axis=1).mean() > 0.9


@pytest.mark.parametrize("check", checks_for(ID), ids=str)
def test_conformance(check: Check) -> None:
    verify(check, ID, options=Config())
