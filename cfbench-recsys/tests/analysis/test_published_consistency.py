"""Consistency beyond top-1: its claims on runs whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from cfbench_recsys.analysis import consistency, published_consistency_statistics
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.published_consistency_statistics import METRICS, printed_numbers
from cfbench_recsys.analysis.reproduction import Config, Reproduction

USERS = 20
RANKED = ("lxr", "accent", "lime-rs", "shap", "cosine", "jaccard")


def ladder(
    write: Any,
    make_cell: Any,
    turns: bool,
    variant: str = "paper",
    names: tuple[str, ...] = RANKED,
    of_metrics: tuple[str, ...] = ("POS-P curve@5", "NEG-P curve@5"),
    models: tuple[str, ...] = ("mf", "vae"),
    k: int = 5,
    users: int = USERS,
    without: tuple[str, str] = ("", ""),
) -> Any:
    """MF and VAE at two levels; with ``turns`` the first items of VAE are ranked the other way round at the second.

    By the metrics of ``of_metrics``; by others never. ``without``: an explainer that a model lacks.
    """
    cells = []
    for model in models:
        for level, share in enumerate(("50%", "100%")):
            for place, name in enumerate(names):
                if without == (name, model):
                    continue
                label = f"{name}-{variant}" if place < 4 else name
                turned = len(names) - place if turns and model == "vae" and level else place + 1
                scores = {}
                for metric in ("POS-P curve@5", "NEG-P curve@5"):
                    first = 0.1 * (turned if metric in of_metrics else place + 1)
                    below = 0.5 + 0.2 * place  # one order at every level
                    units = [first, *[below] * (k - 1)] * users
                    scores[metric] = units if metric.startswith("POS") else [1 - value for value in units]
                cells.append(make_cell(label, scores, dataset="ml-1m", model=f"{model}@{share}", k=k))
    done = write(*cells, name=f"{variant}-{turns}")
    config = {
        "seed": 0,
        "recommenders": [{"name": "mf"}, {"name": "vae"}],
        "protocol": {"checkpoints": {"training": [0.5, 1.0]}},
    }
    (done.directory / "config.yaml").write_text(yaml.safe_dump(config))
    return done


def test_a_ranking_that_turns_at_the_first_item_gains_from_the_others(write: Any, make_cell: Any) -> None:
    run = ladder(write, make_cell, turns=True)
    table = Reproduction(Config(paper="beyond-top-1")).table([run])
    claims = table[table["item"] == "claims"].set_index("claim")
    assert claims.loc["vae-more-consistent", "verdict"] == "confirmed in part"
    assert claims.loc["vae-more-consistent", "ours"] == pytest.approx(2.0)  # from rho -1 to 1
    assert claims.loc["vae-unstable-at-1", "verdict"] == "confirmed in part"
    assert claims.loc["mf-stable", "verdict"] == "confirmed in part"
    assert claims.loc["lxr-best", "ours"] == 1.0 and claims.loc["lxr-best", "printed"] == 1.0
    # Both metrics change in the same way: neither is more stable.
    for name in ("neg-more-stable", "neg-more-stable-at-1"):
        assert claims.loc[name, "ours"] == pytest.approx(0.0)
        assert claims.loc[name, "verdict"] in ("undecided", "refuted in part")


def test_one_metric_that_turns_at_the_first_item_is_less_stable(write: Any, make_cell: Any) -> None:
    run = ladder(write, make_cell, turns=True, of_metrics=("POS-P curve@5",))
    claims = Reproduction(Config(paper="beyond-top-1")).table([run]).set_index("claim")
    # VAE: rho -1 against 1 over the first item, and 1 on both sides over the first 2, 3 and 5; MF: 1 everywhere.
    assert claims.loc["neg-more-stable-at-1", "ours"] == pytest.approx(1.0)
    assert claims.loc["neg-more-stable", "ours"] == pytest.approx(1.0 / 4)
    assert claims.loc["neg-more-stable", "verdict"] == "confirmed in part"


@pytest.mark.parametrize(
    ("shift", "word"), [(-1.0, "refuted in part"), (0.15, "undecided"), (1.0, "confirmed in part")]
)
def test_that_lxr_is_best_is_decided_by_its_interval(
    write: Any, make_cell: Any, shift: float, word: str
) -> None:
    """Values are noise, but for LXR, which is better by ``shift``."""
    noise, cells = np.random.default_rng(0), []
    for level in ("50%", "100%"):
        for place, name in enumerate(RANKED):
            label = f"{name}-paper" if place < 4 else name
            values = noise.random(3 * USERS) + (place > 0) * shift
            scores = {"POS-P curve@5": values.tolist(), "NEG-P curve@5": (-values).tolist()}
            cells.append(make_cell(label, scores, dataset="ml-1m", model=f"mf@{level}", k=3))
    run = write(*cells, name="noise")
    config = {
        "seed": 0,
        "recommenders": [{"name": "mf"}],
        "protocol": {"checkpoints": {"training": [0.5, 1.0]}},
    }
    (run.directory / "config.yaml").write_text(yaml.safe_dump(config))
    claims = Reproduction(Config(paper="beyond-top-1")).table([run]).set_index("claim")
    found = claims.loc["lxr-best"]
    assert found["verdict"] == word, found["reason"]
    assert found["ci_low"] <= found["ours"] <= found["ci_high"]


@pytest.mark.parametrize(
    ("lxr", "word"), [((0.5, 0.5), "undecided"), ((0.4, 0.5), "undecided"), ((0.5, 0.6), "refuted in part")]
)
def test_that_lxr_is_best_is_undecided_where_others_tie_with_it(
    write: Any, make_cell: Any, lxr: tuple[float, float], word: str
) -> None:
    """Costs of LXR at two levels; those of the others are 0.5."""
    cells = []
    for level, cost in zip(("50%", "100%"), lxr, strict=True):
        for place, name in enumerate(RANKED):
            values = [0.5 if place else cost] * 3 * USERS
            scores = {"POS-P curve@5": values, "NEG-P curve@5": [-value for value in values]}
            label = f"{name}-paper" if place < 4 else name
            cells.append(make_cell(label, scores, dataset="ml-1m", model=f"mf@{level}", k=3))
    run = write(*cells, name="ties")
    config = {
        "seed": 0,
        "recommenders": [{"name": "mf"}],
        "protocol": {"checkpoints": {"training": [0.5, 1.0]}},
    }
    (run.directory / "config.yaml").write_text(yaml.safe_dump(config))
    found = claims_of(run).loc["lxr-best"]
    assert found["verdict"] == word, found["reason"]
    assert ("by how ties are counted" in found["reason"]) == (word == "undecided")


def test_rankings_of_some_of_the_explainers_decide_nothing(write: Any, make_cell: Any) -> None:
    run = ladder(write, make_cell, turns=True, names=RANKED[:4])
    claims = Reproduction(Config(paper="beyond-top-1")).table([run]).query("item == 'claims'")
    assert set(claims["verdict"]) == {"undecided"} and claims["ours"].notna().all()
    assert claims["reason"].str.startswith("without cosine, jaccard; ").all()


def claims_of(run: Any) -> pd.DataFrame:
    table = Reproduction(Config(paper="beyond-top-1")).table([run])
    return table[table["item"] == "claims"].set_index("claim")


def test_an_explainer_that_one_recommender_lacks_leaves_its_rankings_undecided(
    write: Any, make_cell: Any
) -> None:
    claims = claims_of(ladder(write, make_cell, turns=True, without=("jaccard", "vae")))
    assert (claims.loc["mf-stable", "verdict"], claims.loc["lxr-best", "verdict"]) == (
        "confirmed in part",
    ) * 2
    for name in ("vae-more-consistent", "vae-unstable-at-1", "neg-stable-at-2"):
        assert claims.loc[name, "verdict"] == "undecided", name
        assert claims.loc[name, "reason"].startswith("without jaccard; "), name


def test_a_claim_about_two_recommenders_needs_both(write: Any, make_cell: Any) -> None:
    claims = claims_of(ladder(write, make_cell, turns=False, models=("mf",)))
    assert claims.loc["mf-stable", "verdict"] == "confirmed in part"
    assert claims.loc["neg-stable-at-2", "verdict"] == "not reproducible"
    assert claims.loc["neg-stable-at-2", "reason"] == "not measured here; without vae"


def test_a_recommender_with_fewer_seeds_than_another_counts(write: Any, make_cell: Any) -> None:
    runs = [
        ladder(write, make_cell, turns=False),
        ladder(write, make_cell, turns=True, models=("vae",)),
    ]
    table = Reproduction(Config(paper="beyond-top-1")).table(runs)
    claims = table[table["item"] == "claims"].set_index("claim")
    assert claims.loc["mf-stable", "verdict"] == "confirmed in part"
    assert claims.loc["vae-unstable-at-1", "ours"] == pytest.approx(0.0)  # the mean of 1 and -1
    ours = table[(table["item"] == "table-1") & table["ours"].notna()]
    assert len(ours) == 2 * 6 * 2  # levels, explainers, metrics


def test_a_claim_about_the_five_first_items_is_not_decided_by_three(write: Any, make_cell: Any) -> None:
    claims = claims_of(ladder(write, make_cell, turns=True, k=3))
    assert claims.loc["mf-stable", "verdict"] == "confirmed in part"
    for name in ("vae-more-consistent", "vae-more-consistent-matched", "neg-more-stable"):
        assert claims.loc[name, "verdict"] == "not reproducible", name


def test_rankings_of_one_user_decide_nothing(write: Any, make_cell: Any) -> None:
    """All draws of one user are the same, so their interval has length zero."""
    run = ladder(write, make_cell, turns=True, users=1)
    claims = claims_of(run)
    decided = claims[claims["verdict"] != "not reproducible"]
    assert len(decided) >= 5 and set(decided["verdict"]) == {"undecided"}
    assert decided["reason"].str.startswith(ONE_USER).all()
    analysis = consistency.Consistency(consistency.Config(metrics=METRICS))
    table = analysis.table([run])
    assert table["mean"].notna().any() and table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert "undecided: " in analysis.words(table) and analysis.figures(table)


def test_variants_are_ranked_apart(write: Any, make_cell: Any) -> None:
    runs = [ladder(write, make_cell, turns=True), ladder(write, make_cell, turns=False, variant="cfbench")]
    table = Reproduction(Config(paper="beyond-top-1")).table(runs)
    gains = table[table["claim"] == "vae-more-consistent"].set_index("variant")["ours"]
    assert gains["paper"] == pytest.approx(2.0) and gains["cfbench"] == pytest.approx(0.0)


def test_printed_numbers_of_table_1() -> None:
    printed = printed_numbers()
    assert len(printed) == 3 * 6 * 4 and printed["printed"].between(0.4, 1).all()
    row = printed.query("checkpoint == '75%' and explainer == 'accent' and metric == 'NEG-P curve@5'")
    assert row["printed"].item() == 0.731
    # The printed orders agree between levels: the statistic against scipy's, pair by pair.
    claim = {"statistic": "agreement-3", "model": "mf", "metric": "POS-P curve"}
    pairs = []
    for _, rows in printed[printed["metric"].str.startswith("POS")].groupby("metric"):
        wide = rows.pivot(index="explainer", columns="checkpoint", values="printed")
        pairs += [
            stats.spearmanr(wide[one], wide[other]).statistic
            for at, one in enumerate(wide.columns)
            for other in wide.columns[at + 1 :]
        ]
    assert published_consistency_statistics.printed_statistic(claim) == pytest.approx(np.mean(pairs))
