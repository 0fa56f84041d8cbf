"""``reliability``: how far the judges of these runs agree with people, on every label set on which they were measured.

The numbers are those of ``cfbench meta-evaluate``: shipped with the package for judges that need no large model, or
your own (``--store``). The judge is evaluated by StEnt-P, or by St2Exp-P if it judges whole documents. ``nearest`` is
the row that tables quote: your own labelled texts, otherwise the label set whose texts are most like statements of
explanations (``meta_evaluation/reliability.py``). A judge that was never measured has one row without numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.analyses import Figure
from cfbench_core.config import ConfiguredComponent, Document, Help, OfKind, decode_settings
from cfbench_core.registry import installed
from cfbench_core.specs import ComponentSpec
from cfbench_text.meta_evaluation.reliability import LEVEL, measurements_of

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/analysis/reliability",
    summary="How far do the judges agree with people?",
    target=f"{__name__}:JudgeReliability",
)


@dataclass(frozen=True, kw_only=True)
class _Judges:
    """The part of a configuration that is read: the data of a run need not be here any more."""

    judges: Annotated[tuple[ConfiguredComponent, ...], OfKind("judge"), Help("of the run")]


class JudgeReliability:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        judged = any(column.note for run in runs for column in run.columns)
        return "" if judged else "no metric rests on a judge"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: judge, labelset, rating, metric, n, auc, auc_low, auc_high, nearest, reliable, commit."""
        import pandas as pd

        lines: list[dict[str, Any]] = []
        for label, judge in judges_of(runs).items():
            known = measurements_of(judge)
            for place, row in enumerate(known):
                values = {name: float(row[name]) for name in ("auc", "auc_low", "auc_high")}
                about = {"labelset": row["labelset"], "rating": row["rating"], "metric": row["metric"]}
                shown = {
                    "nearest": place == 0,
                    "reliable": values["auc_low"] >= LEVEL,
                    "commit": row["commit"],
                }
                lines.append({"judge": label, **about, "n": int(row["n"]), **values, **shown})
            if not known:
                lines.append({"judge": label, "nearest": True, "reliable": False})
        names = (
            "judge",
            "labelset",
            "rating",
            "metric",
            "n",
            "auc",
            "auc_low",
            "auc_high",
            "nearest",
            "reliable",
        )
        return pd.DataFrame(lines, columns=[*names, "commit"])

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.reports.charts import Bar, bar_chart

        bars = [
            Bar(f"{row['judge']} on {row['labelset']}", row["auc"], row["auc_low"], row["auc_high"])
            for row in table[table["auc"].notna()].to_dict("records")
        ]
        if not bars:
            return []
        title = "Agreement of judges with people"
        note = f"0.5 is chance; a judge counts as reliable if its interval is not below {LEVEL}."
        return [Figure(title, bar_chart(bars, title=title, x_label="AUC", direction="higher"), note)]

    def words(self, table: pd.DataFrame) -> str:
        """Of each judge the nearest measurement."""
        found = []
        for row in table[table["nearest"]].to_dict("records"):
            if row["auc"] != row["auc"]:
                found.append(f"Judge {row['judge']} was never measured.")
                continue
            interval = f"{row['auc']:.2f} [{row['auc_low']:.2f}, {row['auc_high']:.2f}]"
            what = "reliable" if row["reliable"] else f"not shown to be reliable (at least {LEVEL})"
            found.append(f"Judge {row['judge']} has AUC {interval} on {row['labelset']}: {what}.")
        return " ".join(found)


def judges_of(runs: Sequence[Run]) -> dict[str, ConfiguredComponent]:
    """The judges of runs by their labels, as their configurations have them; of two of one label the later.

    Raises:
        UserError: if a configuration cannot be understood any more, for example because a judge is not installed.
    """
    found: dict[str, ConfiguredComponent] = {}
    for run in runs:
        document = Document.of({"judges": run.config["judges"]}, str(run.directory / "config.yaml"))
        decoded: _Judges = decode_settings(document, _Judges, "text", installed())
        found |= {judge.label: judge for judge in decoded.judges}
    return found
