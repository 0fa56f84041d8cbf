"""``topics``: on which topics do generators hallucinate, and which do they omit? By topic and by sentiment.

Over all texts of a generator together, for the statements of one topic (or of one sentiment):

    precision = entailed by the row's reference / statements of the texts     hallucinated = 1 - precision
    recall    = entailed by the row's text / statements of the references     omitted      = 1 - recall
    F1        = their harmonic mean; 0 if nothing of either side is entailed, missing if a side has no verdicts

``contradicted`` is the part of ``hallucinated`` that contradicts the review; missing for a judge that reports only
whether a text supports a statement. A statement counts for its own topic and
sentiment, regardless of those of the statement that entails it. These are shares of statements, so rows with many
statements weigh more, and a row whose text has no statements counts as omitted for any ``protocol.empty``; the tables of
a run contain means over rows. Intervals are bootstraps over users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.analyses import Figure
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import percentile_interval, resampled_means
from cfbench_text.analysis.shared import (
    cells_of,
    competing,
    groups_of,
    harmonic_mean,
    judge_notes,
    tidied,
    why_no_verdicts,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/analysis/topics",
    summary="On which topics do generators hallucinate, and which do they omit?",
    target=f"{__name__}:Topics",
)


DRAWN = {
    "hallucinated": ("lower", "Share of the texts' statements that are not in the user's review."),
    "omitted": ("lower", "Share of the user's statements that the texts omit."),
    "F1": ("higher", "Of precision and recall over all statements."),
}
SHOWN = ["in_texts", "in_references", "precision", "recall", "F1", "hallucinated", "contradicted", "omitted"]
TEXTS = "explanations.parquet"
WORDS = ["judge", "side", "topic", "sentiment"]
COUNTED, NUMBERS = [*WORDS, "user"], ["all", "entailed", "contradicted"]
WAITING = 20
"""Parts whose counts are put together at once."""
OF_PAIRS = ("StEnt", "StCoh", "StMatch", "hallucinated", "contradicted", "omitted")
"""How the names of metrics of pairs of statements begin."""
NO_TOPIC = "no topic"
"""Of statements without a topic, which texts that follow the template can contain."""
FEW = 10
"""Minimum number of statements for a share to be mentioned."""


class Topics:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return why_no_verdicts(runs)

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: dataset, model, role, judge, by (topic, sentiment), group, in_texts (number of statements),
        in_references, precision, recall, F1, hallucinated, contradicted, omitted, and the ends of the
        intervals of hallucinated and omitted."""
        import pandas as pd

        lines = []
        for run, cells in cells_of(runs):
            for cell in cells:
                counted, comparing = _counted(run, cell.id)
                for judge, of_judge in counted.groupby("judge", sort=False, observed=True):
                    for by in ("topic", "sentiment"):
                        for group, rows in of_judge.groupby(by, sort=True, observed=True):
                            labels = {**cell.labels, "role": cell.role, "judge": judge, "by": by}
                            found = shares(rows)
                            if judge not in comparing:
                                found["contradicted"] = float("nan")
                            lines.append({**labels, "group": str(group) or NO_TOPIC, **found})
        return pd.DataFrame(lines)

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        """How reliable the judges are."""
        return judge_notes(runs)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        """For each data set and judge matrices of generators and topics, of generators and sentiments."""
        from cfbench_core.reports.charts import heat_map

        drawn = []
        for labels, rows in groups_of(tidied(table), ("dataset", "judge", "by")):
            for name, (direction, note) in DRAWN.items():
                models = rows.drop_duplicates("model")
                groups = list(dict.fromkeys(rows["group"]))
                values = rows.pivot_table(index="model", columns="group", values=name, dropna=False)
                values = values.reindex(index=models["model"], columns=groups)
                heading = f"{name} by {labels['by']}, {labels['dataset']} ({labels['judge']})"
                called = [f"{m} ({role})" if role else m for m, role in models[["model", "role"]].to_numpy()]
                svg = heat_map(called, groups, values.to_numpy(), title=heading, direction=direction)
                drawn.append(Figure(heading, svg, note))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        """The topics and sentiments with the smallest and the largest hallucinated share, for the first judge."""
        table = tidied(table)
        if table.empty:
            return ""
        judged = table[(table["judge"] == table["judge"].iloc[0]) & (table["in_texts"] >= FEW)]
        found = []
        for by in ("topic", "sentiment"):
            rows = judged[judged["by"] == by]
            if not rows.empty:
                rows = competing(rows).sort_values("hallucinated", kind="stable")
                least, most = (rows.iloc[place] for place in (0, -1))
                if most["hallucinated"] > least["hallucinated"]:
                    found.append(f"by {by} from {_described(least)} to {_described(most)}")
        if not found:
            return ""
        return f"Statements that are not in the user's review ({table['judge'].iloc[0]}): {'; '.join(found)}."

    def text(self, table: pd.DataFrame) -> str:
        """A block of lines for each data set, judge, and kind of group; without the intervals."""
        blocks = []
        for labels, rows in groups_of(tidied(table), ("dataset", "judge", "by")):
            shown = rows[["model", "group", *SHOWN]].rename(columns={"group": labels["by"]})
            lines = shown.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
            blocks.append(f"{labels['dataset']}, verdicts of {labels['judge']}\n{lines}")
        return "\n\n".join(blocks)


def _described(row: pd.Series) -> str:
    return f"{row['hallucinated']:.0%} ({row['group']}, {row['model']} on {row['dataset']})"


def _counted(run: Run, cell: str) -> tuple[pd.DataFrame, set[str]]:
    """How the statements of a cell stand: their numbers by judge, side, topic, sentiment and user; and the judges whose
    verdicts are on pairs of statements. Users are numbers in the order of their names, because there may be many."""
    import pandas as pd

    named = pd.concat([pd.DataFrame({"unit": [], "user": []}), *run.batches(TEXTS, ["unit", "user"], [cell])])
    users = pd.Series(pd.factorize(named["user"], sort=True)[0].astype(np.int32), index=named["unit"])
    found = pd.DataFrame(columns=[*COUNTED, *NUMBERS])
    waiting: list[pd.DataFrame] = []
    columns = ["unit", "judge", "side", "topic", "sentiment", "verdict", "other"]
    comparing = _comparing(run)
    for statements in run.batches("statements.parquet", columns, [cell]):
        waiting.append(counts(statements.assign(user=statements["unit"].map(users)), COUNTED))
        comparing.update(statements["judge"][statements["other"].notna()].unique())
        if len(waiting) == WAITING:
            found, waiting = _together([found, *waiting]), []
    return _together([found, *waiting]), comparing


def _comparing(run: Run) -> set[str]:
    """The judges with a metric of pairs of statements. Verdicts on pairs that name no other statement are known from it;
    those that name one show it themselves, also for metrics of other packages."""
    named = [column.name.partition(" (") for column in run.columns]
    return {judge.removesuffix(")") for name, _, judge in named if judge and name.startswith(OF_PAIRS)}


def counts(statements: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Rows of ``statements.parquet``, with the user of each, counted: all, entailed and contradicted ones."""
    statements = statements[statements["verdict"] != "undecided"]
    judged = statements.assign(
        all=1, **{name: statements["verdict"] == name for name in ("entailed", "contradicted")}
    )
    return judged.groupby(list(by), sort=False)[NUMBERS].sum().astype(np.int32).reset_index()


def _together(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Counts of parts of the statements as those of all. Labels repeat, so they are stored as categories."""
    import pandas as pd

    parts = [part for part in parts if len(part)] or list(parts[:1])
    whole = pd.concat(parts, ignore_index=True).groupby(COUNTED, sort=False, observed=True)[NUMBERS].sum()
    found = whole.reset_index()
    return found.astype(
        {name: pd.CategoricalDtype(sorted(found[name].astype(str).unique())) for name in WORDS}
    )


def shares(counted: pd.DataFrame) -> dict[str, Any]:
    """The numbers of some rows of :func:`counts`, by side and user at least."""
    sides = {side: counted[counted["side"] == side] for side in ("text", "reference")}
    precision, recall = (_share(rows, "entailed") for rows in sides.values())
    ends = [end for rows in sides.values() for end in _interval(rows)]
    return {
        "in_texts": int(sides["text"]["all"].sum()),
        "in_references": int(sides["reference"]["all"].sum()),
        "precision": precision,
        "recall": recall,
        "F1": harmonic_mean(precision, recall),
        "hallucinated": 1 - precision,
        "hallucinated_low": ends[0],
        "hallucinated_high": ends[1],
        "contradicted": _share(sides["text"], "contradicted"),
        "omitted": 1 - recall,
        "omitted_low": ends[2],
        "omitted_high": ends[3],
    }


def _share(rows: pd.DataFrame, verdict: str) -> float:
    return float(rows[verdict].sum() / rows["all"].sum()) if len(rows) else float("nan")


def _interval(rows: pd.DataFrame) -> tuple[float, float]:
    """95% of the share that is not entailed, users drawn with replacement: a ratio of two sums over users."""
    of_users = rows.groupby("user")[NUMBERS].sum().to_numpy(np.float64)
    if len(of_users) < 2:
        return float("nan"), float("nan")
    every, entailed, _ = of_users.T
    means = resampled_means(np.column_stack([every - entailed, every]))
    return percentile_interval(means[:, 0] / means[:, 1])
