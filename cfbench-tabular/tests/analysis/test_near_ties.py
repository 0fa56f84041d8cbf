"""Claims of table 6 that few factuals would decide: near ties by hand, and the factuals counted by their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from cfbench_tabular.analysis.printed_numbers import ALGORITHMS, differing
from cfbench_tabular.analysis.published_claims import BOUNDS, NEAR, of_ranks
from cfbench_tabular.analysis.reproduction_verdicts import verdict_of
from cfbench_tabular.analysis.run_data import studies


@pytest.mark.parametrize(
    ("differs", "places", "verdict"),
    [
        (1, [1.0, 7.0], "undecided"),
        (5, [1.0, 7.0], "undecided"),
        (6, [np.nan, np.nan], "refuted"),  # 2 / 2^6 = 0.03: no near tie
    ],
)
def test_a_place_that_fewer_than_six_factuals_decide_is_undecided(
    differs: int, places: list[float], verdict: str
) -> None:
    """Seven have nearly the same rank, of which the last, which the claim is about, missed one factual."""
    names = [*ALGORITHMS]
    ranks = dict(zip(names, [5.3489] * 6 + [5.3527, 8.0, 9.0, 10.0], strict=True))
    apart = dict(zip(names, [differs] * 6 + [0, 90, 91, 92], strict=True))
    own = pd.DataFrame({"ours": ranks, "factuals": 1327.0, "printed_factuals": 1327.0, "differs": apart})
    row = {"item": "table 6", "measure": "coverage, realistic", "whole": True}
    row |= dict.fromkeys((*BOUNDS, *NEAR), np.nan)
    placed = row | of_ranks(own, names[6], 10)
    assert placed["ours"] == 7.0
    assert [placed[name] for name in NEAR] == pytest.approx(places, nan_ok=True)
    found = verdict_of(placed, True, 0.1)
    assert found.word == verdict
    if verdict == "undecided":
        about = f"by algorithms whose ranks differ on {differs} of 1,327 factuals or fewer (6 decide)"
        assert found.reason == f"near tie: 1 to 7 against <= 4, {about}"
    else:
        assert found.reason == "7 against <= 4"
    assert (scipy.stats.binomtest(0, differs).pvalue > 0.05) == (verdict == "undecided")


def test_near_ties_within_the_best_four_leave_the_claim_confirmed() -> None:
    names = [*ALGORITHMS]
    ranks = dict(zip(names, [1.0, 1.1, 1.2, *range(4, 11)], strict=True))
    apart = dict(zip(names, [0, 2, 3, *[50] * 7], strict=True))
    own = pd.DataFrame({"ours": ranks, "factuals": 99.0, "printed_factuals": 99.0, "differs": apart})
    row = {"item": "table 6", "measure": "L2, valid", "whole": True, **dict.fromkeys(BOUNDS, np.nan)}
    placed = row | of_ranks(own, names[0], 10)
    assert [placed[name] for name in NEAR] == [1.0, 3.0]
    assert verdict_of(placed, True, 0.1) == ("confirmed", "1 against <= 4")


def test_differing_factuals_are_counted_by_their_ranks(write: Any, make_cell: Any) -> None:
    """Ranks on each factual written down by hand: values 1 to 10, except where cadex and dice are exchanged or tie."""
    values = {name: [float(place)] * 4 for place, name in enumerate(ALGORITHMS, start=1)}
    values["cadex"], values["dice"] = [3.0, 3.0, 4.0, 3.5], [4.0, 4.0, 3.0, 3.5]
    cells = [
        make_cell(name, {"validity": [1] * 4, "realistic": [1] * 4, "L2": own})
        for name, own in values.items()
    ]
    (study,) = studies([write(*cells)])
    expected = {name: 0 if name == "alibic" else 4 for name in ALGORITHMS}
    assert differing(study, "table 4", "total", "L2", "alibic") == expected
    found = differing(study, "table 4", "total", "L2", "cadex")
    assert found["cadex"] == 0 and found["dice"] == 3  # the same rank, 3.5, on the last
    assert set(differing(study, "table 5", "total", "coverage", "sedc").values()) == {0}
