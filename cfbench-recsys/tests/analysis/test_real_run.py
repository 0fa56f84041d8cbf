"""Analyses of a real, small run: what must be equal to the run's own tables is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from cfbench_core import run
from cfbench_core.checksums import write_checksums
from cfbench_core.component_specs import component_specs
from cfbench_core.run_directory import Run
from cfbench_core.specs import ComponentSpec, resolve

SAMPLES = Path(__file__).parents[1] / "samples"
ANALYSES = component_specs("cfbench_recsys", "analysis")
OURS = (
    "normalized-gain", "trade-off", "optimality-gap", "agreement", "fidelity", "positions", "recommenders", "cost",
)  # fmt: skip
STUDY = {
    "suite": "recsys",
    "data": "debian-python",
    "recommenders": [{"name": "mf", "epochs": 5}, {"import": "my_lab:CoOccurrence", "label": "co"}],
    "explainers": [
        {"import": "my_lab:ByIndex", "label": "random"},
        {"import": "my_lab:NeedsTraining", "label": "learner"},
        {"import": "my_lab:TakesTheFirst", "label": "first"},
    ],
    "protocol": {"k": [3], "users": 30},
    "metrics": ["pos-p", "neg-p", "pos-at", "ins", "pn-s", "pn-r", "num-edits-given-success", "num-edits"],
    "executor": "inline",
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.chdir(SAMPLES)
        return run(STUDY, out=tmp_path_factory.mktemp("analysis") / "run")


def made(name: str) -> Any:
    (spec,) = (spec for spec in ANALYSES if spec.name == name)
    return resolve(spec.target)(resolve(spec.config)() if spec.config else None)


def keyed(frame: pd.DataFrame) -> pd.Series[float]:
    """A mean for each cell and metric."""
    return frame.set_index(["model", "level", "format", "explainer", "metric"])["mean"].sort_index()


@pytest.mark.slow
def test_positions_put_together_are_the_table(done: Run) -> None:
    table = made("positions").table([done])
    at_ranks = table[table["against"].isna()]
    together = at_ranks.assign(sum=at_ranks["mean"] * at_ranks["n"])
    together = together.groupby(["model", "level", "format", "explainer", "metric"])[["sum", "n"]].sum()
    means = (together["sum"] / together["n"]).rename("mean")
    pd.testing.assert_series_equal(means, keyed(done.summary).loc[means.index], rtol=1e-9)
    assert set(at_ranks["rank"]) == {1, 2, 3} and len(means) == 2 * (2 * 2 + 3 * 2)


def test_random_is_0_and_the_best_1(done: Run) -> None:
    table = made("normalized-gain").table([done])
    known = table[table["mean"].notna()]
    assert len(known) > 20
    assert (known[known["explainer"] == "random"]["mean"] == 0).all()
    best = known.groupby(["model", "level", "metric"])["mean"].max()
    assert best.to_numpy() == pytest.approx(1.0)
    pd.testing.assert_series_equal(
        keyed(table.assign(mean=table["value"])), keyed(done.summary).loc[keyed(table).index], rtol=1e-9
    )


def test_means_of_the_other_analyses_are_those_of_the_table(done: Run) -> None:
    summary = keyed(done.summary)
    for name in ("trade-off", "recommenders"):
        table = made(name).table([done])
        if "against" in table:
            table = table[table["against"] == ""]
        found = keyed(table)
        pd.testing.assert_series_equal(found, summary.loc[found.index], rtol=1e-9)
    fidelity = made("fidelity").table([done])
    plain = fidelity[fidelity["against"] == ""]
    separator = plain["metric"].str.startswith("POS@").map({True: ",", False: "@"})
    found = keyed(plain.assign(metric=plain["metric"] + separator + plain["k_e"].astype(str)))
    pd.testing.assert_series_equal(found, summary.loc[found.index], rtol=1e-9)


def test_the_smallest_answers_are_edits_less_gaps(done: Run) -> None:
    """At item level: over the successes, the mean gap is the mean size less the mean smallest, from the scores."""
    table = made("optimality-gap").table([done])
    scores = done.scores
    sizes = scores[(scores["metric"] == "#Perturb given success@3") & (scores["level"] == "item")]
    wide = sizes.pivot_table(index=["model", "unit"], columns="explainer", values="value")
    for model in ("mf", "co"):
        own = wide.loc[model]
        for explainer in own.columns:
            expected = (own[explainer] - own.min(axis=1)).mean()
            gap = table.query(
                "level == 'item' and model == @model and explainer == @explainer and metric == 'gap'"
            )
            assert gap["mean"].item() == pytest.approx(expected)


def test_agreement_is_that_of_the_stored_explanations(done: Run) -> None:
    """Of each pair, from the table of explanations: rows of both over rows of either, unit by unit."""
    table = made("agreement").table([done])
    assert len(table) == 2 * 2 * 3 * 2  # models, levels, pairs of three explainers, numbers
    stored = done.explanations
    stored = stored[stored["format"] == "explicit"]
    for row in table[table["n"] > 0].to_dict("records"):
        here = stored[(stored["model"] == row["model"]) & (stored["level"] == row["level"])]
        pair = [
            here[here["explainer"] == row[name]].groupby("unit")["edge_item"].agg(set)
            for name in ("explainer", "other")
        ]
        both = pair[0].index.intersection(pair[1].index)
        shares = [len(pair[0][unit] & pair[1][unit]) / len(pair[0][unit] | pair[1][unit]) for unit in both]
        expected = shares if row["metric"] == "overlap" else [share == 1 for share in shares]
        assert row["n"] == len(both) and row["mean"] == pytest.approx(sum(expected) / len(both))


def test_pretraining_is_reported_for_pretrained_explainers(done: Run) -> None:
    table = made("cost").table([done])
    trained = table[table["metric"] == "time of pre-training"]
    assert set(trained["explainer"]) == {"learner"} and (trained["mean"] > 0).all()
    assert len(trained) == 8  # two models, two levels, importances and the edits that are derived from them
    memory = table[table["metric"] == "peak memory in bytes"]
    assert len(memory) == len(done.cells("ok")) and memory["mean"].between(1e7, 1e11).all()
    seconds = table[table["metric"] == "time per explanation"].set_index(
        ["model", "level", "format", "explainer"]
    )["mean"]
    measured = done.summary[done.summary["metric"] == "time"]
    measured = measured.set_index(["model", "level", "format", "explainer"])["mean"]
    pd.testing.assert_series_equal(seconds.sort_index(), measured.loc[seconds.index].sort_index(), rtol=1e-6)


@pytest.mark.parametrize("spec", [spec for spec in ANALYSES if spec.name in OURS], ids=lambda spec: spec.name)
def test_a_table_from_a_csv_file_gives_the_same_figures_and_text(done: Run, spec: ComponentSpec) -> None:
    analysis = made(spec.name)
    assert analysis.incompatibility([done]) == ""
    table = analysis.table([done])
    retained = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    drawn = analysis.figures(table)
    assert drawn and [figure.svg for figure in analysis.figures(retained)] == [figure.svg for figure in drawn]
    for figure in drawn:
        assert figure.title and ElementTree.fromstring(figure.svg).tag == "svg"
    assert analysis.words(retained) == analysis.words(table) != ""
    assert {"mean", "ci_low", "ci_high", "n", "explainer", "role", "dataset", "level", "k"} <= set(
        table.columns
    )
    between = table["ci_low"].isna() | (
        (table["ci_low"] <= table["mean"] + 1e-12) & (table["mean"] <= table["ci_high"] + 1e-12)
    )
    assert between.mean() > 0.99  # a percentile interval may just miss a mean of few


def test_the_scopes_of_profiles_are_no_question(done: Run) -> None:
    assert "scopes" in made("scopes").incompatibility([done])


def test_a_run_of_another_suite_is_no_question(done: Run, tmp_path: Path) -> None:
    import json
    import shutil

    other = shutil.copytree(done.directory, tmp_path / "other")
    plan = json.loads((other / "plan.json").read_text())
    (other / "plan.json").write_text(json.dumps({**plan, "suite": "tabular"}))
    write_checksums(other)
    assert all(made(name).incompatibility([Run(other)]) for name in OURS)
