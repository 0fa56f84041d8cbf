"""Large tables: written in groups whose size does not depend on the parts, and read in parts again."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from cfbench_core import results_assembly, statistics, units_file
from cfbench_core.results_assembly import Part, write_parquet


def parts(cell, rows, size):
    for start in range(0, rows, size):
        yield Part(cell, {"cell": cell}, pa.table({"value": list(range(start, min(start + size, rows)))}))


@pytest.mark.parametrize("size", [1, 3, 10, 11, 25])
def test_groups_of_rows_have_one_size_whatever_the_cells_and_the_parts(tmp_path, monkeypatch, size):
    monkeypatch.setattr(results_assembly, "GROUP", 10)
    write_parquet(
        tmp_path / "t.parquet", [*parts("a", 25, size), *parts("b", 10, size), *parts("c", 3, size)]
    )
    file = parquet.ParquetFile(tmp_path / "t.parquet")
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [10, 10, 10, 8]
    table = file.read().to_pandas()
    assert table["value"].tolist() == [*range(25), *range(10), *range(3)]
    assert table["cell"].tolist() == ["a"] * 25 + ["b"] * 10 + ["c"] * 3


def test_parts_with_other_labels_and_columns_are_one_table(tmp_path, monkeypatch):
    """As joining their rows one by one does: what a part lacks is null, and text is text again."""
    monkeypatch.setattr(results_assembly, "GROUP", 7)
    draw = np.random.default_rng(0)
    rows, given = [], []
    for place in range(12):
        count = int(draw.integers(0, 6))
        labels = {"cell": f"c{place // 2}", "k": place % 3}
        if place % 4 == 0:
            labels["scope"] = f"s{place % 5}"
        columns = {"unit": [f"u{n}" for n in range(count)], "value": draw.random(count).tolist()}
        if place > 5:
            columns["rank"] = list(range(count))
        types = {"unit": pa.large_string(), "value": pa.float64(), "rank": pa.int64()}
        table = pa.table({name: pa.array(column, types[name]) for name, column in columns.items()})
        given.append(Part(labels["cell"], labels, table))
        rows += [{**labels, **row} for row in table.to_pylist()]
    write_parquet(tmp_path / "t.parquet", given)
    found = parquet.read_table(tmp_path / "t.parquet")
    assert found.column_names == ["cell", "k", "scope", "unit", "value", "rank"]
    names = dict.fromkeys(found.column_names)
    assert found.to_pylist() == [{**names, **row} for row in rows]
    assert {str(found.schema.field(name).type) for name in ("cell", "scope", "unit")} <= {
        "string",
        "large_string",
    }


def test_values_of_chosen_units_are_nan_for_others():
    values = statistics.UnitValues(
        np.array(["b", "d"]), np.array(["x", "y"]), ("m", "n"), np.array([[1.0, 2], [3, 4]])
    )
    found = values.of_units(np.array(["d", "a", "b", "e"]))
    np.testing.assert_array_equal(found, [[3, 4], [np.nan] * 2, [1, 2], [np.nan] * 2])
    assert values.of_units(values.units) is values.values


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("cluster", [None, "user"])
def test_scores_in_parts_are_the_same_matrices_as_the_whole(size, cluster):
    draw = np.random.default_rng(0)
    rows = [(cell, f"u{unit:02d}", f"m{metric}", f"c{unit % 3}", draw.random() if draw.random() < 0.8 else np.nan)
            for cell in "ba" for metric in range(3) for unit in range(12) if draw.random() < 0.9]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["cell", "unit", "metric", "user", "value"])
    scores = scores.sample(frac=1, random_state=1, ignore_index=True)
    found = statistics.unit_values(
        (scores.iloc[start : start + size] for start in range(0, len(scores), size)), cluster
    )
    assert list(found) == list(scores["cell"].drop_duplicates())
    for cell, own in scores.groupby("cell"):
        wide = own.pivot(index="unit", columns="metric", values="value")[list(found[cell].metrics)]
        np.testing.assert_array_equal(found[cell].values, wide.to_numpy())
        assert list(found[cell].units) == list(wide.index)
        belongs = own.drop_duplicates("unit").set_index("unit")["user" if cluster else "cell"]
        expected = belongs[wide.index].tolist() if cluster else list(wide.index)
        assert list(found[cell].clusters) == expected


def test_further_numbers_are_of_units_that_have_scores():
    scores = pd.DataFrame({"cell": "a", "unit": ["v", "u"], "metric": "m", "value": [1.0, 2.0]})
    times = pd.DataFrame({"cell": ["a", "a", "b"], "unit": ["u", "w", "u"], "metric": "time", "value": 3.0})
    found = statistics.unit_values(scores, None, times)
    assert list(found) == ["a"] and list(found["a"].units) == ["u", "v"]
    np.testing.assert_array_equal(found["a"].values, [[2.0, 3.0], [1.0, np.nan]])


def test_units_are_read_by_range(tmp_path):
    groups = np.repeat(np.arange(40), np.random.default_rng(0).integers(1, 4, 40))
    units = pd.DataFrame({"unit": [f"u{n}" for n in range(len(groups))], "group": groups})
    units.to_parquet(tmp_path / "units.parquet", index=False, row_group_size=7)
    for start, stop in [(0, 40), (0, 1), (13, 20), (39, 40), (20, 20)]:
        expected = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
        found = units_file.read_range(tmp_path / "units.parquet", start, stop).to_pandas()
        pd.testing.assert_frame_equal(found, expected, check_dtype=bool(len(expected)))
