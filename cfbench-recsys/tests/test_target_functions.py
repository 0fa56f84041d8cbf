"""The functions of the scores that explainers explain, computed one number after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_recsys.target_functions import TargetFunction
from cfbench_recsys.targets import Targets


class Model:
    def __init__(self, link: str) -> None:
        self.link = link


def literal(target: str, link: str, scores: list[float], item: int, seen: set[int], k: int) -> float:
    if target == "logit":
        return scores[item]
    if target == "margin":
        others = sorted((s for j, s in enumerate(scores) if j != item and j not in seen), reverse=True)
        return scores[item] - (others[k - 1] if len(others) >= k else 0.0)
    if link == "sigmoid":
        return -math.log1p(math.exp(-scores[item]))
    return scores[item] - math.log(sum(math.exp(s) for s in scores))


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
@pytest.mark.parametrize("target", ["probability", "logit", "margin"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_each_function_equals_its_formula(target: str, link: str, data: st.DataObject) -> None:
    """Scores are multiples of 1/2, so that candidates tie."""
    items, k = data.draw(st.integers(3, 7)), data.draw(st.integers(1, 4))
    some_scores = st.lists(st.integers(-4, 4).map(lambda n: n / 2), min_size=items, max_size=items)
    scores = data.draw(st.lists(some_scores, min_size=2, max_size=4))
    seen = data.draw(st.sets(st.integers(0, items - 1), max_size=items - 2))
    wanted = data.draw(
        st.lists(st.sampled_from([j for j in range(items) if j not in seen]), min_size=2, max_size=2)
    )
    graph = np.zeros((2, items))
    graph[0, sorted(seen)] = graph[1, 0] = 1.0
    targets = Targets.of(
        sparse.csr_matrix(graph), [0, 0], np.array(wanted)[:, None], k, "item", "user-vector"
    )
    rows, units = (part.ravel() for part in np.indices((len(scores), 2)))
    function = TargetFunction.of(target, Model(link), "it")
    found = function.values(np.array(scores), rows, units, targets)
    for value, row, unit in zip(found[:, 0], rows, units, strict=True):
        assert value == pytest.approx(literal(target, link, scores[row], wanted[unit], seen, k), abs=1e-9)


def test_the_default_is_the_logit_unless_the_link_is_softmax() -> None:
    found = {
        link: TargetFunction.of(None, Model(link), "it").target for link in ("sigmoid", "softmax", "identity")
    }
    assert found == {"sigmoid": "logit", "softmax": "margin", "identity": "logit"}


def test_a_probability_of_scores_that_are_no_logits_is_an_error_of_one_line() -> None:
    with pytest.raises(
        UserError, match=r"^shap: target probability needs a recommender with the link sigmoid or softmax"
    ):
        TargetFunction.of("probability", Model("identity"), "shap")
