"""The viewer's page of a row: its counterfactuals as a diff, and what the classifier says to an edited row."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.specs import ComponentSpec
from cfbench_core.view.blocks import Block, Drawing, Editor, Facts, Field, Grid, Note, Proposal, Text

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run
    from cfbench_core.view.viewers import Constraints, LiveExplainer, LiveUnit, UnitData
    from cfbench_tabular.prepared_dataset import PreparedDataset
    from cfbench_tabular.table import Column

SPEC = ComponentSpec(
    id="tabular/viewer/tabular",
    summary="A row with its counterfactuals as a diff, and the class of an edited row",
    target=f"{__name__}:TabularViewer",
)

MOST_LINES = 12
"""Counterfactuals on parallel axes at most."""


class TabularViewer:
    """Rows of a table: see :class:`cfbench_core.view.viewers.Viewer`."""

    edited = "column"

    def __init__(self, config: None = None) -> None:
        """There is nothing to set."""

    def unit(self, unit: UnitData) -> Sequence[Block]:
        """The row, each counterfactual as a diff, how often each column changes, and an editor."""
        folder = unit.artifact("data")
        if folder is None:
            note = "The data of this run is not in the cache any more: only the changed columns can be shown."
            return [Note(note), *_changes_alone(unit)]
        data = _data(folder)
        row = int(unit.unit)
        values, index = data.table.texts(row), int(data.table.file_rows.indices(row))
        first = next((rows.iloc[0] for rows in unit.explanations.values() if len(rows)), None)
        imputed = _imputed(data, row)
        facts = [("row", f"{row} of {data.table.name}"), ("class in the data", str(data.table.target[index]))]
        if first is not None:
            facts += [("prediction", str(first["factual_class"])), ("wanted", str(first["wanted_class"]))]
        if imputed:
            missing = "; ".join(f"{name} {values[name]} with {how}" for name, how in imputed.items())
            facts.append(("missing in the data, filled in", missing))
        constraints = "; ".join(str(one) for one in data.encoding.constraints)
        if constraints:
            facts.append(("constraints between columns", constraints))
        return [
            Facts(facts),
            *_diffs(unit, data, values, imputed),
            *_parallel(unit, data, values),
            _editor(unit, data, values),
            *_edited_columns(unit),
        ]

    def respond(self, live: LiveUnit, edit: Mapping[str, bool | float | str]) -> Sequence[Block]:
        """The probabilities before and after the edit, and which rules of the table the edited row breaks."""
        import numpy as np

        from cfbench_tabular.classifiers.base import predicted_classes
        from cfbench_tabular.feature_changes import apply

        data: PreparedDataset = live.data
        factual = live.chunk.factuals.vectors[0]
        changed = apply(data.encoding, factual, [(name, None, value) for name, value in edit.items()])
        pair = np.stack([factual, changed])
        probabilities = _probabilities(live.model, pair)
        words = [data.predictions[label] for label in predicted_classes(live.model, pair).tolist()]
        rows: list[list[Text | str]] = []
        for name, place in ((data.classes[1], 1), (data.classes[0], 0)):
            before, after = (float(p[place]) for p in probabilities)
            rows.append(
                [
                    name,
                    Text(f"{before:.4f}", bar=before),
                    Text(f"{after:.4f}", bar=after),
                    f"{after - before:+.4f}",
                ]
            )
        flipped = words[0] != words[1]
        verdict = Facts(
            [
                ("prediction for the row", words[0]),
                ("prediction for the edited row", f"{words[1]}{' (changed)' if flipped else ' (unchanged)'}"),
            ]
        )
        grid = Grid(
            "Probability of each class", ["class", "row", "edited row", "difference"], rows, (1, 2, 3)
        )
        problems = list(_problems(data, factual, changed))
        notes = [Note(problem, "warn") for problem in problems] or (
            [Note("The edited row respects the ranges and constraints of the table.", "good")] if edit else []
        )
        return [verdict, grid, *notes]

    def explain(self, live: LiveExplainer, constraints: Constraints) -> Sequence[Block]:
        """The explainer's counterfactuals under the constraints, and whether they respect them."""
        import dataclasses

        from cfbench_tabular.constrained_columns import constrained

        unit = live.unit
        data = dataclasses.replace(
            unit.data, encoding=constrained(unit.data.encoding, constraints.locked, constraints.ranges)
        )
        chunk = dataclasses.replace(unit.chunk, data=data)
        context = unit.context
        answers, _ = context.step("explain")(context, live.explainer, unit.model, chunk, live.state)
        rows = context.step("to_rows")(chunk, answers)
        if rows.empty:
            return [Note(f"{live.name} finds no counterfactual under these constraints.", "warn")]
        values = data.table.texts(int(unit.units["row"].iloc[0]))
        parts = {number: _changed(part, data) for number, part in _sets(rows)}
        names = [live.name if len(parts) == 1 else f"{live.name} ({number})" for number in parts]
        shown: list[list[Text | str]] = [
            [name, value, *(found.get(name, Text("·", "muted")) for found in parts.values())]
            for name, value in values.items()
            if any(name in found for found in parts.values()) or name in constraints.locked
        ]
        grid = Grid(
            "Answer under the constraints", ["column", "row", *names], shown, tuple(range(1, len(names) + 2))
        )
        return [grid, *self._verdicts(unit, chunk, answers[0])]

    def _verdicts(self, unit: LiveUnit, chunk: Any, answers: Any) -> Iterator[Note]:
        """What each counterfactual (n, d) is worth: its class, and what it breaks."""
        import numpy as np

        from cfbench_tabular.classifiers.base import predicted_classes

        factual, data = chunk.factuals.vectors[0], chunk.data
        for vector in answers[~np.isnan(answers).any(axis=1)]:
            share = float(_probabilities(unit.model, vector[None])[0, 1])
            label = int(predicted_classes(unit.model, vector[None])[0])
            flipped = label != int(chunk.factuals.classes[0])
            says = f"The classifier says {data.predictions[label]} (probability {share if label else 1 - share:.3f})."
            yield Note(says, "good" if flipped else "warn")
            low, high = data.encoding.allowed(factual[None])
            outside = (vector < low[0] - 1e-9) | (vector > high[0] + 1e-9)
            broken = [
                data.table.columns[n].name for n in sorted(set(data.encoding.column_of[outside].tolist()))
            ]
            if broken:
                yield Note(f"This explainer does not respect the limits of: {', '.join(broken)}.", "warn")


def _probabilities(model: Any, vectors: Any) -> Any:
    """(n, 2) the model's own probabilities, not those that a decision threshold has shifted."""
    return getattr(model, "own_probabilities", model.predict_proba)(vectors)


@functools.lru_cache(maxsize=4)
def _data(folder: Path) -> PreparedDataset:
    from cfbench_tabular.prepared_dataset import PreparedDataset

    return PreparedDataset.load(folder)


def left_out(run: Run, unit: str) -> str:
    """Why a row of a file is not in any table of a run; "" if it is, or if the tables are not in the cache any more."""
    from cfbench_core.view.viewers import known_store, recorded_stages
    from cfbench_tabular.prepared_dataset import dropped_rows

    folders = {}
    for cell in run.cells():
        key = recorded_stages(run, cell.id).get("data")
        if key is not None and known_store().has("data", key):
            folders[str(cell.labels["dataset"])] = known_store().path("data", key)
    for name, folder in folders.items():
        dropped = dropped_rows(folder)
        if unit.isdecimal() and int(unit) in dropped:
            return f"row {int(unit)} of {name} was dropped, because {dropped[int(unit)]}"
    return ""


def _imputed(data: PreparedDataset, row: int) -> dict[str, str]:
    """By which method the missing values of a row are filled in, in words, by column."""
    from cfbench_tabular.table import FILLED_IN

    found = data.table.imputed
    return {name: FILLED_IN[one.method] for name, one in found.items() if row in one.rows}


def _rule(data: PreparedDataset, column: Column) -> str:
    """What a counterfactual may do to a column: "0.1 to 2.5 cm, steps of 0.1, may only increase"."""
    parts = []
    if column.kind == "numeric":
        low, high = _range(data, column)
        parts.append(f"{low:.6g} to {high:.6g}{' ' + column.unit if column.unit else ''}")
        if column.step is not None:
            parts.append(f"steps of {column.step:g}")
    else:
        parts.append(f"{'ordered: ' if column.ordered else ''}{', '.join(column.levels)}")
    if column.immutable:
        parts.append("must not change")
    elif column.direction != "any":
        parts.append("may only increase" if column.direction == "up" else "may only decrease")
    return "; ".join(parts)


def _range(data: PreparedDataset, column: Column) -> tuple[float, float]:
    values = data.table.values[column.name]
    low = column.low if column.low is not None else float(values.min())
    high = column.high if column.high is not None else float(values.max())
    return low, high


def _sets(rows: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """The counterfactuals of one answer, numbered."""
    if "counterfactual" not in rows:
        yield 1, rows
        return
    for number in sorted(rows["counterfactual"].unique().tolist()):
        yield int(number), rows[rows["counterfactual"] == number]


def _diffs(
    unit: UnitData, data: PreparedDataset, values: Mapping[str, str], imputed: Mapping[str, str]
) -> Iterator[Grid]:
    """Columns down, counterfactuals across: the value where it changes, a dot where it does not."""
    answers: dict[str, dict[str, Text]] = {}
    for cell in unit.cells:
        several = sum(1 for _ in _sets(unit.explanations[cell.id])) > 1
        for number, part in _sets(unit.explanations[cell.id]):
            name = f"{unit.name(cell)} ({number})" if several else unit.name(cell)
            answers[name] = _changed(part, data)
    if not answers:
        return
    rows: list[list[Text | str]] = []
    for column in data.table.columns:
        label = (
            f"{column.name}{f' [{column.unit}]' if column.unit and column.unit not in column.name else ''}"
        )
        own: Text | str = values[column.name]
        if column.name in imputed:
            own = Text(
                f"{own} (filled in)", "muted", f"missing in the data; filled in with {imputed[column.name]}"
            )
        cells: list[Text | str] = [Text(label, title=_rule(data, column)), own]
        cells += [found.get(column.name, Text("·", "muted")) for found in answers.values()]
        rows.append(cells)
    count: list[Text | str] = [Text("changed columns", "muted"), ""]
    rows.append(count + [Text(str(len(found)), "muted") for found in answers.values()])
    numeric = tuple(range(1, len(answers) + 2))
    note = "A value is shown where the counterfactual differs from the row: ▲ larger, ▼ smaller, ≠ another level."
    yield Grid("Counterfactuals", ["column", "row", *answers], rows, numeric, note)


def _parallel(unit: UnitData, data: PreparedDataset, values: Mapping[str, str]) -> Iterator[Drawing]:
    """The row and its counterfactuals over parallel axes: the columns that some counterfactual changes."""
    from cfbench_core.reports.charts import Axis, ParallelLine, parallel_axes

    answers: dict[str, dict[str, str]] = {}
    for cell in unit.cells:
        for number, part in _sets(unit.explanations[cell.id]):
            if len(part) and not part["level"].notna().any() and len(answers) < MOST_LINES:
                name = unit.name(cell) if number == 1 else f"{unit.name(cell)} ({number})"
                answers[name] = dict(zip(part["column"].astype(str), part["value"].astype(str), strict=True))
    changed = {name for found in answers.values() for name in found}
    columns = [c for c in data.table.columns if c.name in changed and c.format == "number"]
    if len(columns) < 2:
        return
    axes = [
        Axis(c.name, 0.0, 1.0, tuple(c.levels)) if c.kind != "numeric" else Axis(c.name, *_range(data, c))
        for c in columns
    ]

    def place(column: Column, value: str) -> float:
        return float(value) if column.kind == "numeric" else float(column.levels.index(value))

    lines = [
        ParallelLine(name, [place(c, {**values, **found}[c.name]) for c in columns])
        for name, found in [("the row", {}), *answers.items()]
    ]
    note = "Columns that some counterfactual changes. The strong line is the row; an axis spans the range of its column."
    yield Drawing("Row and counterfactuals", parallel_axes(axes, lines, title=f"row {unit.unit}"), note)


def _changed(rows: pd.DataFrame, data: PreparedDataset) -> dict[str, Text]:
    kinds = {column.name: column for column in data.table.columns}
    found: dict[str, Text] = {}
    columns = ["column", "level", "original", "value", "imputed"]
    for name, level, before, after, filled in rows.reindex(columns=columns).itertuples(index=False):
        if isinstance(level, str):
            earlier = found[name].text + ", " if name in found else ""
            found[name] = Text(f"{earlier}{level} {_short(after)}", "warn", "not exactly one level")
            continue
        sign = _sign(kinds[name], str(before), str(after))
        was = f"a filled-in {before}" if filled is True else before
        found[name] = Text(f"{sign} {_short(after)}", "mark", f"{after} instead of {was}")
    return found


def _short(text: object) -> str:
    shown = str(text)
    try:
        number = float(shown)
    except ValueError:
        return shown
    return shown if len(shown) <= 8 else f"{number:.5g}"


def _sign(column: Column, before: str, after: str) -> str:
    try:
        return "▲" if float(after) > float(before) else "▼"
    except ValueError:
        return "≠" if column.kind != "numeric" else "▲" if after > before else "▼"


def _edited_columns(unit: UnitData) -> Iterator[Grid]:
    """How often a column is changed, by the explainers of this row."""
    answers = [set(part["column"]) for rows in unit.explanations.values() for _, part in _sets(rows)]
    answers = [found for found in answers if found]
    if len(answers) < 2:
        return
    counts = Counter(str(name) for found in answers for name in found)
    rows = [
        [Text(name), Text(f"{count} of {len(answers)}", bar=count / len(answers))]
        for name, count in counts.most_common()
    ]
    yield Grid("Columns that counterfactuals change", ["column", "counterfactuals"], rows, (1,))


def _changes_alone(unit: UnitData) -> Iterator[Grid]:
    for cell in unit.cells:
        rows = unit.explanations[cell.id]
        if len(rows):
            shown = rows[["column", "original", "value"]].astype(str)
            yield Grid(
                unit.name(cell), list(shown.columns), [list(row) for row in shown.itertuples(index=False)]
            )


def _editor(unit: UnitData, data: PreparedDataset, values: Mapping[str, str]) -> Editor:
    fields = [_field(data, column, values[column.name]) for column in data.table.columns]
    known = {field.name: field for field in fields}
    proposals = []
    for cell in unit.cells:
        for number, part in _sets(unit.explanations[cell.id]):
            if not len(part) or part["level"].notna().any():
                continue  # no answer, or one that is no row
            pairs = zip(part["column"].astype(str), part["value"].astype(str), strict=True)
            edit = {name: _typed(known[name], value) for name, value in pairs if name in known}
            proposals.append(Proposal(f"{unit.name(cell)}{f' ({number})' if number > 1 else ''}", edit))
    note = "Change values; the classifier is queried anew at each change."
    return Editor("What if the row were another?", fields, proposals, note=note, constrainable=True)


def _field(data: PreparedDataset, column: Column, value: str) -> Field:
    rule, locked = _rule(data, column), column.immutable
    if column.kind != "numeric":
        return Field(
            column.name, column.name, "choice", value, tuple(column.levels), locked=locked, note=rule
        )
    if column.format != "number":
        return Field(
            column.name, column.name, "choice", value, (value,), locked=True, note=f"a {column.format}"
        )
    low, high = _range(data, column)
    return Field(
        column.name,
        column.name,
        "number",
        float(value),
        (),
        low,
        high,
        column.step,
        column.unit,
        locked,
        rule,
    )


def _typed(field: Field, value: str) -> float | str:
    return float(value) if field.kind == "number" else value


def _problems(data: PreparedDataset, factual: Any, changed: Any) -> Iterator[str]:
    """What the edited row breaks: ranges, directions, immutable columns, constraints between columns."""
    low, high = data.encoding.allowed(factual[None])
    outside = (changed < low[0] - 1e-9) | (changed > high[0] + 1e-9)
    for place in sorted(set(data.encoding.column_of[outside].tolist())):
        column = data.table.columns[place]
        yield f"{column.name}: a counterfactual must stay within: {_rule(data, column)}"
    if not bool(data.encoding.constraints_hold(changed[None])[0]):
        yield f"a constraint between columns does not hold: {'; '.join(map(str, data.encoding.constraints))}"
