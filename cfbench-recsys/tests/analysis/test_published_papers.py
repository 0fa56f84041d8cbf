"""Refined fidelity and Consistency beyond top-1: their claims on runs whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from cfbench_recsys.analysis import consistency, published_consistency, published_fidelity
from cfbench_recsys.analysis.claim_statistics import STATISTICS
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.reproduction import Config, Reproduction
from cfbench_recsys.metrics.lxr_curves import point_name

USERS = 20
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


# Consistency beyond top-1


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
    assert claims.loc["vae-more-consistent", "verdict"] == "confirmed"
    assert claims.loc["vae-more-consistent", "ours"] == pytest.approx(2.0)  # from rho -1 to 1
    assert claims.loc["vae-unstable-at-1", "verdict"] == "confirmed"
    assert claims.loc["mf-stable", "verdict"] == "confirmed"
    assert claims.loc["lxr-best", "ours"] == 1.0 and claims.loc["lxr-best", "printed"] == 1.0
    # Both metrics change in the same way: neither is more stable.
    for name in ("neg-more-stable", "neg-more-stable-at-1"):
        assert claims.loc[name, "ours"] == pytest.approx(0.0)
        assert claims.loc[name, "verdict"] != "confirmed"


def test_one_metric_that_turns_at_the_first_item_is_less_stable(write: Any, make_cell: Any) -> None:
    run = ladder(write, make_cell, turns=True, of_metrics=("POS-P curve@5",))
    claims = Reproduction(Config(paper="beyond-top-1")).table([run]).set_index("claim")
    # VAE: rho -1 against 1 over the first item, and 1 on both sides over the first 2, 3 and 5; MF: 1 everywhere.
    assert claims.loc["neg-more-stable-at-1", "ours"] == pytest.approx(1.0)
    assert claims.loc["neg-more-stable", "ours"] == pytest.approx(1.0 / 4)
    assert claims.loc["neg-more-stable", "verdict"] == "confirmed"


@pytest.mark.parametrize(("shift", "word"), [(-1.0, "refuted"), (0.15, "undecided"), (1.0, "confirmed")])
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
    ("lxr", "word"), [((0.5, 0.5), "undecided"), ((0.4, 0.5), "undecided"), ((0.5, 0.6), "refuted")]
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
    assert set(claims["reason"]) == {"without cosine, jaccard"}


def claims_of(run: Any) -> pd.DataFrame:
    table = Reproduction(Config(paper="beyond-top-1")).table([run])
    return table[table["item"] == "claims"].set_index("claim")


def test_an_explainer_that_one_recommender_lacks_leaves_its_rankings_undecided(
    write: Any, make_cell: Any
) -> None:
    claims = claims_of(ladder(write, make_cell, turns=True, without=("jaccard", "vae")))
    assert (claims.loc["mf-stable", "verdict"], claims.loc["lxr-best", "verdict"]) == ("confirmed",) * 2
    for name in ("vae-more-consistent", "vae-unstable-at-1", "neg-stable-at-2"):
        assert claims.loc[name, ["verdict", "reason"]].tolist() == ["undecided", "without jaccard"], name


def test_a_claim_about_two_recommenders_needs_both(write: Any, make_cell: Any) -> None:
    claims = claims_of(ladder(write, make_cell, turns=False, models=("mf",)))
    assert claims.loc["mf-stable", "verdict"] == "confirmed"
    assert claims.loc["neg-stable-at-2", "verdict"] == "not reproducible"
    assert claims.loc["neg-stable-at-2", "reason"] == "not measured here; without vae"


def test_a_recommender_with_fewer_seeds_than_another_counts(write: Any, make_cell: Any) -> None:
    runs = [
        ladder(write, make_cell, turns=False),
        ladder(write, make_cell, turns=True, models=("vae",)),
    ]
    table = Reproduction(Config(paper="beyond-top-1")).table(runs)
    claims = table[table["item"] == "claims"].set_index("claim")
    assert claims.loc["mf-stable", "verdict"] == "confirmed"
    assert claims.loc["vae-unstable-at-1", "ours"] == pytest.approx(0.0)  # the mean of 1 and -1
    assert len(table[table["item"] == "table-1"]) == 2 * 6 * 2  # levels, explainers, metrics


def test_a_claim_about_the_five_first_items_is_not_decided_by_three(write: Any, make_cell: Any) -> None:
    claims = claims_of(ladder(write, make_cell, turns=True, k=3))
    assert claims.loc["mf-stable", "verdict"] == "confirmed"
    for name in ("vae-more-consistent", "vae-more-consistent-matched", "neg-more-stable"):
        assert claims.loc[name, "verdict"] == "not reproducible", name


def test_rankings_of_one_user_decide_nothing(write: Any, make_cell: Any) -> None:
    """All draws of one user are the same, so their interval has length zero."""
    run = ladder(write, make_cell, turns=True, users=1)
    claims = claims_of(run)
    decided = claims[claims["verdict"] != "not reproducible"]
    assert len(decided) >= 5 and set(decided["verdict"]) == {"undecided"}
    assert set(decided["reason"]) == {ONE_USER}
    analysis = consistency.Consistency(consistency.Config(metrics=published_consistency.METRICS))
    table = analysis.table([run])
    assert table["mean"].notna().any() and table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert "undecided: " in analysis.words(table) and analysis.figures(table)


def test_variants_are_ranked_apart(write: Any, make_cell: Any) -> None:
    runs = [ladder(write, make_cell, turns=True), ladder(write, make_cell, turns=False, variant="cfbench")]
    table = Reproduction(Config(paper="beyond-top-1")).table(runs)
    gains = table[table["claim"] == "vae-more-consistent"].set_index("variant")["ours"]
    assert gains["paper"] == pytest.approx(2.0) and gains["cfbench"] == pytest.approx(0.0)


def test_numbers_of_table_1_are_those_of_yahoo_music(write: Any, make_cell: Any) -> None:
    table = Reproduction(Config(paper="beyond-top-1")).table([ladder(write, make_cell, turns=False)])
    numbers = table[table["item"] == "table-1"]
    assert len(numbers) == 2 * 6 * 2  # levels, explainers, metrics
    assert set(numbers["verdict"]) == {"not comparable"}
    assert numbers["reason"].str.contains("Yahoo").all()


def test_printed_numbers_of_table_1() -> None:
    printed = published_consistency.printed_numbers()
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
    assert published_consistency._printed_statistic(claim) == pytest.approx(np.mean(pairs))


def test_the_table_survives_csv(fidelity_run: Any, tmp_path: Any) -> None:
    analysis = Reproduction(Config(paper="refined-fidelity"))
    table = analysis.table([fidelity_run])
    table.to_csv(tmp_path / "table.csv", index=False)
    assert analysis.text(pd.read_csv(tmp_path / "table.csv")) == analysis.text(table)
