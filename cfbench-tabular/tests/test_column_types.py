"""Types of columns from the schema of a file to the sentence: whole numbers, amounts, ordered levels, dates."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from cfbench_core import api
from cfbench_core.config import decode_options
from cfbench_core.config.document import Document
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.feature_changes import apply, feature_changes
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.verbalization import best_explanation

COLUMNS = {
    "age": "integer",
    "income": {"type": "numeric", "step": 0.01, "unit": "EUR", "range": [0, 1e6]},
    "grade": {"type": "ordinal", "levels": ["poor", "fair", "good", "excellent"]},
    "since": "date",
    "rate": "numeric",
}
LOANS = """\
age,income,grade,since,rate,loan
34,18629.25,fair,2019-03-01,0.123456,no
52,41000.00,good,2011-11-30,1.5,yes
28,9000.50,poor,2022-07-15,0.75,no
61,23500.75,excellent,1999-01-02,0.1,yes
"""


def _repeated(table, times):
    values = {name: np.tile(cells, times) for name, cells in table.values.items()}
    return dataclasses.replace(table, values=values, target=np.tile(table.target, times))


@pytest.fixture
def read(tmp_path):
    """``read(text, **options)``: the table, as a configuration reads it."""

    def table(text=LOANS, **options):
        path = tmp_path / "loans.csv"
        path.write_text(text)
        component = installed().find("tabular", "dataset", "csv")
        options = {"file": str(path), "columns": COLUMNS, **options}
        document = Document(yaml.safe_dump(options, sort_keys=False), "study.yaml", tmp_path)
        dataset = decode_options(component, document, installed()).create()
        return dataset.load(dataset.find(DataAccess(offline=True)).parameters())

    return table


def test_types_of_the_schema(read):
    table = read(direction={"grade": "up", "since": "down"})
    age, income, grade, since, rate = table.columns
    assert (age.step, age.unit) == (1.0, "")
    assert (income.step, income.unit, income.low, income.high) == (0.01, "EUR", 0.0, 1e6)
    assert grade.ordered and grade.levels == ("poor", "fair", "good", "excellent")
    assert (since.format, since.step) == ("date", 1.0)
    assert rate.step is None
    days = (pd.to_datetime(["2019-03-01"]) - pd.Timestamp(0)).days[0]
    assert table.values["since"][0] == days
    assert (grade.direction, since.direction) == ("up", "down")


@pytest.mark.parametrize(
    ("columns", "cells", "step"),
    [
        ({}, ["3", "4", "50"], 1.0),
        ({}, ["3.5", "4", "50.25"], 0.01),
        ({}, ["3.123456", "4", "50.25"], None),
        ({"x": {"type": "numeric", "step": "any"}}, ["3", "4", "50"], None),
        ({"x": {"type": "numeric", "step": 5}}, ["5", "10", "-15"], 5.0),
    ],
)
def test_a_number_gets_the_step_that_all_values_share(read, columns, cells, step):
    table = read(
        "x,y\n" + "".join(f"{cell},{place % 2}\n" for place, cell in enumerate(cells)), columns=columns
    )
    assert table.columns[0].step == step


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "28,9000.50",
            "28.5,9000.50",
            r"loans.csv:4: column 'age': '28.5' is not a whole number: correct it",
        ),
        (
            "9000.50",
            "9000.505",
            r"loans.csv:4: column 'income': '9000.505' is not a multiple of its step 0.01",
        ),
        (
            "2022-07-15",
            "15.7.2022",
            r"loans.csv:4: column 'since': '15.7.2022' is not a date such as 2026-11-23",
        ),
        (
            "28,9000.50,poor",
            "28,9000.50,por",
            r"loans.csv:4: column 'grade': no level 'por'. Did you mean 'poor'",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_column_and_line(read, old, new, message):
    with pytest.raises(UserError, match=message):
        read(LOANS.replace(old, new))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"type": "integer", "step": 0.5},
            "step of a column of type integer must be a whole number, got 0.5",
        ),
        ({"type": "numeric", "step": -1}, "step must be a positive number or any, got -1"),
        ({"type": "numeric", "range": [5, 1]}, "range must ascend, got 5 to 1"),
        ({"type": "numeric", "range": 5}, r"range must be two values, \[lowest, highest\], got 5"),
        ({"type": "date", "range": ["soon", None]}, "range: 'soon' is not a date"),
        ({"type": "ordinal"}, "an ordinal column needs its levels, in ascending order"),
        ({"levels": ["a", "b"], "step": 1}, "has levels, so it cannot have a step"),
        ({"type": "categorical", "range": [0, 1]}, "has a range, so its type must be numeric"),
        ({"type": "intger"}, "Did you mean 'integer'"),
        ({"unite": "EUR"}, "unknown key 'unite'. Did you mean 'unit'"),
    ],
)
def test_a_wrong_entry_is_reported(read, entry, message):
    with pytest.raises(UserError, match=message):
        read(columns={"age": entry})


def test_levels_without_an_order_have_no_direction(read):
    with pytest.raises(UserError, match="columns of type ordinal can"):
        read(columns={"grade": ["poor", "fair", "good", "excellent"]}, direction={"grade": "up"})


GAPS = "n,level,town,y\n1,low,Ulm,a\n4,NA,Ulm,b\n?,high,Bonn,a\n9,middle,,b\n2,low,Ulm,\n5,high,Ulm,a\n"


def test_missing_values_are_filled_in_and_counted(read):
    levels = {"type": "ordinal", "levels": ["low", "middle", "high"]}
    table = read(GAPS, columns={"n": "integer", "level": levels}, missing="median")
    assert table.values["n"].tolist() == [1, 4, 4, 9, 5]  # the row without a class is dropped
    assert table.values["level"].tolist() == ["low", "middle", "high", "middle", "high"]
    assert table.values["town"].tolist() == ["Ulm", "Ulm", "Bonn", "Ulm", "Ulm"]
    filled = {name: (one.method, one.rows.tolist()) for name, one in table.imputed.items()}
    assert filled == {"n": ("median", [2]), "level": ("median", [1]), "town": ("mode", [3])}
    most = read(GAPS, columns={"n": "integer", "level": levels}, missing="mode")
    assert most.values["level"][1] == "low" and most.values["n"][2] == 1
    with pytest.raises(UserError, match="column 'n': is always missing, so nothing can be filled in"):
        read("n,m,y\n?,1,a\n?,2,b\n", columns={}, missing="median")


def with_gaps(classes):
    """Rows whose rent is 10 for each square metre, and whose town follows from the rent; each tenth cell is missing."""
    draw = np.random.default_rng(0)
    size = draw.integers(20, 120, 400)
    rent, town = size * 10, np.where(size > 70, "Bonn", "Ulm")
    lines = [
        f"{size[row]},{'?' if row % 10 == 3 else rent[row]},{'NA' if row % 10 == 7 else town[row]},{classes[row % 2]}"
        for row in range(400)
    ]
    return "size,rent,town,y\n" + "\n".join(lines) + "\n", rent, town


def test_a_model_fills_in_what_the_other_columns_imply(read):
    text, rent, town = with_gaps("ab")
    table = read(text, columns={"size": "integer", "rent": {"type": "numeric", "step": 10}}, missing="model")
    filled = {name: (one.method, one.rows.tolist()) for name, one in table.imputed.items()}
    assert filled == {"rent": ("model", list(range(3, 400, 10))), "town": ("model", list(range(7, 400, 10)))}
    assert np.abs(table.values["rent"] - rent).max() <= 50 and (table.values["rent"] % 10 == 0).all()
    assert (table.values["town"] == town).mean() > 0.99
    typical = read(text, columns={"size": "integer"}, missing="median").values["rent"]
    assert np.abs(typical - rent).max() > 400
    # The class is no input, and whatever is known stays.
    swapped = read(with_gaps("ba")[0], columns={"size": "integer"}, missing="model")
    assert (swapped.values["rent"] == table.values["rent"]).all()
    assert (swapped.values["town"] == table.values["town"]).all()
    known = np.arange(400) % 10 != 3
    assert (table.values["rent"] == rent)[known].all()


def test_a_model_without_other_columns_fills_in_the_median(read):
    table = read("n,y\n1,a\n?,b\n3,a\n9,b\n", columns={"n": "integer"}, missing="model")
    assert table.values["n"].tolist() == [1, 3, 3, 9]
    with pytest.raises(UserError, match="column 'm': is always missing, so nothing can be filled in"):
        read("n,m,y\n?,?,a\n2,?,b\n3,?,a\n5,?,b\n", columns={}, missing="model")


def test_the_draft_states_types_with_reasons_and_reads_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{20 + n % 40},{n * 1.25 + 10},{('low', 'medium', 'high')[n % 3]},20{10 + n % 9}-0{1 + n % 8}-1{n % 9},"
        f"{n / 7},{'yes' if n % 40 > 20 else 'no'}"
        for n in range(80)
    ]
    Path("loans.csv").write_text("age,income,risk,since,rate,loan\n" + "\n".join(rows) + "\n")
    text = csv_document(Path("loans.csv"), None, ["nearest-enemy", "cadex"])
    assert yaml.safe_load(text)["data"][0]["columns"] == {
        "age": "integer",
        "income": {"type": "numeric", "step": 0.01},
        "risk": {"type": "ordinal", "levels": ["low", "medium", "high"]},
        "since": "date",
        "rate": "numeric",
    }
    for reason in ("whole numbers", "up to 2 decimals", "a common scale", "2010-", "any number of decimals"):
        assert reason in text
    text = text.replace("{type: numeric, step: 0.01}", "{type: numeric, step: 0.01, unit: EUR}")
    text = text.replace("[mlp, logistic-regression]", "[logistic-regression]").replace(
        "factuals: 100", "factuals: 5"
    )
    Path("study.yaml").write_text(f"{text}\nexecutor: inline\n")
    run = api.run("study.yaml", out=tmp_path / "run")
    scores = run.scores.pivot_table(index=["cell", "unit"], columns="metric", values="value")
    assert (scores["feasible"] == scores["validity"]).all() and scores["feasible"].mean() == 1
    table = run.explanations
    ages = table[table["column"] == "age"]["value"]
    assert ages.str.fullmatch(r"\d+").all()
    dates = table[table["column"] == "since"]["value"]
    assert pd.to_datetime(dates, format="%Y-%m-%d").notna().all()
    incomes = table[table["column"] == "income"]["value"]
    assert incomes.str.fullmatch(r"\d+\.\d\d").all() and len(incomes)
    sentence = best_explanation(run)
    assert "row " in sentence and ".0 " not in sentence


def test_sentences_show_units_and_every_decimal_of_the_column(read):
    table = read()
    changes = {
        "income": ("9000.50", "18629.25"),
        "age": ("34", "35"),
        "since": ("2019-03-02", "2019-03-01"),
        "rate": ("0.123456789", "1234567.5"),
    }
    common = {"cell": "c", "unit": "0", "row": 0, "dataset": "loans", "model": "m", "explainer": "e"}
    common |= {"factual_class": "no", "wanted_class": "yes", "level": None}
    rows = [{**common, "column": name, "original": old, "value": new} for name, (old, new) in changes.items()]
    data = PreparedDataset.make(_repeated(table, 5), 0.2, 0.2, np.random.default_rng(0))
    run = SimpleNamespace(
        explanations=pd.DataFrame(rows),
        scores=pd.DataFrame([{"cell": "c", "unit": "0", "metric": "feasible", "value": 1.0}]),
        cells=lambda: [SimpleNamespace(id="c", role="")],
        summaries=lambda kind: {"loans": data.summary()},
    )
    assert best_explanation(run) == (
        "row 0 of loans counts as no for m; with income 18,629.25 EUR instead of 9000.50 EUR, age 35 instead of 34, "
        "since 2019-03-01 instead of 2019-03-02 and rate 1,235,000 instead of 0.1235 it would count as yes (e)."
    )


def test_changes_of_ordered_levels_and_dates_are_restored_exactly(read):
    data = PreparedDataset.make(_repeated(read(), 4), 0.2, 0.2, np.random.default_rng(0))
    encoding, vectors = data.encoding, data.vectors
    changes = feature_changes(encoding, vectors[0], vectors[3])
    assert [(c.column, c.original, c.value) for c in changes] == [
        ("age", "34", "61"),
        ("income", "18629.25", "23500.75"),
        ("grade", "fair", "excellent"),
        ("since", "2019-03-01", "1999-01-02"),
        ("rate", "0.123456", "0.1"),
    ]
    restored = apply(encoding, vectors[0], [(c.column, c.level, c.value) for c in changes])
    assert (restored == vectors[3]).all()
    between = vectors[0] + np.where(encoding.column_of == 2, 0.1, 0.0)  # between two levels
    (change,) = feature_changes(encoding, vectors[0], between)
    assert change.value.startswith("rank 1.")
    restored = apply(encoding, vectors[0], [(change.column, None, change.value)])
    assert restored == pytest.approx(between)
