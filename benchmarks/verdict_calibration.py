"""How often claims are decided with few users, and how often against the verdict with all users.

    cfbench reproduce cfexprec table-3 table-4 figure-1 --scale paper --set data=amazon-fashion --output runs/cfexprec
    python benchmarks/verdict_calibration.py runs/cfexprec/table-3 runs/cfexprec/table-4 runs/cfexprec/figure-1

The claims of CFExpRec that all users (500) decide are decided again with random users among them, ``--draws`` times for
each number of users. ``decided`` is the share of confirmed and refuted ones (in part: other data sets were not run),
``opposite`` the share of these that all users decide the other way. The draws share users and claims share measurements, so
this is a coarse estimate. Claims about times are left out: they are those of the machine, not of the users.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from results import keep

from cfbench_core.plan import TIME, Cell
from cfbench_core.run_directory import Run
from cfbench_core.verdicts import CONFIRMED, REFUTED
from cfbench_recsys.analysis.measured_means import best_measured, measure
from cfbench_recsys.analysis.published_cfexprec import (
    AT_RANKS,
    EXPLAINERS,
    METRICS,
    claims,
    printed_means,
)
from cfbench_recsys.analysis.published_claims import claim_rows
from cfbench_recsys.analysis.shared import settings

SIZES = (5, 10, 20, 50, 100)
DECIDED = (CONFIRMED, REFUTED)
IN_PART = " in part"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", help="directories of runs of the same users")
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--keep", help="store the table under this name")
    options = parser.parse_args()
    runs = [Run(Path(name)) for name in options.runs]
    rows = list(rows_of(runs, options.draws))
    for row in rows:
        print(row)
    if options.keep:
        keep(Path(options.keep), rows, ["users"], "python benchmarks/verdict_calibration.py RUN...")


def rows_of(runs: Sequence[Run], draws: int) -> Iterator[dict[str, Any]]:
    explained = [method.values.clusters for one in settings(runs, has_no_role) for method in one.methods]
    users = np.unique(np.concatenate(explained))
    everybody = {key: word for key, word in verdicts(runs, None).items() if word in DECIDED}
    stream = np.random.default_rng(0)
    for size in SIZES:
        found = [verdicts(runs, stream.choice(users, size, replace=False)) for _ in range(draws)]
        pairs = [(word, one.get(key)) for one in found for key, word in everybody.items()]
        decided = [(word, here) for word, here in pairs if here in DECIDED]
        yield {
            "users": size,
            "claims": len(everybody),
            "draws": draws,
            "decided": round(len(decided) / len(pairs), 3),
            "opposite": round(sum(word != here for word, here in decided) / max(1, len(decided)), 3),
        }


def has_no_role(cell: Cell) -> bool:
    return not cell.role


def verdicts(runs: Sequence[Run], sample: Collection[Any] | None) -> dict[tuple[str, str], str]:
    """The verdict of each claim and variant on what was run: "confirmed" for "confirmed in part"."""
    means = best_measured(measure(runs, EXPLAINERS, METRICS, AT_RANKS, sample))
    of_users = claims()
    of_users = of_users[of_users["metric"] != TIME.name]
    return {
        (row["claim"], row["variant"]): row["verdict"].removesuffix(IN_PART)
        for row in claim_rows(of_users, printed_means(), means)
    }


if __name__ == "__main__":
    main()
