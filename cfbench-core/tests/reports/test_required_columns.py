"""Who wins where one column says which units count."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from made_up_run import emphasis, small_run

from cfbench_core.reports.tables import tables
from cfbench_core.reports.winners import required_only, verdicts
from cfbench_core.run_directory import Run


def test_values_are_missing_where_the_required_column_is_zero() -> None:
    values = np.array([[[1.0, 5.0, 7.0], [0.0, 6.0, 8.0]], [[0.5, 5.0, 7.0], [np.nan, 6.0, 8.0]]])
    found = required_only(values, [True, False, False], [False, False, True])
    expected = values.copy()
    expected[0, 1, 1] = np.nan  # not the required column itself, and not the exempt one
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(required_only(values, [False] * 3, [False] * 3), values, equal_nan=True)


def test_answers_that_do_not_count_win_no_column() -> None:
    counts = np.array([[1.0, 0.0]] * 6)
    distance = np.array([[2.0, 1.0]] * 6)
    values = np.stack([counts, distance], axis=2)
    directions = ["higher", "lower"]
    clusters = np.arange(6)
    assert verdicts(values, directions, 2, clusters)[1].tied == (1,)
    counted = required_only(values, [True, False], [False, False])
    assert verdicts(counted, directions, 2, clusters)[1].tied == (0,)


def test_a_run_stores_which_columns_are_required(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"a": [1.0] * 6, "b": [0.0] * 6})
    plan = run.directory / "plan.json"
    document = json.loads(plan.read_text())
    for cell in document["cells"]:
        for metric in cell["metrics"]:
            metric["required"] = True
    plan.write_text(json.dumps(document))
    again = Run(run.directory)
    assert all(column.required for cell in again.cells() for column in cell.columns)
    assert emphasis(tables(again)[0]) == {"a": "best", "b": "second"}
