"""Missing values of a text file: rows dropped, or cells filled in with values of the file.

``median`` and ``mode`` fill in the same cell everywhere. ``model`` predicts each missing cell from the other columns of its
row, as one round of MissForest does (Stekhoven & Bühlmann 2012), with the gradient boosting of scikit-learn, which takes
missing values among its inputs: the cell of the file that is nearest to the predicted number, or the most probable level.
The class column is never an input, so that nothing of the class enters the features. The model learns from all rows, also
from those that are later held out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.column_types import Format
from cfbench_tabular.file_rows import reason_of
from cfbench_tabular.schema import ColumnPlan, Schema, text_of
from cfbench_tabular.schema_inference import kind_of
from cfbench_tabular.sheet import Sheet, in_order, numbers
from cfbench_tabular.table import FloatArray, Imputation

MOST_CATEGORIES = 255
"""Levels of a column that the model tells apart; the others count as missing."""


def without_missing(
    sheet: Sheet, schema: Schema, features: Sequence[ColumnPlan], class_column: str
) -> tuple[Sheet, Mapping[str, Imputation]]:
    """The sheet without missing values, and which were filled in, by column; rows keep their positions in the file."""
    marks = set(schema.missing_marks)
    missing: dict[str, list[int]] = {}
    classes = {text_of(raw, "classes"): "" for raw in schema.classes}
    for plan in [*features, ColumnPlan(class_column, levels=classes)]:
        own = marks - set(plan.levels or ())
        cells = sheet.columns[plan.name]
        if own & set(cells):
            missing[plan.name] = [place for place, cell in enumerate(cells) if cell in own]
    if not missing:
        return sheet, {}
    if schema.missing == "error":
        column = next(iter(missing))
        first = missing[column][0]
        raise UserError(
            f"{sheet.places[first]}: column {column!r}: is missing ({sheet.columns[column][first]!r}). Fill it in, set "
            "'missing: drop' to remove such rows or 'missing: median' to fill in typical values, or add it to the levels "
            "of the column"
        )
    found: dict[str, tuple[Sequence[str], str]] = {}
    if schema.missing != "drop":
        found = {
            plan.name: _filled(sheet, plan, features, missing, schema.missing)
            for plan in features
            if plan.name in missing
        }
        filled = {
            name: dict(zip(missing[name], replaced, strict=True)) for name, (replaced, _) in found.items()
        }
        columns = [
            [filled[name].get(row, cell) for row, cell in enumerate(cells)] if name in filled else cells
            for name, cells in sheet.columns.items()
        ]
        sheet = sheet.with_columns(columns)
    unfilled = {name: rows for name, rows in missing.items() if name not in found}
    gaps: dict[int, list[str]] = {}
    for name, rows in unfilled.items():
        for row in rows:
            gaps.setdefault(row, []).append(name)
    complete = [row for row in range(len(sheet.rows)) if row not in gaps]
    if not complete:
        always = [name for name, rows in unfilled.items() if len(rows) == len(sheet.rows)]
        why = f" (column {always[0]!r} is always missing: set its type to drop)" if always else ""
        raise UserError(
            f"{sheet.places[0]}: every row has a missing value, so 'missing: drop' removes all rows{why}"
        )
    imputed = {
        name: Imputation(method, sheet.file_rows.in_file([row for row in missing[name] if row not in gaps]))
        for name, (_, method) in found.items()
    }
    return _without(sheet, gaps, complete), {name: one for name, one in imputed.items() if len(one.rows)}


def _without(sheet: Sheet, gaps: Mapping[int, Sequence[str]], complete: Sequence[int]) -> Sheet:
    """The ``complete`` rows of a sheet; ``gaps``: the missing columns of the others."""
    reasons = {row: reason_of(columns) for row, columns in gaps.items()}
    return Sheet(
        sheet.names,
        [sheet.rows[row] for row in complete],
        [sheet.places[row] for row in complete],
        sheet.file_rows.drop(reasons, len(sheet.rows)),
    )


def _filled(
    sheet: Sheet,
    plan: ColumnPlan,
    features: Sequence[ColumnPlan],
    missing: Mapping[str, Sequence[int]],
    how: str,
) -> tuple[Sequence[str], str]:
    """The cells to fill in where a column is missing, in the order of the rows, and by which method they are found."""
    others = [other for other in features if other.name != plan.name]
    typical, method = _typical(sheet, plan, missing[plan.name], "median" if how == "model" else how)
    if how != "model" or not any(len(missing.get(other.name, ())) < len(sheet.rows) for other in others):
        return [typical] * len(missing[plan.name]), method
    return _predicted(sheet, plan, others, missing), "model"


def _predicted(
    sheet: Sheet, plan: ColumnPlan, others: Sequence[ColumnPlan], missing: Mapping[str, Sequence[int]]
) -> Sequence[str]:
    """The missing cells of a column, predicted from the other feature columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    cells, gaps = sheet.columns[plan.name], np.asarray(missing[plan.name])
    usable = [other for other in others if len(missing.get(other.name, ())) < len(cells)]
    inputs = [_numbers_of(sheet, other, missing.get(other.name, ())) for other in usable]
    table, categorical = np.stack([values for values, _ in inputs], axis=1), [flag for _, flag in inputs]
    own, is_category = _numbers_of(sheet, plan, missing[plan.name])
    known = np.flatnonzero(~np.isnan(own))
    learner = HistGradientBoostingClassifier if is_category else HistGradientBoostingRegressor
    if len(np.unique(own[known])) == 1:
        return [cells[known[0]]] * len(gaps)
    model = learner(categorical_features=categorical, early_stopping=False, random_state=0)
    found = model.fit(table[known], own[known]).predict(table[gaps])
    values, first = np.unique(own[known], return_index=True)
    nearest = np.abs(values[None, :] - found[:, None]).argmin(axis=1)
    return [cells[known[place]] for place in first[nearest]]


def _numbers_of(sheet: Sheet, plan: ColumnPlan, gaps: Sequence[int]) -> tuple[FloatArray, bool]:
    """(N,) a column as numbers, NaN where it is missing, and whether they are the numbers of levels without an order."""
    cells = sheet.columns[plan.name]
    known = np.setdiff1d(np.arange(len(cells)), np.asarray(gaps, dtype=np.int64))
    values = np.full(len(cells), np.nan)
    kind = plan.kind or kind_of([cells[row] for row in known])
    if plan.levels is None and kind != "categorical":
        form: Format = "date" if kind == "date" else "time" if kind == "time" else plan.format
        values[known] = numbers(
            [cells[row] for row in known], plan.name, [sheet.places[row] for row in known], form
        )
        return values, False
    counts = Counter(cells[row] for row in known)
    levels = list(plan.levels) if plan.levels is not None else in_order(counts)
    if not plan.ordered and len(levels) > MOST_CATEGORIES:
        levels = [level for level, _ in counts.most_common(MOST_CATEGORIES)]
    rank = {level: float(place) for place, level in enumerate(levels)}
    values[known] = [rank.get(cells[row], np.nan) for row in known]
    return values, not plan.ordered


def _typical(sheet: Sheet, plan: ColumnPlan, missing: Sequence[int], how: str) -> tuple[str, str]:
    """The cell to fill in, and the method: the lower median of numbers, dates and ordered levels, or else the most
    frequent cell.

    Both are values of the file, so that they are at the steps of the column. Of equally frequent cells, the first.
    """
    gaps = set(missing)
    cells = [cell for row, cell in enumerate(sheet.columns[plan.name]) if row not in gaps]
    places = [place for row, place in enumerate(sheet.places) if row not in gaps]
    if not cells:
        raise UserError(
            f"{sheet.places[0]}: column {plan.name!r}: is always missing, so nothing can be filled in: set its type to drop"
        )
    kind = plan.kind or kind_of(cells)
    if how == "median" and plan.ordered and plan.levels is not None:
        order = {level: rank for rank, level in enumerate(plan.levels)}
        known = sorted((cell for cell in cells if cell in order), key=order.__getitem__)
        if known:
            return known[(len(known) - 1) // 2], "median"
    if how == "median" and kind != "categorical":
        form: Format = "date" if kind == "date" else "time" if kind == "time" else plan.format
        values = numbers(cells, plan.name, places, form)
        return cells[int(np.argsort(values, kind="stable")[(len(values) - 1) // 2])], "median"
    return Counter(cells).most_common(1)[0][0], "mode"
