"""Analyses of the toy suite: one that answers, one that never applies, one that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from threadpoolctl import threadpool_info

from cfbench_core.analyses import Figure
from cfbench_core.config import Help, Range
from cfbench_core.reports.charts import Series, line_chart
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


@dataclass(frozen=True, kw_only=True)
class MeansConfig:
    metric: Annotated[str, Help("of which scores")] = "sum"
    most: Annotated[int, Range(minimum=1), Help("units, the first ones")] = 1000


class Means:
    """The mean of a metric, by run and explainer."""

    def __init__(self, config: MeansConfig) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        known = {column.name for run in runs for column in run.columns}
        return "" if self.config.metric in known else f"no metric {self.config.metric} was measured"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for run in runs:
            scores = run.scores[run.scores["metric"] == self.config.metric]
            for cell in run.cells():
                values = scores[scores["cell"] == cell.id]["value"].head(self.config.most)
                rows.append(
                    {"run": run.directory.name, **cell.labels, "mean": values.mean(), "units": len(values)}
                )
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        series = [
            Series(str(name), range(len(rows)), rows["mean"])
            for name, rows in table.groupby("explainer", sort=False)
        ]
        drawn = line_chart(series, title="Means", x_label="run", y_label=self.config.metric)
        return [Figure("Means by run", drawn, "Every run is a point.")]

    def words(self, table: pd.DataFrame) -> str:
        return f"The first mean is {table['mean'].iloc[0]:.2f}."


class Advice(Means):
    """The means in other words."""

    def text(self, table: pd.DataFrame) -> str:
        return f"take {table['explainer'].iloc[0]}"


class Never:
    """Of a kind that no run has."""

    def __init__(self, config: None) -> None: ...

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "it has no tides"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        raise NotImplementedError

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        raise NotImplementedError

    def words(self, table: pd.DataFrame) -> str:
        raise NotImplementedError


class Broken(Never):
    """Fails when it is asked."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return ""

    def table(self, runs: Sequence[Run]) -> Any:
        raise ZeroDivisionError("too few <units>")


class Imported(Means):
    """Without a plugin, and without options."""

    def __init__(self, config: None) -> None:
        super().__init__(MeansConfig())


class Threads(Never):
    """On how many threads it computes."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return ""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({"threads": sorted({library["num_threads"] for library in threadpool_info()})})

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        return []

    def words(self, table: pd.DataFrame) -> str:
        return f"Threads: {table['threads'].tolist()}."


SPECS = [
    ComponentSpec(
        id="toy/analysis/means",
        summary="How large are the digits?",
        target="toy_analyses:Means",
        config="toy_analyses:MeansConfig",
    ),
    ComponentSpec(id="toy/analysis/never", summary="When does the tide come?", target="toy_analyses:Never"),
]
BROKEN = ComponentSpec(id="toy/analysis/broken", summary="What if it fails?", target="toy_analyses:Broken")
ADVICE = ComponentSpec(
    id="toy/analysis/advice",
    summary="What should be taken?",
    target="toy_analyses:Advice",
    config="toy_analyses:MeansConfig",
)
THREADS = ComponentSpec(
    id="toy/analysis/threads", summary="On how many threads?", target="toy_analyses:Threads"
)
