"""The suite from a configuration to its tables, through the core, as a user runs it."""

from __future__ import annotations

import json
import textwrap

import pandas as pd
import pytest
import yaml

import cfbench_core
from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_tabular.suite import TabularSuite
from cfbench_tabular.testing import example_data

SMALL = {
    "suite": "tabular",
    "data": ["iris", "wine"],
    "classifiers": ["logistic-regression"],
    "explainers": [
        "nearest-enemy",
        {"name": "growing-spheres", "samples": 200},
        {"name": "sedc", "replacements": "typical"},  # finds no counterfactual of some rows
    ],
    "protocol": {"factuals": 12},
    "executor": "inline",
    "chunk": 5,
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A run of ``SMALL``, for tests that only look at it."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        return cfbench_core.run(SMALL, out=folder / "run")


@pytest.fixture
def own_code(tmp_path, monkeypatch):
    """A module of the user's own, ``mine``, in the working directory."""

    def write(text: str) -> None:
        (tmp_path / "mine.py").write_text(textwrap.dedent(text))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)

    return write


def table(run, metric):
    summary = run.summary[run.summary["metric"] == metric]
    return summary.set_index(["dataset", "explainer"])["mean"]


def test_a_run_has_the_tables_of_the_contract(small_run):
    run = small_run
    assert run.exit_code == 0
    assert [cell.status for cell in run.cells()] == ["ok"] * 6
    assert list(run.scores.columns[:4]) == ["cell", "suite", "dataset", "model"]
    assert {"explainer", "metric", "unit", "value", "status", "row"} <= set(run.scores.columns)
    assert set(run.scores["metric"]) >= {
        "validity",
        "sparsity",
        "L2",
        "MADD",
        "MD",
        "RUC",
        "RMC",
        "realistic",
    }
    assert (run.scores.groupby("cell")["unit"].nunique() == 24).all()
    assert (run.costs["elapsed_seconds"] >= 0).all() and len(run.costs) == 6 * 24
    parts = ("", " of validation rows", " of training rows")
    assert set(run.quality["metric"]) == {f"{name}{part}" for name in ("AUC", "accuracy") for part in parts}
    assert (run.quality["value"] > 0.8).all()
    assert (table(run, "validity").xs("nearest-enemy", level="explainer") == 1.0).all()
    assert (table(run, "realistic").xs("nearest-enemy", level="explainer") == 1.0).all()
    assert (run.directory / "report.html").is_file()


def test_missing_values_are_those_of_counterfactuals_that_are_not_valid(small_run):
    run = small_run
    wide = run.scores.pivot(index=["cell", "unit"], columns="metric", values="value")
    invalid = wide["validity"] == 0
    assert invalid.any()
    assert (wide[["sparsity", "L2", "RUC", "RMC"]].isna().all(axis=1) == invalid).all()
    assert wide[["validity", "realistic"]].notna().all(axis=None)


def test_explanations_contain_raw_values(small_run):
    run = small_run
    from cfbench_tabular.datasets.iris import Config, Iris

    iris = Iris(Config()).load()
    nearest = run.explanations.query("explainer == 'nearest-enemy' and dataset == 'iris'")
    for row in nearest.itertuples():
        assert float(row.original) == iris.values[row.column][row.row]
        assert float(row.value) in iris.values[row.column]
        assert row.unit == str(row.row)
    assert set(nearest["wanted_class"]) == {"virginica", "not virginica"}


def test_explain_shows_each_explainers_own_sentence_on_one_unit(small_run, capsys):
    assert main(["explain", str(small_run.directory), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len({one["explainer"] for one in found}) > 1
    for one in found:
        (unit,) = one["units"]
        assert f"row {unit} of {one['dataset']} counts as" in one["sentence"]
        assert one["sentence"].endswith(f"({one['explainer']}).")


def test_a_run_ends_with_a_verbalized_explanation(small_run):
    run = small_run
    words = TabularSuite().verbalize(run)
    assert " counts as " in words and " instead of " in words and "it would count as" in words


@pytest.mark.slow
def test_the_process_executor_and_another_chunk_give_the_same_scores(tmp_path):
    config = {**SMALL, "data": ["iris"]}
    inline = cfbench_core.run(config, out=tmp_path / "inline").scores
    process = {**config, "executor": "process", "workers": 2}
    parallel = cfbench_core.run(process, out=tmp_path / "process", fresh=True).scores
    pd.testing.assert_frame_equal(inline, parallel, check_exact=True)
    otherwise = cfbench_core.run({**config, "chunk": 7}, out=tmp_path / "chunk", fresh=True).scores
    order = ["cell", "metric", "unit"]
    inline, otherwise = (frame.sort_values(order, ignore_index=True) for frame in (inline, otherwise))
    pd.testing.assert_frame_equal(inline, otherwise, rtol=0, atol=1e-9)


def test_external_explanations_get_the_same_scores(tmp_path, small_run):
    made = small_run
    file = made.directory / "explanations.parquet"
    again = cfbench_core.run(SMALL, out=tmp_path / "again", explanations=file)
    pd.testing.assert_frame_equal(made.scores, again.scores, check_exact=True)
    assert again.costs["elapsed_seconds"].isna().all()
    text = tmp_path / "explanations.csv"
    made.explanations.to_csv(text, index=False)
    from_text = cfbench_core.run(SMALL, out=tmp_path / "csv", explanations=text)
    pd.testing.assert_frame_equal(made.scores, from_text.scores, check_exact=True)


def test_a_table_with_rows_columns_and_values_is_enough(tmp_path):
    config = {**SMALL, "data": ["iris"], "protocol": {"factuals": 100}}
    file = tmp_path / "byhand.csv"
    file.write_text(
        "row,column,value\n149,petal length (cm),1.0\n149,petal width (cm),0.1\n149,sepal width (cm),2.0\n"
    )
    run = cfbench_core.run(config, out=tmp_path / "run", explanations=file)
    assert [cell.labels["explainer"] for cell in run.cells()] == ["byhand"]
    scores = run.scores.set_index(["unit", "metric"])["value"]
    assert scores["149", "validity"] == 1.0
    assert scores["149", "sparsity"] == 0.25
    assert scores.xs("validity", level="metric").sum() == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "row,column,value\n150,petal length (cm),1.0\n",
            "unit '150' is not a row of the data set (0 to 149)",
        ),
        ("row,column,value\n149,petal lenght (cm),1.0\n", "Did you mean 'petal length (cm)'?"),
        ("row,column\n149,petal length (cm)\n", "has no column value"),
    ],
)
def test_a_wrong_table_is_reported(tmp_path, text, message):
    file = tmp_path / "wrong.csv"
    file.write_text(text)
    config = {**SMALL, "data": ["iris"], "protocol": {"factuals": 100}}
    run = cfbench_core.run(config, out=tmp_path / "run", explanations=file)
    assert run.exit_code == 1
    assert message in run.cells()[0].reason


def test_a_file_that_is_not_parquet_is_reported_before_anything_runs(tmp_path):
    file = tmp_path / "cut.parquet"
    file.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(UserError, match="not a Parquet file"):
        api.plan(SMALL, explanations=file)


def test_an_explainer_that_needs_what_a_classifier_lacks_is_skipped_with_the_reason(own_code):
    own_code(
        """
        class Plain:
            def fit(self, data, generator, report): ...
            def predict_proba(self, vectors): ...
            def state(self): ...
            def load_state(self, state, data): ...

        class ByGradient:
            needs = {"classifier": {"access": frozenset({"gradients"})}}
            def counterfactuals(self, model, factuals, context): ...

        class CategoriesOnly:
            provides = {"columns": frozenset({"categorical"})}
            def counterfactuals(self, model, factuals, context): ...
        """
    )
    config = {
        **SMALL,
        "data": ["iris"],
        "classifiers": ["mlp", {"import": "mine:Plain"}],
        "explainers": [{"import": "mine:ByGradient"}, {"import": "mine:CategoriesOnly"}],
    }
    assert [(cell.id, cell.skipped) for cell in api.plan(config).cells] == [
        ("iris/mlp/by-gradient", ""),
        ("iris/mlp/categories-only", "iris needs columns numeric, which it does not offer"),
        ("iris/plain/by-gradient", "needs access gradients, which plain does not offer"),
        ("iris/plain/categories-only", "iris needs columns numeric, which it does not offer"),
    ]


def test_user_classifiers_and_explainers_run(tmp_path, own_code):
    own_code(
        """
        import numpy as np

        class Threshold:
            '''Class 1 where the third column is above its training mean.'''
            def __init__(self, config): self.cut = 0.0
            def fit(self, data, generator, report): self.cut = data.sample("train")[0][:, 2].mean()
            def predict_proba(self, vectors):
                one = (vectors[:, 2] > self.cut).astype(float)
                return np.stack([1 - one, one], axis=1)
            def state(self): return {"cut": np.array([self.cut])}
            def load_state(self, state, data): self.cut = float(state["cut"][0])

        class Mirror:
            '''The third column mirrored at zero.'''
            def __init__(self, config): ...
            def counterfactuals(self, model, factuals, context):
                counterfactuals = factuals.vectors.copy()
                counterfactuals[:, 2] *= -1
                return counterfactuals
        """
    )
    config = {**SMALL, "data": ["iris"], "classifiers": [{"import": "mine:Threshold"}]}
    run = cfbench_core.run({**config, "explainers": [{"import": "mine:Mirror"}]}, out=tmp_path / "run")
    means = run.summary.set_index("metric")["mean"]
    assert (means["validity"], means["sparsity"]) == (1.0, 0.75)


def test_one_bad_component_costs_its_own_cells_only(tmp_path, own_code):
    own_code(
        """
        import numpy as np

        class Lost:
            def __init__(self, config): ...
            def fit(self, data, generator, report): ...
            def predict_proba(self, vectors): return np.full((len(vectors), 2), np.nan)
            def state(self): return {"nothing": np.zeros(1)}
            def load_state(self, state, data): ...

        class WrongShape:
            def __init__(self, config): ...
            def counterfactuals(self, model, factuals, context): return factuals.vectors[:, :2]

        class HalfAnswer:
            def __init__(self, config): ...
            def counterfactuals(self, model, factuals, context):
                counterfactuals = factuals.vectors.copy()
                counterfactuals[0, 0] = np.nan
                return counterfactuals
        """
    )
    config = {
        **SMALL,
        "data": ["iris"],
        "classifiers": ["logistic-regression", {"import": "mine:Lost"}],
        "explainers": ["nearest-enemy", {"import": "mine:WrongShape"}, {"import": "mine:HalfAnswer"}],
    }
    run = cfbench_core.run(config, out=tmp_path / "run")
    reasons = {cell.id: cell.reason for cell in run.cells() if cell.status != "ok"}
    assert run.exit_code == 1
    assert [cell.id for cell in run.cells("ok")] == ["iris/logistic-regression/nearest-enemy"]
    assert "predict_proba returned NaN" in reasons["iris/lost/nearest-enemy"]
    assert (
        "counterfactuals has shape (5, 2), must be (5, 4)" in reasons["iris/logistic-regression/wrong-shape"]
    )
    assert "must be finite, or NaN in every column" in reasons["iris/logistic-regression/half-answer"]


def test_the_target_class_can_be_named(tmp_path):
    config = {**SMALL, "data": [{"name": "wine", "target": "class_2"}], "explainers": ["nearest-enemy"]}
    run = cfbench_core.run(config, out=tmp_path / "run")
    assert set(run.explanations["wanted_class"]) == {"class_2", "not class_2"}


def test_a_target_that_is_not_there_fails_its_cells_with_the_reason(tmp_path):
    config = {**SMALL, "data": ["iris", {"name": "wine", "target": "red"}], "explainers": ["nearest-enemy"]}
    run = cfbench_core.run(config, out=tmp_path / "run")
    assert [cell.status for cell in run.cells()] == ["ok", "failed"]
    assert "no row has the class 'red'; there are class_0, class_1, class_2" in run.cells()[1].reason


def test_test_rows_are_explained_before_others(tmp_path):
    config = {**SMALL, "data": ["wine"], "explainers": ["nearest-enemy"]}
    for factuals, parts in ((10, {"test"}), (40, {"test", "validation", "train"})):
        cfbench_core.run(
            {**config, "protocol": {"factuals": factuals}}, out=tmp_path / str(factuals), fresh=True
        )
        files = (tmp_path / "cache").rglob("units.parquet")
        units = next(table for table in map(pd.read_parquet, files) if len(table) == 2 * factuals)
        assert set(units["part"]) == parts
        assert units["factual_class"].tolist() == [0] * factuals + [1] * factuals
        for _, own in units.groupby("factual_class"):
            turns = own["part"].map({"test": 0, "validation": 1, "train": 2})
            assert turns.is_monotonic_increasing


def test_shares_that_leave_nothing_to_train_on_are_refused():
    with pytest.raises(UserError, match="must leave rows to train on"):
        api.plan({**SMALL, "protocol": {"validation": 0.5, "test": 0.5}})


def test_the_example_and_the_default_configuration_can_be_planned():
    registry, suite = installed(), TabularSuite()
    for document in (yaml.safe_load(suite.example_document(registry)), suite.default_document(registry)):
        plan = api.plan(document)
        assert len(plan.to_run) >= 3 * 3
        assert all("needs " in cell.skipped for cell in plan.skipped)


def test_slow_explainers_are_not_in_the_default():
    queries = TabularSuite().default_document(installed())["explainers"]
    assert "sedc" in queries
    assert "mace" not in queries


def test_the_data_are_described_in_one_line():
    prepared = cfbench_core.prepare(SMALL)
    summary = example_data().summary()
    words = prepared.suite.describe_data(prepared.config, {"iris": summary})
    assert words == f"iris ({summary['rows']} rows, {summary['columns']} columns)"
