"""Rows that are dropped: the others keep their position in the file, from 0, in every table, sentence and page of a run.

The oracle is the file as a CSV reader of the standard library, or pandas, sees it.
"""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cfbench_core
from cfbench_core.cli import main
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.view.queries import RunView
from cfbench_tabular.datasets.csv import Config, Csv
from cfbench_tabular.file_rows import FileRows
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import Schema

HEADER = "income,age,town,decision"
COLUMNS = {"income": {"type": "numeric", "step": 100, "unit": "EUR"}, "age": "integer"}
INCOMPLETE = {
    "drop": ["NA,41,Bonn,rejected", "NA,,Kiel,accepted", "2200,33,,rejected", ",,,"],
    "median": ["1800,41,Bonn,", "NA,29,Kiel,NA", "2200,33,Bonn,", ",,,"],
}
"""Rows that are dropped, by the option ``missing``: with a median only those without a class, or without any cell."""
PLACES = {"beginning": [0], "middle": [57], "end": [120], "several": [0, 0, 0, 1, 30, 31, 57, 57, 119, 120]}
"""Before which of the 120 complete rows the incomplete ones are inserted."""

RUNS = [
    ("beginning", "drop"),
    ("middle", "median"),
    ("end", "drop"),
    ("several", "drop"),
    ("several", "median"),
]


def complete_rows() -> list[str]:
    """120 people with distinct incomes and ages, so that a row is known by each of its numbers."""
    draw = random.Random(5)
    incomes, ages = draw.sample(range(5, 125), 120), draw.sample(range(18, 138), 120)
    return [
        f"{100 * income},{age},{draw.choice(['Bonn', 'Kiel'])},"
        f"{'accepted' if 100 * income + 10 * age > 7000 else 'rejected'}"
        for income, age in zip(incomes, ages, strict=True)
    ]


def with_incomplete(places: list[int], incomplete: list[str]) -> list[str]:
    found: list[str] = []
    for place, row in enumerate([*complete_rows(), None]):
        found += [incomplete[(place + n) % len(incomplete)] for n in range(places.count(place))]
        found += [] if row is None else [row]
    return found


def config_of(file, missing, explainers=("nice", "nearest-enemy")):
    data = {"name": "csv", "file": str(file), "missing": missing, "columns": COLUMNS, "label": "people"}
    return {
        "suite": "tabular",
        "data": [data],
        "classifiers": ["logistic-regression"],
        "explainers": list(explainers),
        "protocol": {"factuals": 12},
        "metrics": ["validity", "l2", "madd"],
        "executor": "inline",
        "chunk": 7,
    }


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def made(request, tmp_path_factory):
    """The rows of the file as a CSV reader sees them, the option ``missing``, and a run that explains some of them."""
    where, how = request.param
    folder = tmp_path_factory.mktemp("dropped")
    text = "\n".join([HEADER, *with_incomplete(PLACES[where], INCOMPLETE[how])]) + "\n"
    (folder / "people.csv").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        run = cfbench_core.run(config_of(folder / "people.csv", how), out=folder / "run")
        yield list(csv.DictReader(io.StringIO(text))), how, run


def is_dropped(cells, how):
    lacking = {column for column, cell in cells.items() if cell in ("", "NA")}
    return bool(lacking) if how == "drop" else "decision" in lacking


def dropped_in(rows, how):
    return [row for row, cells in enumerate(rows) if is_dropped(cells, how)]


def test_originals_are_the_cells_of_the_row_in_the_file(made):
    rows, how, run = made
    assert len(run.explanations) > 20
    for change in run.explanations.itertuples():
        assert change.unit == str(change.row) and not is_dropped(rows[change.row], how)
        assert rows[change.row][change.column] == change.original
    assert (run.scores["unit"] == run.scores["row"].astype(str)).all()
    assert not set(run.scores["row"]) & set(dropped_in(rows, how))


def test_the_run_is_that_of_the_complete_rows(made, tmp_path, monkeypatch):
    """Neither explainer draws at random, so only the names of the rows may differ."""
    rows, how, run = made
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "whole.csv").write_text("\n".join([HEADER, *complete_rows()]) + "\n")
    whole = cfbench_core.run(config_of(tmp_path / "whole.csv", "error"), out=tmp_path / "run")
    remaining = [row for row, cells in enumerate(rows) if not is_dropped(cells, how)]
    for name in ("scores", "explanations"):
        expected, found = getattr(whole, name), getattr(run, name)
        expected = expected.assign(row=[remaining[row] for row in expected["row"]])
        expected = expected.assign(unit=expected["row"].astype(str))
        if name == "scores":
            expected, found = (table[table["metric"] != "time"] for table in (expected, found))
        pd.testing.assert_frame_equal(
            found.reset_index(drop=True).astype(object),
            expected.reset_index(drop=True).astype(object),
            check_exact=True,
        )


def test_sentences_name_the_row_of_the_file(made, capsys):
    rows, _, run = made
    change = run.explanations.iloc[-1]
    assert main(["explain", str(run.directory), "--unit", change["unit"]]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert f"row {change['unit']} of people counts as {change['factual_class']}" in words
    before = rows[change["row"]][change["column"]]
    assert f"{change['column']} {change['value']}" in words and f"instead of {before}" in words


def test_a_dropped_row_is_refused_with_the_reason(made, capsys):
    rows, how, run = made
    row = dropped_in(rows, how)[0]
    assert main(["explain", str(run.directory), "--unit", str(row)]) != 0
    error = " ".join(capsys.readouterr().err.split())
    lacking = [name for name, cell in rows[row].items() if cell in ("", "NA") and how in ("drop", "median")]
    lacking = ["decision"] if how == "median" else lacking
    reason = "it is empty" if not any(rows[row].values()) else "its " + " and ".join(map(repr, lacking))
    assert f"row {row} of people was dropped, because {reason}" in error


def test_the_page_of_a_row_shows_the_row_of_the_file(made):
    rows, _, run = made
    for row in sorted(set(run.explanations["row"]))[::4]:
        blocks = RunView(run).unit(0, str(row))["blocks"]
        facts = dict(next(block["items"] for block in blocks if block["type"] == "facts"))
        assert facts["row"] == f"{row} of people" and facts["class in the data"] == rows[row]["decision"]
        editor = next(block for block in blocks if block["type"] == "editor")
        shown = {field["name"]: field["value"] for field in editor["fields"]}
        assert {name: float(shown[name]) for name in COLUMNS} == {
            name: float(rows[row][name]) for name in COLUMNS
        }
        assert shown["town"] == rows[row]["town"]


def wide(rows, units):
    """Complete rows of the file with a larger income, as another program would write them."""
    table = pd.DataFrame([{**rows[unit], "income": int(rows[unit]["income"]) + 300} for unit in units])
    return table.drop(columns="decision").assign(unit=units)


def test_rows_of_another_program_are_scored_against_the_row_of_the_file(made, tmp_path):
    rows, how, run = made
    units = sorted(set(run.scores["row"]))
    wide(rows, units).to_csv(tmp_path / "theirs.csv", index=False)
    config = config_of(run.directory.parent / "people.csv", how)
    again = cfbench_core.run(config, out=tmp_path / "again", explanations=tmp_path / "theirs.csv")
    assert again.exit_code == 0 and sorted(set(again.scores["row"])) == units
    assert len(again.explanations) == len(units) and set(again.explanations["column"]) == {"income"}
    data = PreparedDataset.load(next((run.directory.parent / "cache").rglob("dataset.json")).parent)
    scale = data.encoding.scale[0]
    distances = again.scores[again.scores["metric"] == "L2"].dropna()["value"]
    assert len(distances) == 0 or np.allclose(distances, 300 / scale)


def evaluated(run, how, folder, text):
    (folder / "theirs.csv").write_text(text)
    config = config_of(run.directory.parent / "people.csv", how)
    return cfbench_core.run(config, out=folder / "again", explanations=folder / "theirs.csv")


def test_an_original_that_contradicts_the_file_is_refused(made, tmp_path):
    rows, how, run = made
    own, other = sorted(set(run.scores["row"]))[:2]
    lines = [f"{own},income,{float(rows[own]['income'])},9000", f"{own},age,,50"]
    right = "row,column,original,value\n" + "\n".join(lines) + "\n"
    assert evaluated(run, how, tmp_path, right).exit_code == 0
    wrong = f"{right}{own},town,{rows[own]['town']},Bonn\n{own},age,{rows[other]['age']},50\n"
    (tmp_path / "wrong").mkdir()
    again = evaluated(run, how, tmp_path / "wrong", wrong)
    assert again.exit_code == 1
    ages = rows[own]["age"], rows[other]["age"]
    message = f"row {own}: column 'age': its original is '{ages[1]}', but that row of people has {ages[0]}"
    assert message in again.cells()[0].reason


def test_a_dropped_unit_of_another_program_is_refused_with_the_reason(made, tmp_path):
    rows, how, run = made
    row = dropped_in(rows, how)[-1]
    again = evaluated(run, how, tmp_path, f"unit,column,value\n{row},income,9000\n")
    assert again.exit_code == 1
    assert f"unit '{row}' is a row that was dropped, because it" in again.cells()[0].reason


def test_a_row_that_contradicts_the_unit_is_refused(made, tmp_path):
    _, how, run = made
    own, other = sorted(set(run.scores["row"]))[:2]
    again = evaluated(
        run, how, tmp_path, f"unit,row,column,value\n{own},{own},age,50\n{own},{other},age,50\n"
    )
    assert again.exit_code == 1
    assert f"unit '{own}' has another row in the column row: '{other}'" in again.cells()[0].reason


def test_the_explanations_of_a_run_agree_with_its_own_data(made, tmp_path):
    _, how, run = made
    config = config_of(run.directory.parent / "people.csv", how)
    explanations = run.directory / "explanations.parquet"
    again = cfbench_core.run(config, out=tmp_path / "again", explanations=explanations)
    keys = ["cell", "metric", "unit"]
    own, theirs = (
        table[table["metric"] != "time"].sort_values(keys)[[*keys, "value"]].reset_index(drop=True)
        for table in (run.scores, again.scores)
    )
    pd.testing.assert_frame_equal(own, theirs, check_exact=True)


def test_a_prepared_dataset_remembers_its_rows(made, tmp_path):
    rows, how, run = made
    folder = next((run.directory.parent / "cache").rglob("dataset.json")).parent
    data = PreparedDataset.load(folder)
    data.save(tmp_path)
    for table in (data.table, PreparedDataset.load(tmp_path).table):
        assert sorted(table.file_rows.dropped) == dropped_in(rows, how)
        remaining = [row for row, cells in enumerate(rows) if not is_dropped(cells, how)]
        assert table.file_rows.in_file(range(len(table))).tolist() == remaining
        for row in remaining:
            assert table.texts(row) == {name: rows[row][name] for name in ("income", "age", "town")}


@pytest.mark.parametrize("how", ["median", "mode", "model"])
def test_filled_in_rows_keep_their_places_after_rows_without_a_class(tmp_path, how):
    lines = with_incomplete([0, 3, 57], INCOMPLETE["median"])
    gaps = [7, 60, 61, 110]
    for row in gaps:
        lines[row] = "NA," + lines[row].partition(",")[2]
    (tmp_path / "people.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    rows = list(csv.DictReader(io.StringIO("\n".join([HEADER, *lines]))))
    dataset = Csv(Config(file=str(tmp_path / "people.csv"), missing=how, columns=COLUMNS))
    table = dataset.load(dataset.find(DataAccess()))
    assert table.imputed["income"].rows.tolist() == gaps
    for row, cells in enumerate(rows):
        if row not in table.file_rows.dropped:
            assert table.texts(row)["age"] == cells["age"]
            assert ("income" in table.imputed_columns(np.array([row]))[0]) == (cells["income"] == "NA")


CELLS = st.sampled_from(["1", "2", "?", ""])
LINES = st.lists(
    st.one_of(
        st.tuples(CELLS, CELLS, st.sampled_from(["a", "b", "?", ""])).map(",".join),
        st.sampled_from(["", "  ", ",,", " , ,", "1,2,a"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=80)
@given(LINES, st.sampled_from(["drop", "median"]), st.booleans())
def test_rows_have_the_positions_that_pandas_gives_them(tmp_path_factory, lines, how, header):
    path = tmp_path_factory.mktemp("lines") / "my.csv"
    first = ["x,y,class"] if header else ["3,3,a"]
    path.write_text("\n".join([*first, *lines]) + "\n")
    columns = {"x": "integer", "y": "numeric", "class": "categorical"}
    schema = Schema(class_column="class", missing=how, columns=columns, header=header, separator=",")
    frame = pd.read_csv(
        path, header=0 if header else None, names=["x", "y", "class"], dtype=str, keep_default_na=False
    )
    frame = frame.apply(lambda column: column.str.strip())
    absent = frame.isin(["?", ""])
    bad = absent.any(axis=1) if how == "drop" else absent["class"]
    try:
        table = table_of(read_sheet(path, schema), schema, "my")
    except UserError:
        assert bad.all() or absent[~absent.all(axis=1)][["x", "y"]].all().any()
        return
    remaining = np.flatnonzero(~bad)
    assert table.file_rows.in_file(np.arange(len(table))).tolist() == remaining.tolist()
    assert sorted(table.file_rows.dropped) == np.flatnonzero(bad).tolist()
    for row in remaining:
        for name in ("x", "y"):
            cell = frame[name].iloc[row]
            assert cell in ("?", "") or float(table.texts(row)[name]) == float(cell)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=20), st.lists(st.booleans(), min_size=1, max_size=20))
def test_positions_of_several_files_and_steps(first, second):
    """Rows are dropped in two steps from two files, one after the other."""

    def of_file(flags):
        dropped = {row: "it is empty" for row, flag in enumerate(flags) if flag}
        return FileRows.without(dropped, len(flags)), len(flags) - len(dropped)

    files = [of_file(first), of_file(second)]
    flags, count = [*first, *second], files[0][1] + files[1][1]
    remaining = [row for row, flag in enumerate(flags) if not flag]
    both = FileRows.of_files(files)
    assert both.in_file(np.arange(count)).tolist() == remaining
    assert both.indices(remaining).tolist() == list(range(count))
    odd = both.drop(dict.fromkeys(range(1, count, 2), "its 'x' is missing"), count)
    assert odd.in_file(np.arange((count + 1) // 2)).tolist() == remaining[::2]
    assert {row for row, why in odd.dropped.items() if why != "it is empty"} == set(remaining[1::2])
