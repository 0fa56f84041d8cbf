"""Time per counterfactual at an earlier commit and now: ratios of CPU times that were measured alternately.

    git worktree add ../earlier 756defc7
    python benchmarks/tabular_speed_change.py ../earlier
    python benchmarks/tabular_speed_change.py ../earlier --keep docs/results/tabular-speed-change

A process with the sources of the checkout and one with those of this repository load the networks and the rows of CF-tabular
(``CFBENCH_DATA_DIR``). Then each explains the same ``--factuals`` training rows (100, then 1,000), one process after the
other, ``--repeats`` times in turn (three times where that takes more than ``SLOW`` seconds), the first of each pair in
turn as well; one thread. A time is the median of as many calls as fit into ``SECONDS``. ``ms_before`` and ``ms`` are the
smallest CPU milliseconds per row, ``ratio`` is the median of the ratios of the pairs, with the smallest and the largest:
what other programs on the machine change, they change for both of a pair. ``evaluations`` is the number of model
queries per row.

An explainer may have options, those in ``now`` for the present commit alone: where it does more by default, it does the
former work with ``'{name: ml-explain, now: {ranges: false}, label: ml-explain without ranges}'``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import yaml

HERE = Path(__file__).resolve().parents[1]

WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tabular_explainers import *

def loaded(name):
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    prepare = getattr(files, "prepared_dataset", None) or files.problem
    data = prepare(our_table(name, files))
    weights = read_weights(files.network)
    if "from_weights" in globals():
        model = from_weights(weights)
    else:
        model = MLP(MLPConfig())
        model.load_state(weights)
    background, labels = data.sample("train")
    return model, background, Context(
        data.encoding, background, lambda unit: generator("benchmark", unit), labels=labels
    )

name, setting = None, None
for line in sys.stdin:
    task = json.loads(line)
    if task["dataset"] != name:
        name = task["dataset"]
        setting = loaded(name)
    model, background, context = setting
    explainer = made(**task["options"])
    rows = [timed(explainer, model, background[: task["factuals"]], context) for _ in range(task["calls"])]
    rows[0]["ms"] = float(np.median([row["ms"] for row in rows]))
    print(json.dumps(rows[0]), flush=True)
"""
SECONDS, SLOW, MOST_CALLS = 0.15, 2.0, 25


class Side:
    """A process with the sources of a checkout."""

    def __init__(self, checkout: Path) -> None:
        sources = [str(one / "src") for one in sorted(checkout.glob("cfbench-*")) if (one / "src").is_dir()]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(checkout / "benchmarks")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def timed(self, task: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"calls": 1, **task}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{task}: the process ended with exit status {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("earlier", type=Path, help="a checkout of the earlier commit")
    parser.add_argument("--sets", nargs="+", default=["magic", "adult"])
    parser.add_argument("--explainers", nargs="+", help="all of tabular_explainers.py unless given")
    parser.add_argument("--factuals", nargs="+", type=int, default=[100, 1_000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    from results import keep
    from tabular_explainers import EXPLAINERS

    earlier, now = Side(arguments.earlier.resolve()), Side(HERE)
    rows = []
    for dataset, explainer, factuals in product(
        arguments.sets, arguments.explainers or EXPLAINERS, arguments.factuals
    ):
        options = yaml.safe_load(explainer)
        options = {"name": options} if isinstance(options, str) else dict(options)
        label, only_now = options.pop("label", options["name"]), options.pop("now", {})
        task = {"dataset": dataset, "explainer": label, "factuals": factuals}
        tasks = [{**task, "options": {**options, **one}} for one in ({}, only_now)]
        rows.append({**task, **compared(earlier, now, tasks, arguments.repeats)})
        print("  ".join(f"{value!s:>15}" for value in rows[-1].values()), flush=True)
        if arguments.keep:
            command = "python benchmarks/tabular_speed_change.py CHECKOUT-OF-756defc7"
            keep(Path(arguments.keep), rows, ["dataset", "explainer", "factuals"], command)


def compared(earlier: Side, now: Side, tasks: Sequence[Mapping[str, Any]], repeats: int) -> dict[str, Any]:
    """The times of two tasks, that of the earlier commit and that of the present one."""
    first = now.timed(tasks[1])
    seconds = first["ms"] * tasks[1]["factuals"] / 1e3
    calls = max(1, min(MOST_CALLS, int(SECONDS / max(seconds, 1e-4))))
    task_before, task = ({**one, "calls": calls} for one in tasks)
    pairs = []
    for number in range(min(repeats, 3) if seconds > SLOW else repeats):
        if number % 2:
            later = now.timed(task)
            pairs.append((earlier.timed(task_before), later))
        else:
            pairs.append((earlier.timed(task_before), now.timed(task)))
    ratios = sorted(before["ms"] / max(after["ms"], 1e-4) for before, after in pairs)
    before, after = pairs[0]
    return {
        "ms_before": round(min(one["ms"] for one, _ in pairs), 4),
        "ms": round(min(one["ms"] for _, one in pairs), 4),
        "ratio": round(median(ratios), 2),
        "least": round(ratios[0], 2),
        "most": round(ratios[-1], 2),
        **{
            f"{name}{when}": row[name]
            for name in ("evaluations", "valid", "L2")
            for when, row in (("_before", before), ("", after))
        },
    }


if __name__ == "__main__":
    main()
