"""Refined fidelity: its claims on runs whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from cfbench_recsys.analysis import published_fidelity
from cfbench_recsys.analysis.claim_statistics import STATISTICS
from cfbench_recsys.analysis.reproduction import Config, Reproduction
from cfbench_recsys.metrics.lxr_curves import point_name

USERS = 40  # with fewer, users who all have the same value decide nothing
SIX = published_fidelity.EXPLAINERS


def fidelity_scores(strength: float, shift: float = 0.0) -> dict[str, list[float]]:
    """Values of one explainer that falls with each removal, by ``strength``, and rises again at the end."""
    found: dict[str, list[float]] = {}
    users = np.linspace(-0.01, 0.01, USERS)
    for curve in ("POS-P@20", "NDCG-P", "DEL-P"):
        for share in range(0, 101, 10):
            value = 1 - strength * min(share, 70) / 100 + (0.2 if share > 70 else 0.0)
            found[point_name(curve, share)] = [*(value + users)]
    for k_e in range(1, 6):
        falls = 1 - strength * k_e / 10
        found[f"POS-all@20,{k_e}"] = [*(falls + shift / k_e + users)]
        found[f"DEL-all@{k_e}"] = [*(falls + users)]
        found[f"CDCG-all@{k_e}"] = [*(falls + users)]
        found[f"INS-all@{k_e}"] = [*(1 - falls + users)]
    found["LXR-POS-P@20"] = [*(1 - strength + users)]
    return found


@pytest.fixture
def fidelity_run(write: Any, make_cell: Any) -> Any:
    """LXR is the strongest, but with short explanations POS is against it."""
    strengths = dict(zip(SIX, (0.30, 0.25, 0.2, 0.15, 0.1, 0.6), strict=True))
    cells = [
        make_cell(
            name if name in ("cosine", "jaccard") else f"{name}-paper",
            fidelity_scores(strength, shift=0.12 if name == "lxr" else 0.0),
            dataset="ml-1m",
            k=1,
            scope="user-vector",
        )
        for name, strength in strengths.items()
    ]
    return write(*cells)


def test_claims_of_refined_fidelity_are_decided(fidelity_run: Any) -> None:
    analysis = Reproduction(Config(paper="refined-fidelity"))
    assert analysis.incompatibility([fidelity_run]) == ""
    table = analysis.table([fidelity_run])
    claims = table[table["item"] == "claims"].set_index("claim")
    assert len(claims) == len(published_fidelity.claims())
    for name in (
        "rises-pos-p",
        "rises-ndcg-p",
        "rises-del-p",
        "lxr-best-pos-p",
        "lxr-best-ins",
        "monotonic-del",
    ):
        assert claims.loc[name, "verdict"] == "confirmed", name
    # POS@20,1: 1 - .06 + .12 of LXR against 1 - .03 of Cosine; from three interactions on LXR is lower.
    assert claims.loc["lxr-not-best-short", "reason"].startswith("tied: ")  # by POS@20,2
    assert claims.loc["lxr-best-long", "verdict"] == "confirmed"
    assert claims.loc["cosine-beats-lime-pos", "verdict"] == "confirmed"
    assert claims.loc["lime-beats-cosine-cdcg", "verdict"] == "refuted"
    assert claims.loc["lxr-ties-lime-del", "ours"] == pytest.approx(0.04)
    assert claims.loc["lxr-ties-lime-del", "verdict"] == "refuted"
    numbers = table[table["item"] != "claims"]
    assert set(numbers["item"]) == {"figure-1-left", "figure-1-right"}
    assert set(numbers["verdict"]) == {"not comparable"} and set(numbers["variant"]) == {"", "paper"}


def test_a_curve_that_turns_back_is_not_monotonic(write: Any, make_cell: Any) -> None:
    """DEL falls to its lowest value at once and rises from there on: lower than at first, but not falling."""
    scores = fidelity_scores(0.3)
    users = np.array(scores["DEL-all@1"]) - np.mean(scores["DEL-all@1"])
    for k_e, mean in enumerate((0.9, 0.2, 0.3, 0.4, 0.5), start=1):
        scores[f"DEL-all@{k_e}"] = [*(mean + users)]
    cells = [make_cell(name, scores, dataset="ml-1m", k=1, scope="user-vector") for name in SIX]
    claims = Reproduction(Config(paper="refined-fidelity")).table([write(*cells)]).set_index("claim")
    assert claims.loc["monotonic-del", "ours"] == pytest.approx(0.25)
    assert claims.loc["monotonic-del", "verdict"] == "refuted"
    assert claims.loc["monotonic-ins", "verdict"] == "confirmed"


def test_a_claim_of_several_seeds_is_the_mean_over_them(write: Any, make_cell: Any) -> None:
    """LXR has the highest INS with one seed, Cosine with the other; numbers are shown for each."""
    runs = []
    for seed, best in enumerate(("lxr", "cosine")):
        cells = [
            make_cell(name, fidelity_scores(0.5 if name == best else 0.1), dataset="ml-1m", k=1)
            for name in SIX
        ]
        run = write(*cells, name=f"seed-{seed}")
        (run.directory / "config.yaml").write_text(yaml.safe_dump({"seed": seed}))
        runs.append(run)
    table = Reproduction(Config(paper="refined-fidelity")).table(runs)
    claims = table[table["item"] == "claims"].set_index("claim")
    assert claims.loc["lxr-best-ins", ["ours", "n"]].tolist() == [0.5, 10]
    assert set(table.loc[table["item"] != "claims", "run"]) == {"seed 0", "seed 1"}


def test_every_claim_names_a_statistic_and_known_explainers() -> None:
    for claim in published_fidelity.claims().to_dict("records"):
        assert claim["statistic"] in STATISTICS
        assert set(claim["explainer"].split()) <= set(SIX)
        for metric in claim["metric"].split():
            assert published_fidelity.item_of(metric) or metric.startswith("LXR-")


def test_many_metrics_are_shown_in_blocks(fidelity_run: Any) -> None:
    analysis = Reproduction(Config(paper="refined-fidelity"))
    table = analysis.table([fidelity_run])
    text = analysis.text(table)
    assert ", curve-DEL-P\n" in text and " 70% " in text
    assert max(len(line) for line in text.splitlines() if line.startswith("lxr-paper")) < 200
    assert analysis.latex(table).count(r"\begin{tabular}") == analysis.latex(table).count(r"\end{tabular}")


def test_other_data_must_be_chosen(fidelity_run: Any, write: Any, make_cell: Any) -> None:
    other = write(make_cell("lxr-paper", fidelity_scores(0.5), dataset="shop", k=1), name="other")
    reason = Reproduction(Config(paper="refined-fidelity")).incompatibility([other])
    assert reason.startswith("needs an explainer of Refined fidelity on ml-1m")
    assert Reproduction(Config(paper="refined-fidelity", other_data=True)).incompatibility([other]) == ""


def test_the_table_survives_csv(fidelity_run: Any, tmp_path: Any) -> None:
    analysis = Reproduction(Config(paper="refined-fidelity"))
    table = analysis.table([fidelity_run])
    table.to_csv(tmp_path / "table.csv", index=False)
    assert analysis.text(pd.read_csv(tmp_path / "table.csv")) == analysis.text(table)
