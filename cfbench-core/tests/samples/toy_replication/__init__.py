"""A paper about digits: its printed means, and the studies that measure them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec
from cfbench_core.verdicts import Interval, number_verdict

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

SPECS = [
    ComponentSpec(
        id="toy/analysis/printed",
        summary="Printed means next to ours",
        target=f"{__name__}:Printed",
    ),
    ComponentSpec(
        id="toy/replication/digits",
        summary="A paper about digits",
        target=f"{__name__}:digits",
        papers=("digits2020",),
    ),
    ComponentSpec(
        id="toy/replication/broken",
        summary="What is no replication",
        target=f"{__name__}:broken",
        papers=("digits2020",),
    ),
]

PRINTED = {"table-1": 5.5, "table-2": 100.0}
"""The sums of the digits of 0, 2, ..., 38 have the mean 5.5; 100 is a misprint."""


class Printed:
    def __init__(self, config: None = None) -> None: ...

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return ""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for item, printed in PRINTED.items():
            scores = pd.concat([run.scores for run in runs])
            ours = float(scores.loc[scores["metric"] == "sum", "value"].mean())
            word, reason = number_verdict(printed, Interval(ours))
            rows.append({"item": item, "printed": printed, "ours": ours, "verdict": word, "reason": reason})
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> Sequence[Any]:
        return []

    def words(self, table: pd.DataFrame) -> str:
        return f"{len(table)} numbers were compared."


def digits(config: None = None) -> Replication:
    return Replication(
        title="Digits",
        paper="digits2020",
        analysis="printed",
        seeds=True,
        studies=(
            ReplicationStudy(
                name="sums",
                config="toy_replication:study.yaml",
                changes={"small": (), "paper": ("data.count=40",)},
                minutes={"small": 90.0},
            ),
            ReplicationStudy(
                name="failing",
                config="toy_replication:study.yaml",
                changes={"small": ("models={name: times, factor: 30}",)},
            ),
            ReplicationStudy(
                name="unreadable",
                config="toy_replication:study.yaml",
                changes={"small": ("models=no-such-model",), "paper": ()},
            ),
        ),
        items=(
            PublishedItem(name="table-1", caption="mean sum", studies=("sums",)),
            PublishedItem(name="table-2", caption="a misprint", studies=("sums",)),
            PublishedItem(name="table-3", caption="large numbers", studies=("failing",), rows=("table-1",)),
            PublishedItem(
                name="table-4",
                caption="an unknown model",
                studies=("unreadable",),
                scales=("small",),
                reason="the model is of the small study",
            ),
            PublishedItem(name="figure-1", caption="a photograph", reason="nothing is measured"),
        ),
    )


def broken(config: None = None) -> Any:
    return "no replication"
