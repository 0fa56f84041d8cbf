"""Values that were missing in a file and filled in: marked in the tables of a run, in sentences and in the viewer."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cfbench_core
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_core.view.queries import RunView
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.reading import plain, table_of
from cfbench_tabular.schema import Schema
from cfbench_tabular.sheet import Sheet

COLUMNS = {
    "income": {"type": "numeric", "step": 100, "unit": "EUR"},
    "age": "integer",
    "town": ["Bonn", "Kiel"],
}


def people() -> str:
    """200 people, accepted from an income of 3,000 on; some incomes and towns are missing."""
    draw = random.Random(3)
    lines = ["income,age,town,decision"]
    for _ in range(200):
        income = 100 * draw.randint(5, 60)
        decision = "accepted" if income >= 3000 else "rejected"
        shown = "NA" if draw.random() < 0.35 else str(income)
        town = "" if draw.random() < 0.3 else draw.choice(["Bonn", "Bonn", "Kiel"])
        lines.append(f"{shown},{draw.randint(18, 80)},{town},{decision}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The rows of the file as a CSV reader sees them, and a run that explains some of them."""
    folder = tmp_path_factory.mktemp("missing")
    (folder / "people.csv").write_text(people())
    data = {"name": "csv", "file": str(folder / "people.csv"), "missing": "median", "columns": COLUMNS}
    config = {
        "suite": "tabular",
        "data": [data],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy", "nice"],
        "protocol": {"factuals": 30},
        "metrics": ["validity", "l2"],
        "executor": "inline",
        "chunk": 7,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        run = cfbench_core.run(config, out=folder / "run")
    return list(csv.DictReader(io.StringIO(people()))), run


def is_missing(row, column):
    return row[column] in ("", "NA")


def test_tables_mark_the_values_that_the_file_lacks(made):
    rows, run = made
    explanations = run.explanations
    assert len(explanations) and set(explanations["imputed"]) == {True, False}
    for change in explanations.itertuples():
        assert change.imputed == is_missing(rows[change.row], change.column)
    seen = set()
    for score in run.scores.itertuples():
        lacking = {column for column in COLUMNS if is_missing(rows[score.row], column)}
        assert set(json.loads(score.imputed) if isinstance(score.imputed, str) else ()) == lacking
        seen.add(frozenset(lacking))
    assert len(seen) == 4  # none, the income, the town, both


def test_filled_in_values_are_the_typical_ones_of_the_file(made):
    rows, run = made
    incomes = sorted(int(row["income"]) for row in rows if not is_missing(row, "income"))
    towns = [row["town"] for row in rows if row["town"]]
    expected = {
        "income": str(incomes[(len(incomes) - 1) // 2]),
        "town": max(("Bonn", "Kiel"), key=towns.count),
    }
    found = {pair for text in run.scores["imputed"].dropna() for pair in json.loads(text).items()}
    assert found == set(expected.items())
    changed = run.explanations[run.explanations["imputed"]]
    assert all(expected[change.column] == change.original for change in changed.itertuples())


def test_the_run_remarks_on_explained_rows_with_filled_in_values(made):
    rows, run = made
    explained = [rows[row] for row in run.scores["row"].unique()]
    incomes, towns = (sum(is_missing(row, column) for row in explained) for column in ("income", "town"))
    either = sum(is_missing(row, "income") or is_missing(row, "town") for row in explained)
    assert f"filled-in missing values in {either} of the {len(explained)} explained rows" in str(
        run.cells()[0]
    )
    assert f"income {incomes}" in str(run.cells()[0]) and f"town {towns}" in str(run.cells()[0])


def with_both_gaps(rows, run):
    """The explained rows whose income a valid counterfactual changes, and one of them that lacks income and town."""
    changed = run.explanations.groupby("row")["column"].agg(set)
    valid = run.scores[run.scores["metric"] == "validity"].groupby("row")["value"].min()
    chosen = [row for row, columns in changed.items() if "income" in columns and valid[row] == 1]
    both = next(row for row in chosen if is_missing(rows[row], "income") and is_missing(rows[row], "town"))
    return chosen, both


def sentences(capsys, run, unit):
    assert main(["explain", str(run.directory), "--unit", str(unit)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_sentences_say_which_values_are_filled_in(made, capsys):
    rows, run = made
    chosen, both = with_both_gaps(rows, run)
    income = run.explanations[(run.explanations["row"] == both) & (run.explanations["column"] == "income")]
    words = sentences(capsys, run, both)
    before = f"{int(income.iloc[0]['original'])} EUR"
    assert (
        f"row {both} of people (income {before} filled in with the median; town Bonn filled in with " in words
    )
    assert "the most frequent value) counts as" in words
    assert f"income {income.iloc[0]['value']} EUR instead of a filled-in {before}" in words
    whole = next(row for row in chosen if not is_missing(rows[row], "income") and rows[row]["town"])
    words = sentences(capsys, run, whole)
    assert f"row {whole} of people counts as" in words and "filled" not in words


def test_the_page_of_a_row_marks_the_values(made, monkeypatch):
    rows, run = made
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(run.directory.parent / "cache"))
    _, both = with_both_gaps(rows, run)
    blocks = RunView(run).unit(0, str(both))["blocks"]
    facts = dict(next(block["items"] for block in blocks if block["type"] == "facts"))
    income = json.loads(run.scores[run.scores["row"] == both]["imputed"].iloc[0])["income"]
    assert facts["missing in the data, filled in"] == (
        f"income {income} with the median; town Bonn with the most frequent value"
    )
    grid = next(block for block in blocks if block.get("title") == "Counterfactuals")
    own = {row[0]["text"]: row[1] for row in grid["rows"]}
    assert (
        own["income [EUR]"]["text"] == f"{income} (filled in)" and own["town"]["text"] == "Bonn (filled in)"
    )
    assert "filled" not in str(own["age"])
    changed = [cell for row in grid["rows"] if row[0]["text"] == "income [EUR]" for cell in row[2:]]
    assert any(f"instead of a filled-in {income}" in cell["title"] for cell in changed if "title" in cell)


def test_the_mark_survives_external_evaluation(made, tmp_path):
    _, run = made
    own = run.explanations[run.explanations["explainer"] == "nice"]
    own.to_parquet(tmp_path / "theirs.parquet")
    again = cfbench_core.run(run.config, out=tmp_path / "again", explanations=tmp_path / "theirs.parquet")
    assert again.exit_code == 0
    keys = ["row", "column"]
    pairs = [
        table.sort_values(keys)[[*keys, "original", "value", "imputed"]].to_numpy().tolist()
        for table in (own, again.explanations[again.explanations["explainer"] == "nice"])
    ]
    assert pairs[0] == pairs[1]


CELLS = st.sampled_from(["1", "2", "2", "3", "7", "?", ""])
ROWS = st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["a", "b", "?"])), min_size=1, max_size=30)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.sampled_from(["median", "mode", "model"]))
def test_imputed_rows_are_those_whose_cells_are_missing(rows, method):
    sheet = Sheet(("x", "y", "class"), rows, [f"my.csv:{line}" for line in range(2, 2 + len(rows))])
    schema = Schema(class_column="class", missing=method, columns={"x": "integer", "y": "numeric"})
    used = [row for row, cells in enumerate(rows) if cells[2] != "?"]
    try:
        table = table_of(plain(sheet, schema), schema, "my")
    except UserError:
        always = any(all(row[place] in ("?", "") for row in rows) for place in (0, 1))
        assert not used or always
        return
    for place, name in enumerate(("x", "y")):
        lacking = [row for row in used if rows[row][place] in ("?", "")]
        found = table.imputed[name].rows.tolist() if name in table.imputed else []
        assert found == lacking


def test_a_prepared_dataset_keeps_its_marks(made, tmp_path):
    _, run = made
    folder = next((run.directory.parent / "cache").rglob("imputed.parquet")).parent
    data = PreparedDataset.load(folder)
    data.save(tmp_path)
    again = PreparedDataset.load(tmp_path).table.imputed
    marks = [
        {name: (one.method, one.rows.tolist()) for name, one in found.items()}
        for found in (data.table.imputed, again)
    ]
    assert marks[0] == marks[1] and set(marks[0]) == {"income", "town"}
