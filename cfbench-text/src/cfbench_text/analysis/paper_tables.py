"""``paper-tables``: the tables III to VI of Statement factuality, in its form, for your own texts.

Each cell there is mean ± standard deviation over all test rows; generators are columns, metrics are rows. Here n is
added, since rows without a value are excluded from a mean, and the best value is marked among competitors only;
controls (reference, shuffled references, most frequent statements) are the columns on the right.

    III  statements against a text: St2Exp, SEval       IV  statements against statements: StEnt, StCoh, ...
    V    sentences, chunks, questions: SummaC, AlignScore, QuestEval       VI  similarity: BLEU, BERTScore, ...

Figure 2 (StEnt-bin) is in table IV. Table VII (reviews as references) is in ``reproduction``.
A metric that equals another one in every row (as several do with ``overlap``) is printed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.analyses import Figure
from cfbench_core.specs import ComponentSpec
from cfbench_text.analysis.shared import (
    groups_of,
    judge_notes,
    repeated,
    repetition_notes,
    tidied,
    values_of,
    written,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/analysis/paper-tables",
    summary="The tables of Statement factuality for these texts",
    target=f"{__name__}:PaperTables",
    papers=("statementfactuality",),
)


TABLES = {
    "III": ("a statement against a text", ("St2Exp", "SEval")),
    "IV": (
        "a statement against statements",
        ("StEnt", "StCoh", "StMatch", "hallucinated", "contradicted", "omitted"),
    ),
    "V": ("sentences, chunks, questions", ("SummaC", "AlignScore", "QuestEval")),
    "VI": ("similarity", ()),
}
"""What each table holds, by how the names of its metrics begin; the last has all others."""

NOTHING = "–"
WIDTH = 118
"""Letters in a line; generators that do not fit stand in a block below."""


class PaperTables:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if written(runs) else "no texts were written"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: dataset, table, metric, direction, model, role, mean, std (of the sample), n, same_as (the
        metric that it equals in every row)."""
        import pandas as pd

        same = repeated(runs)
        lines: list[dict[str, Any]] = []
        for run, cell in written(runs):
            scores = values_of(run, cell.id)
            for column in cell.columns:
                values = scores.get(column.name, np.empty(0))
                values = values[~np.isnan(values)]
                lines.append(
                    {
                        "dataset": cell.labels["dataset"],
                        "table": table_of(column.name),
                        "metric": column.name,
                        "direction": column.direction,
                        "model": cell.labels["model"],
                        "role": cell.role,
                        "mean": float(values.mean()) if len(values) else float("nan"),
                        "std": float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
                        "n": len(values),
                        "same_as": same.get((str(cell.labels["dataset"]), column.name), ""),
                    }
                )
        lines.sort(key=lambda line: list(TABLES).index(line["table"]))
        return pd.DataFrame(lines)

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        """Which metrics are one here, and how reliable the judges are."""
        return [*repetition_notes(runs), *judge_notes(runs)]

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        return ()

    def words(self, table: pd.DataFrame) -> str:
        """How many of the metrics each competitor leads."""
        table = distinct(table)
        leaders = [who for _, rows in groups_of(table, ("dataset", "metric")) if (who := best(rows))]
        if not leaders:
            return ""
        counts = {who: leaders.count(who) for who in dict.fromkeys(leaders)}
        listed = ", ".join(f"{who} {n}" for who, n in sorted(counts.items(), key=lambda one: -one[1]))
        return f"Best of the competitors, by how many of {len(leaders)} metrics: {listed}."

    def text(self, table: pd.DataFrame) -> str:
        """The tables as printed in the paper: a block for each, * at the best competitor."""
        blocks = []
        for labels, rows in groups_of(distinct(table), ("table", "dataset")):
            heading = f"Table {labels['table']} ({TABLES[labels['table']][0]}), {labels['dataset']}"
            blocks.append(f"{heading}\n{printed(rows).to_string(index_names=False, line_width=WIDTH)}")
        return "\n\n".join(blocks)


def distinct(table: pd.DataFrame) -> pd.DataFrame:
    """Without the metrics that equal an earlier one in every row."""
    table = tidied(table)
    return table[table["same_as"].fillna("") == ""] if "same_as" in table.columns else table


def table_of(metric: str) -> str:
    """The number of the table that a metric belongs to."""
    for name, (_, starts) in TABLES.items():
        if metric.startswith(starts or metric):
            return name
    raise AssertionError("the last table takes all")


def best(rows: pd.DataFrame) -> str:
    """The one competitor with the best mean of a metric; "" if there are not two, or they are level."""
    own = rows[(rows["role"] == "") & rows["mean"].notna()]
    direction = rows["direction"].iloc[0]
    if len(own) < 2 or direction not in ("higher", "lower"):
        return ""
    wanted = own["mean"].max() if direction == "higher" else own["mean"].min()
    leading = own[own["mean"] == wanted]
    return str(leading["model"].iloc[0]) if len(leading) == 1 else ""


def printed(rows: pd.DataFrame) -> pd.DataFrame:
    """Metrics down, generators across, ``mean±std``; competitors first."""
    import pandas as pd

    order = rows.sort_values("role", kind="stable")["model"].drop_duplicates()
    found: dict[str, dict[str, Any]] = {}
    for labels, of_metric in groups_of(rows, ("metric",)):
        leader = best(of_metric)
        found[labels["metric"]] = {
            row["model"]: _cell(row) + ("*" if row["model"] == leader else "")
            for row in of_metric.to_dict("records")
        }
    return pd.DataFrame.from_dict(found, orient="index").reindex(columns=order.tolist()).fillna(NOTHING)


def _cell(row: Mapping[Any, Any]) -> str:
    """ "0.1234±0.0567"; without a deviation if only one row has a value, "–" if none has."""
    if np.isnan(row["mean"]):
        return NOTHING
    return f"{row['mean']:.4f}" + ("" if np.isnan(row["std"]) else f"±{row['std']:.4f}")
