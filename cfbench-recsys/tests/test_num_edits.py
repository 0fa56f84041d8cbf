"""#Perturb, coverage, success rate and #Perturb of the successes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.coverage import Coverage, coverage
from cfbench_recsys.metrics.num_edits import NumEdits
from cfbench_recsys.metrics.num_edits_given_success import NumEditsGivenSuccess, num_edits_given_success
from cfbench_recsys.metrics.success_rate import SuccessRate


def test_an_answer_that_fails_has_no_size() -> None:
    np.testing.assert_array_equal(
        num_edits_given_success(np.array([2, 3, 0]), np.array([True, False, False])), [2.0, np.nan, np.nan]
    )


def test_no_edits_is_no_answer() -> None:
    np.testing.assert_array_equal(coverage(np.array([0, 1, 5])), [0.0, 1.0, 1.0])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_they_count_by_the_definition(draw_explicit, level: str, data: st.DataObject) -> None:
    case, edits = draw_explicit(data, level)
    metrics = [NumEdits(), Coverage(), SuccessRate(), NumEditsGivenSuccess()]
    results = compute_metrics(metrics, case.explicit(edits))
    for b, ((user, items), edit) in enumerate(zip(case.units(), edits, strict=True)):
        succeeded = case.displaced(user, items, case.after(user, edit)) > 0
        assert results["#Perturb"][b] == len(edit)
        assert results["#Removals"][b] == sum(item in case.histories[user] for item in edit)
        assert results["#Additions"][b] == sum(item not in case.histories[user] for item in edit)
        assert results["Coverage"][b] == bool(edit)
        assert results[f"Success@{case.k}"][b] == succeeded
        size = results[f"#Perturb given success@{case.k}"][b]
        assert size == len(edit) if succeeded else np.isnan(size)
