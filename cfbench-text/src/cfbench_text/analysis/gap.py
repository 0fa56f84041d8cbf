"""``gap``: do generators that are similar to the reference also write true statements?

After Statement factuality, section VI ("The Factuality Gap"). Surface measures (BLEU, ROUGE; BERTScore and STS if the run
has them) against factuality measures (F1 of St2Exp, StEnt, StMatch for each judge). ``level`` distinguishes three kinds
of rows:

- ``model``: the means of a generator, with r and rho over its own rows;
- ``rows``: r and rho over all rows of the competitors of a data set together;
- ``models``: r, rho and tau over the means of the competitors, for at least three, without intervals.

r is Pearson's, rho Spearman's (average ranks), tau Kendall's tau-b. Controls are plotted and have their own
correlations, but are excluded from correlations over several models: the reference scores 1 on both axes by
construction, and shuffled references near 0, so that any two measures would agree. Rows that lack one of the two values
are excluded (``n``). Intervals of r over rows are bootstraps over users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.analyses import Figure
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import percentile_interval, rank_agreement, resampled_means
from cfbench_text.analysis.shared import cells_of, groups_of, judge_notes, tidied, written

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run, RunCell
    from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/analysis/gap",
    summary="Do generators that are similar to the reference also have a high precision?",
    target=f"{__name__}:Gap",
    papers=("statementfactuality",),
)


SURFACE = ("BLEU", "ROUGE-L", "BERTScore-F", "STS", "ROUGE-1", "ROUGE-2")
FACTUALITY = ("StEnt-F1", "St2Exp-F1", "StMatch-F1")
PAIR = ["dataset", "surface", "factuality"]
LEAST = 3


class Gap:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if not written(runs):
            return "no texts were written"
        both = any(all(_measured(run)) for run in runs)
        return (
            "" if both else "needs a metric of surface (BLEU, ROUGE, ...) and one of factuality (StEnt, ...)"
        )

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: level, dataset, model, role, surface, factuality, x (mean of the first), y, r, r_low, r_high, rho,
        tau, n (rows, or models)."""
        import pandas as pd

        return pd.DataFrame(list(_rows_of(runs)))

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        """How reliable the judges are."""
        return judge_notes(runs)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.reports.charts import Point, scatter_chart

        drawn = []
        for labels, rows in groups_of(tidied(table), PAIR):
            points = [
                Point(row["model"], row["x"], row["y"], role=row["role"])
                for row in rows[rows["level"] == "model"].to_dict("records")
            ]
            heading = f"{labels['factuality']} against {labels['surface']}, {labels['dataset']}"
            svg = scatter_chart(
                points,
                title=heading,
                x_label=labels["surface"],
                y_label=labels["factuality"],
                x_direction="higher",
                y_direction="higher",
                front=False,
            )
            notes = [_correlation(row) for row in rows[rows["level"] != "model"].to_dict("records")]
            drawn.append(Figure(heading, svg, " ".join(filter(None, notes))))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        """Of the first pair of measures: the ranges of both, the lowest baseline, and the correlations."""
        for labels, rows in groups_of(tidied(table), PAIR):
            competitors = rows[(rows["level"] == "model") & (rows["role"] == "")].dropna(subset=["x", "y"])
            if competitors.empty:
                continue
            found = [
                f"On {labels['dataset']} {_range(competitors['x'])} {labels['surface']} goes with "
                f"{_range(competitors['y'])} {labels['factuality']}."
            ]
            for row in rows[rows["role"] == "baseline"].sort_values("y").head(1).to_dict("records"):
                found.append(f"The baseline {row['model']} has {row['x']:.3f} and {row['y']:.3f}.")
            found += [_correlation(row) for row in rows[rows["level"] != "model"].to_dict("records")]
            return " ".join(filter(None, found))
        return ""


def _range(values: pd.Series) -> str:
    low, high = f"{values.min():.3f}", f"{values.max():.3f}"
    return low if low == high else f"{low} to {high}"


def _correlation(row: Mapping[Any, Any]) -> str:
    if not np.isfinite(row["r"]):
        return ""
    interval = f" [{row['r_low']:.2f}, {row['r_high']:.2f}]" if np.isfinite(row["r_low"]) else ""
    what = "models" if row["level"] == "models" else "rows of the competitors"
    return f"Over {row['n']:,} {what} r = {row['r']:.2f}{interval}, rho = {row['rho']:.2f}."


def _measured(run: Run) -> tuple[list[str], list[str]]:
    """The columns of surface and of factuality that a run has, the latter once for each judge."""
    names = [column.name for column in run.columns]
    surface = [name for name in SURFACE if name in names]
    return surface, [name for wanted in FACTUALITY for name in names if name.startswith(f"{wanted} (")]


def _rows_of(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    import pandas as pd

    surface, factuality = ([*dict.fromkeys(n for run in runs for n in _measured(run)[k])] for k in (0, 1))
    wide = pd.concat([_values(run, cells, [*surface, *factuality]) for run, cells in cells_of(runs)])
    for dataset, of_data in wide.groupby("dataset", sort=False):
        for y in factuality:
            for x in surface:
                both = of_data[of_data[[x, y]].notna().all(axis=1)]
                if not both.empty:
                    for row in _pair(both.rename(columns={x: "x", y: "y"})):
                        yield {
                            "level": row["level"],
                            "dataset": dataset,
                            "surface": x,
                            "factuality": y,
                            **row,
                        }


def _values(run: Run, cells: Sequence[RunCell], metrics: Sequence[str]) -> pd.DataFrame:
    """A row for each text: dataset, model, role, user, and a column for each metric."""
    import pandas as pd

    index = ["dataset", "model", "unit", "user"]
    parts = []
    for cell in cells:
        scores = run.rows("scores.parquet", cell=[cell.id], metric=metrics)
        own = scores.pivot(index=index, columns="metric", values="value")
        parts.append(own.reindex(columns=list(metrics)).reset_index().assign(role=cell.role))
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*index, "role", *metrics])


def _pair(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of the table for two measures, columns x and y."""
    means = []
    for (model, role), own in rows.groupby(["model", "role"], sort=False):
        mean = {"model": model, "role": role, "x": float(own["x"].mean()), "y": float(own["y"].mean())}
        means.append(mean)
        yield {"level": "model", **mean, **_over_rows(own)}
    competitors = rows[rows["role"] == ""]
    no_model = {"model": "", "role": "", "x": float("nan"), "y": float("nan")}
    yield {"level": "rows", **no_model, **_over_rows(competitors)}
    centres = np.array([(mean["x"], mean["y"]) for mean in means if not mean["role"]]).reshape(-1, 2)
    over = correlations(*centres.T) if len(centres) >= LEAST else (float("nan"),) * 3
    r, rho, tau = over
    few = {"r_low": float("nan"), "r_high": float("nan")}
    yield {"level": "models", **no_model, "r": r, **few, "rho": rho, "tau": tau, "n": len(centres)}


def _over_rows(rows: pd.DataFrame) -> dict[str, Any]:
    x, y = rows["x"].to_numpy(np.float64), rows["y"].to_numpy(np.float64)
    r, rho, tau = correlations(x, y)
    low, high = interval_of_r(x, y, rows["user"].to_numpy()) if np.isfinite(r) else (np.nan, np.nan)
    return {"r": r, "r_low": low, "r_high": high, "rho": rho, "tau": tau, "n": len(rows)}


def correlations(x: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """r, rho and tau; NaN where there are fewer than three points or one side does not vary."""
    from scipy import stats

    if len(x) < LEAST or _constant(x) or _constant(y):
        return (float("nan"),) * 3
    rho = float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1])
    return float(np.corrcoef(x, y)[0, 1]), rho, rank_agreement(x, y)


def _constant(values: FloatArray) -> bool:
    """But for the last bits: the reference's own scores are 1 in more than one way of adding."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max(initial=0.0))


def interval_of_r(x: FloatArray, y: FloatArray, users: Any) -> tuple[float, float]:
    """95% of Pearson's r, users drawn with replacement; r of a resample follows from its mean moments."""
    x, y = x - x.mean(), y - y.mean()  # for the digits; r does not see it
    moments = resampled_means(np.column_stack([x, y, x * x, y * y, x * y]), clusters=users)
    mean_x, mean_y, xx, yy, xy = moments.T
    spread = (xx - mean_x**2) * (yy - mean_y**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.where(spread > 1e-24, (xy - mean_x * mean_y) / np.sqrt(spread), np.nan)
    known = r[np.isfinite(r)]
    if len(known) < 2 or len(set(users)) < 2:
        return float("nan"), float("nan")
    return percentile_interval(known)
