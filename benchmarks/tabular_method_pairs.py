"""The ten algorithms of CF-tabular as printed, as their authors published them, and as cfbench improves them.

    cfbench run cfbench-tabular/src/cfbench_tabular/replications/cf_tabular_as_published.yaml --output PUBLISHED
    cfbench run cfbench-tabular/src/cfbench_tabular/replications/cf_tabular.yaml --output OURS
    python benchmarks/tabular_method_pairs.py PUBLISHED OURS --keep docs/results/replication-cf-tabular-pairs

Only factuals that both runs explain count, so that both numbers of a pair are about the same rows. ``valid`` and
``realistic`` are shares of them; L2 and sparsity (the share of unchanged encoded columns) are means over those for
which both methods find a valid counterfactual; ``ms`` is the mean time. What is printed is about all 22 data sets
(figures 6 and 7).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from results import keep

from cfbench_core.run_directory import Run
from cfbench_tabular.analysis.printed_numbers import ALGORITHMS, printed_numbers

UNIT = ["dataset", "unit"]
SHARES = {"validity": ("valid", "figure 6"), "realistic": ("realistic", "figure 7")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("published", help="run with the presets as-published")
    parser.add_argument("ours", help="run with the defaults")
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = list(pairs(Run(arguments.published), Run(arguments.ours)))
    print(pd.DataFrame(rows).to_string(index=False))
    if arguments.keep:
        keep(
            Path(arguments.keep),
            rows,
            ["explainer"],
            "python benchmarks/tabular_method_pairs.py PUBLISHED OURS",
        )


def pairs(published: Run, ours: Run) -> Iterator[dict[str, Any]]:
    """A row for each algorithm."""
    theirs = printed_numbers().query("group == 'total'").set_index(["item", "explainer"])["exact"]
    values = {"published": by_unit(published), "ours": by_unit(ours)}
    both_ran = [set(frame.index.get_level_values("explainer")) for frame in values.values()]
    for explainer in (name for name in ALGORITHMS if all(name in names for names in both_ran)):
        one, other = (frame.xs(explainer, level="explainer") for frame in values.values())
        common = one.index.intersection(other.index)
        sides = {"published": one.loc[common], "ours": other.loc[common]}
        row: dict[str, Any] = {"explainer": explainer, "factuals": len(common)}
        for metric, (name, item) in SHARES.items():
            row[f"{name} CF-tabular"] = round(float(theirs.get((item, explainer), float("nan"))), 3)
            row |= {f"{name} {side}": round(float(frame[metric].mean()), 3) for side, frame in sides.items()}
        both = (sides["published"]["validity"] == 1) & (sides["ours"]["validity"] == 1)
        row["both"] = int(both.sum())
        for metric, digits in (("L2", 3), ("sparsity", 3)):
            row |= {
                f"{metric} {s}": round(float(f.loc[both, metric].mean()), digits) for s, f in sides.items()
            }
        row |= {f"ms {side}": round(1e3 * float(frame["time"].mean()), 2) for side, frame in sides.items()}
        yield row


def by_unit(run: Run) -> pd.DataFrame:
    """The metrics by (explainer, dataset, unit), and the time."""
    index = ["explainer", *UNIT]
    scores = run.scores.pivot(index=index, columns="metric", values="value")
    return scores.assign(time=run.costs.groupby(index)["elapsed_seconds"].mean())


if __name__ == "__main__":
    main()
