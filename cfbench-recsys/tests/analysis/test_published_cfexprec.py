"""CFExpRec's numbers and claims as data: complete, well formed, and a few of each against the paper."""

from __future__ import annotations

import numpy as np
import pytest

from cfbench_core.verdicts import RELATIONS
from cfbench_recsys.analysis.claim_statistics import OF_ORDERS, STATISTICS
from cfbench_recsys.analysis.measured_means import LABELS
from cfbench_recsys.analysis.published_cfexprec import (
    DATASETS,
    EXPLAINERS,
    ITEMS,
    METRICS,
    claims,
    items_of,
    printed_means,
    printed_numbers,
)
from cfbench_recsys.analysis.published_claims import BEST, claim_rows
from cfbench_recsys.replications.cfexprec import cfexprec

PRINTED = printed_numbers()


def printed(item: str, dataset: str, explainer: str, metric: str, level: str, k: str) -> tuple[float, float]:
    rows = PRINTED[
        (PRINTED["item"] == item)
        & (PRINTED["dataset"] == dataset)
        & (PRINTED["explainer"] == explainer)
        & (PRINTED["metric"] == metric)
        & (PRINTED["level"] == level)
        & (PRINTED["k"] == k)
    ]
    assert len(rows) == 1
    return rows["printed"].item(), rows["printed_deviation"].item()


def test_every_table_is_whole() -> None:
    """Table 3: 3 data sets, 4 explainers, 12 columns; table 4: 3, 3, 10; table 5: 3, 7, 10; table 6: 11 rows of 6."""
    assert PRINTED["item"].value_counts().to_dict() == {
        "table-2": 18,
        "table-3": 144,
        "table-4": 90,
        "table-5": 210,
        "table-6": 66,
    }
    numbers = PRINTED[PRINTED["printed"].notna()]["item"].value_counts().to_dict()
    assert numbers == {"table-2": 18, "table-3": 144, "table-4": 54, "table-5": 160, "table-6": 55}
    assert not PRINTED.duplicated(["item", "dataset", "explainer", "level", "k", "metric"]).any()


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_sizes_of_data_sets_need_no_study_but_their_own(scale: str) -> None:
    published = cfexprec()
    (study,) = published.studies_of(published.chosen(["table-2"], scale), scale)
    assert study.name == "table-2"


def test_a_cell_has_a_number_or_a_state() -> None:
    assert (PRINTED["printed"].notna() == (PRINTED["state"] == "")).all()
    assert set(PRINTED["state"]) == {"", "out of memory", "not supported"}
    means = PRINTED[PRINTED["item"].isin(["table-3", "table-4", "table-5"])]
    assert (means["printed"].notna() == means["printed_deviation"].notna()).all()
    shares = means[means["metric"].str.partition("@")[0].isin(["POS-P", "NEG-P", "PN-S", "PN-R", "Gini"])]
    assert shares["printed"].dropna().between(0, 1).all()


def test_numbers_of_each_table_are_those_of_the_paper() -> None:
    assert printed("table-3", "amazon-fashion", "lime-rs", "POS-P@3", "item", "3") == (0.1471, 0.2260)
    assert printed("table-3", "ml-1m", "lxr", "Gini", "list", "5") == (0.7789, 0.1398)
    assert printed("table-3", "yahoo-music", "shap", "NEG-P@3", "list", "3") == (0.4846, 0.3227)
    assert printed("table-4", "amazon-fashion", "prince", "PN-S@3", "item", "3") == (0.2073, 0.4054)
    assert printed("table-4", "yahoo-music", "lxr", "#Perturb", "list", "5") == (5.6980, 2.6644)
    assert printed("table-5", "amazon-fashion", "grease", "PN-R@3", "list", "3") == (0.9341, 0.3180)
    assert printed("table-5", "ml-1m", "c2explainer-add", "#Perturb", "item", "3") == (222184.59, 47467.78)
    assert printed("table-5", "ml-1m", "c2explainer", "PN-S@5", "list", "5") == (0.8188, 0.1658)
    assert printed("table-5", "yahoo-music", "unr-explainer", "PN-R@5", "list", "5") == (0.1225, 0.1193)
    assert printed("table-6", "ml-1m", "accent", "time", "list", "5")[0] == 1.869
    assert printed("table-6", "yahoo-music", "cf2", "time", "list", "5")[0] == 1688.145
    sizes = PRINTED[(PRINTED["item"] == "table-2") & (PRINTED["dataset"] == "ml-1m")]
    assert sizes["printed"].tolist() == [6037, 3381, 575128, 170.16, 95.27, 97.1823]


def test_numbers_have_the_names_of_cfbench() -> None:
    own = PRINTED[PRINTED["item"] != "table-2"]
    assert set(own["explainer"]) == set(EXPLAINERS)
    assert set(own["metric"].str.partition("@")[0]) == set(METRICS)
    assert set(PRINTED["dataset"]) == set(DATASETS) and set(PRINTED["item"]) <= set(ITEMS)


def test_each_printed_mean_would_be_shown_where_it_is_printed() -> None:
    for row in printed_means().frame.to_dict("records"):
        assert list(items_of(row)) == [row["item"]], row


def test_claims_can_be_decided() -> None:
    table = claims()
    assert len(table) >= 12 and table["claim"].is_unique
    assert set(table["section"]) == {"4.1", "4.2", "4.3", "4.4", "4.5", "4.6"}
    for claim in table.to_dict("records"):
        assert claim["statistic"] in (*STATISTICS, BEST) and claim["relation"] in RELATIONS, claim["claim"]
        assert claim["contrast"] in LABELS, claim["claim"]
        assert claim["subject"] or claim["statistic"] == BEST, claim["claim"]
        assert claim["against"] or claim["statistic"] in (BEST, "largest"), claim["claim"]
        assert not (claim["contrast"] == "explainer" and claim["statistic"] in OF_ORDERS), claim["claim"]
        for label, known in (("explainer", EXPLAINERS), ("metric", METRICS), ("dataset", DATASETS)):
            named = claim[label].split()
            if claim["contrast"] == label:
                named += [*claim["subject"].split(), *claim["against"].split()]
            assert set(named) <= set(known), claim["claim"]


def test_verdicts_by_the_printed_tables() -> None:
    """Worked out from the tables by hand."""
    means = printed_means()
    rows = {row["claim"]: row for row in claim_rows(claims(), means, means)}
    verdicts = {name: row["verdict_printed"] for name, row in rows.items()}
    # NEG-P of MF: LXR is the highest in 4 of 4 on Amazon, 0 of 4 on ML-1M, 3 of 4 on Yahoo
    assert rows["lxr-highest-neg-p"]["printed"] == pytest.approx(7 / 12)
    # Gini: ACCENT has 0.4818, LXR 0.4809 on Amazon, item level, K = 3
    assert rows["lxr-sparsest"]["printed"] == pytest.approx(11 / 12)
    assert verdicts["lxr-sparsest"] == "refuted"
    # item level, Yahoo, K = 3: GREASE has 0.2667, UNR-Explainer 0.2367
    assert rows["grease-worst-elsewhere"]["printed"] == 0.75
    assert verdicts["grease-worst-elsewhere"] == "refuted"
    # list level of Amazon: CLEAR is the 7th of 7 at K = 3 and the 6th at K = 5
    assert rows["clear-low-list"]["printed"] == 6.5 and verdicts["clear-low-list"] == "confirmed"
    assert rows["shap-slow-movies"]["printed"] == pytest.approx(np.sqrt(0.732 / 0.111 * 1.559 / 0.050))
    assert rows["unr-few-edits"]["printed"] == 2.05
    assert verdicts["diffrec-varies"] == "not comparable"  # a figure
    assert set(verdicts.values()) == {"confirmed", "refuted", "not comparable"}  # exact
