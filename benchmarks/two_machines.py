"""One paper reproduced on two machines: which numbers and verdicts differ?

    cfbench analyse reproduction RUN ... --set paper=cfexprec --format csv > here.csv   # on each machine
    python benchmarks/two_machines.py here.csv there.csv [--keep docs/results/two-machines]

Runs on one kind of processor give the same numbers (``reruns.py``). Another kind rounds matrix products in another way,
so that training ends at other weights. Times and claims are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from results import keep

CELL = ["item", "dataset", "model", "level", "format", "scope", "k", "rank", "metric", "explainer", "variant"]
GROUP = ["item", "dataset", "model"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs=2, type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    rows = differences(*(pd.read_csv(path) for path in arguments.tables))
    print(pd.DataFrame(rows).to_string())
    if arguments.keep:
        keep(arguments.keep, rows, GROUP, "python benchmarks/two_machines.py HERE THERE")


def differences(here: pd.DataFrame, there: pd.DataFrame) -> list[dict[str, Any]]:
    """For each item, data set and model: how many numbers and verdicts differ, and how far the numbers do."""
    measured = [
        table[table["ours"].notna() & (table["item"] != "claims") & (table["metric"] != "time")]
        for table in (here, there)
    ]
    both = measured[0].merge(measured[1], on=CELL, suffixes=("_here", "_there"), validate="one_to_one")
    rows = []
    for names, group in both.groupby(GROUP):
        distance = (group["ours_here"] - group["ours_there"]).abs()
        relative = distance / group["ours_there"].abs().clip(lower=1.0)
        other = group["verdict_here"] != group["verdict_there"]
        numbers = {"numbers": len(group), "differing": int((distance > 0).sum())}
        furthest = {"largest": distance.max().round(4), "largest relative": relative.max().round(4)}
        rows.append(
            {**dict(zip(GROUP, names, strict=True)), **numbers, **furthest, "verdicts": int(other.sum())}
        )
    return rows


if __name__ == "__main__":
    main()
