"""Counterfactuals made elsewhere: changes, or whole rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external_rows import read_table, with_labels
from cfbench_tabular.external_rows import long_rows

FEATURES = {
    "age": np.array([30.0, 40.0, 50.0]),
    "job": np.array(["clerk", "2", "cook"], dtype=object),
}


def read(path, text, **labels):
    path.write_text(text)
    found = long_rows(with_labels(read_table(path), labels), FEATURES, path)
    return [
        tuple(row)
        for row in found[["unit", "counterfactual", "column", "value"]].itertuples(index=False, name=None)
    ]


def test_a_long_table_by_hand(tmp_path):
    text = "unit,column,value\n1,age,41\n1,job,cook\n"
    assert read(tmp_path / "t.csv", text) == [("1", 1, "age", "41"), ("1", 1, "job", "cook")]


def test_a_wide_table_is_reduced_to_its_changes(tmp_path):
    text = "row,age,job,remark\n0,30,cook,x\n1,41.5,2,y\n2,,clerk,z\n"
    assert sorted(read(tmp_path / "t.csv", text)) == [
        ("0", 1, "job", "cook"),
        ("1", 1, "age", "41.5"),
        ("2", 1, "job", "clerk"),
    ]


def test_several_whole_rows_for_a_unit_are_numbered(tmp_path):
    text = "unit,counterfactual,age,job\n0,1,31,clerk\n0,2,32,clerk\n"
    assert read(tmp_path / "t.csv", text) == [("0", 1, "age", "31"), ("0", 2, "age", "32")]


def test_a_wide_table_of_typed_columns(tmp_path):
    frame = pd.DataFrame({"unit": [1.0, 2.0], "age": [40, 51], "job": pd.array([2, 2], dtype="int64")})
    frame.to_parquet(tmp_path / "t.parquet")
    found = long_rows(frame, FEATURES, tmp_path / "t.parquet")
    assert sorted(zip(found["unit"], found["column"], found["value"], strict=True)) == [
        ("2", "age", "51"),
        ("2", "job", "2"),
    ]


def test_dates_and_times_of_a_typed_table_are_those_of_the_data_set(tmp_path):
    features = {
        "born": np.array(["1990-01-31", "1991-02-28", "1992-03-31"], dtype=object),
        "seen": np.array(["2024-01-01T00:00:00", "2024-01-01T12:30:00", "2024-01-02T08:00:00"], dtype=object),
    }
    frame = pd.DataFrame({"unit": [0, 1, 2], **{name: pd.to_datetime(features[name]) for name in features}})
    frame.loc[1, "born"] = pd.Timestamp("1991-03-01")
    frame.loc[2, ["born", "seen"]] = [pd.NaT, pd.Timestamp("2024-01-02 08:00:01")]
    frame.to_parquet(tmp_path / "t.parquet")
    found = long_rows(pd.read_parquet(tmp_path / "t.parquet"), features, tmp_path / "t.parquet")
    assert sorted(found[["unit", "column", "value"]].to_numpy().tolist()) == [
        ["1", "born", "1991-03-01"],
        ["2", "seen", "2024-01-02T08:00:01"],
    ]


def test_a_level_that_pandas_took_for_a_number_is_known_again(tmp_path):
    frame = pd.DataFrame({"unit": [0, 1, 2], "age": [30.0, 40.0, 50.0], "job": [2.0, None, 7.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    found = long_rows(frame, FEATURES, tmp_path / "t.parquet")
    assert found[["unit", "column", "value"]].to_numpy().tolist() == [["0", "job", "2"], ["2", "job", "7.0"]]


def test_rows_of_other_cells_are_not_looked_at(tmp_path):
    text = "unit,model,age,job\n0,a,31,clerk\n99,b,32,clerk\n"
    assert read(tmp_path / "t.csv", text, model="a", dataset="people") == [("0", 1, "age", "31")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit,age\n0,31\n", "has complete rows, but no column 'job'"),
        ("unit,age,Job\n0,31,cook\n", "has complete rows, but no column 'job'. Did you mean 'Job'"),
        (
            "unit,age,job\n0,31,clerk\n0,32,clerk\n",
            "two rows for unit '0': number them in a column 'counterfactual'",
        ),
        ("unit,counterfactual,column,value\n0,0,age,3\n", "counterfactual must be 1, 2, 3, ..., got '0'"),
        (
            "unit,counterfactual,column,value\n0,best,age,3\n",
            "counterfactual must be 1, 2, 3, ..., got 'best'",
        ),
        ("unit,column,value\n3,age,3\n", r"unit '3' is not a row of the data set \(0 to 2\)"),
        ("unit,column,value\n1.5,age,3\n", r"unit '1.5' is not a row of the data set"),
        ("name,age,job\n0,31,clerk\n", "has no column unit, column, value"),
        ("unit,Age\n0,31\n", "It must be unit, column, value, or unit and a column for each feature"),
    ],
)
def test_errors_are_reported_in_one_line(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path / "t.csv", text)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return {
        "suite": "tabular",
        "data": ["iris"],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy"],
        "protocol": {"factuals": 5},
        "metrics": ["validity", "l2"],
        "executor": "inline",
        "chunk": 3,
    }


def test_complete_rows_are_scored_like_their_changes(tmp_path, config):
    from cfbench_tabular.datasets.iris import Config, Iris

    made = cfbench_core.run(config, out=tmp_path / "run")
    iris = Iris(Config()).load()
    rows = {}
    for change in made.explanations.itertuples():
        row = rows.setdefault(change.unit, {name: values[change.row] for name, values in iris.values.items()})
        row[change.column] = float(change.value)
    wide = pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit").reset_index()
    for name, write in (("w.csv", wide.to_csv), ("w.parquet", wide.to_parquet)):
        write(tmp_path / name, index=False)
        again = cfbench_core.run(config, out=tmp_path / f"run-{name}", explanations=tmp_path / name)
        assert again.exit_code == 0
        assert np.array_equal(again.scores["value"], made.scores["value"])


def test_rows_that_are_not_explained_are_excluded_and_reported(tmp_path, config):
    made = cfbench_core.run(config, out=tmp_path / "run")
    explained = set(made.scores["unit"])
    others = [str(row) for row in range(150) if str(row) not in explained][:5]
    file = tmp_path / "theirs.csv"
    lines = [f"{unit},petal width (cm),1.0" for unit in [*others, *sorted(explained)]]
    file.write_text("unit,column,value\n" + "\n".join(lines) + "\n")
    run = cfbench_core.run(config, out=tmp_path / "again", explanations=file)
    assert run.exit_code == 0 and set(run.scores["unit"]) == explained
    excluded = "5 of the 15 units in theirs.csv are not explained here and are excluded"
    assert excluded in str(run.cells()[0])
    file.write_text("unit,column,value\n" + "\n".join(lines[:5]) + "\n")
    run = cfbench_core.run(config, out=tmp_path / "none", explanations=file)
    assert run.exit_code == 1
    assert "none of its 5 units is explained here" in run.cells()[0].reason


def test_external_explanations_get_the_features_of_their_factuals(tmp_path, config):
    made = cfbench_core.run(config, out=tmp_path / "run")
    external = tmp_path / "run" / "explanations.parquet"
    run = cfbench_core.run(config, out=tmp_path / "again", explanations=external)
    names = {"factual score", "misclassified", "factual share", "enemy distance"}
    assert set(run.details["name"]) == names
    own = made.details[made.details["name"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, run.details, check_exact=True)


def test_an_edited_schema_of_the_package_changes_the_key_of_its_dataset(config, monkeypatch):
    def keys():
        cells = api.plan({**config, "data": ["hayes-roth", "iris"]}).cells
        return {cell.labels["dataset"]: cell.stages["data"].key for cell in cells}

    before = keys()
    read_text = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda path, *args: read_text(path, *args) + "#" * (path.suffix == ".yaml")
    )
    after = keys()
    assert before["iris"] == after["iris"] and before["hayes-roth"] != after["hayes-roth"]


def test_cells_that_a_table_has_nothing_for_are_left_out_with_the_reason(tmp_path, config):
    made = cfbench_core.run(config, out=tmp_path / "run")
    config = {**config, "data": ["iris", "wine"], "classifiers": ["logistic-regression", "mlp"]}
    made.explanations.to_csv(tmp_path / "iris.csv", index=False)
    reasons = {cell.id: cell.skipped for cell in api.plan(config, explanations=tmp_path / "iris.csv").cells}
    assert reasons == {
        "iris/logistic-regression/nearest-enemy": "",
        "iris/mlp/nearest-enemy": "iris.csv has no rows for dataset iris, model mlp, explainer nearest-enemy",
        "wine/logistic-regression/nearest-enemy": (
            "iris.csv has no rows for dataset wine, model logistic-regression, explainer nearest-enemy"
        ),
        "wine/mlp/nearest-enemy": "iris.csv has no rows for dataset wine, model mlp, explainer nearest-enemy",
    }
    (tmp_path / "byhand.csv").write_text("dataset,unit,column,value\niris,0,petal width (cm),1.0\n")
    plan = api.plan(config, explanations=tmp_path / "byhand.csv")
    assert [cell.id for cell in plan.to_run] == ["iris/logistic-regression/byhand", "iris/mlp/byhand"]
