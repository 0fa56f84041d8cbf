"""Tries to make cfbench lose results, show wrong numbers, crash, or leave something behind; prints a table.

Each part is a module of this folder: it kills processes and machines of a cluster, damages files, writes bad configurations
and data, installs hostile plugins, names things badly, or starves the system. It yields trials; a trial with a problem
is printed at once and makes the exit code 1.

    python tests/chaos/run.py                            every part, its minimum of trials, at most 15 minutes
    python tests/chaos/run.py --part kills --trials 5    one part, shortly
    python tests/chaos/run.py --minutes 240 --seed 7     for hours, with other random choices
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from trial import Budget

from cfbench_core.environment import capture

PARTS = {
    "bad_inputs": 2,
    "starved": 12,
    "damages": 8,
    "hostile_names": 10,
    "hostile_plugins": 14,
    "kills": 14,
    "lost_machines": 8,
}
"""The parts, with shares of the time by what their minima cost; what a part does not need is left to the following ones."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a part, its trials, and how long they took."""

    part: str
    tried: int
    survived: int
    seconds: float


def main() -> int:
    options = _parser().parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    rows = []
    waiting = list(options.part or PARTS)
    while waiting:
        share = PARTS[waiting[0]] / sum(PARTS[part] for part in waiting)
        module = importlib.import_module(waiting.pop(0))
        seconds = share * (deadline - time.monotonic())
        rows.append(_run(module, options.trials, options.seed, seconds, options.until_deadline))
    _show(rows)
    if options.output:
        _write(rows, options.output)
    return int(any(row.survived < row.tried for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="run this part only; may be given again"
    )
    parser.add_argument("--trials", type=int, help="of each part, in place of its minimum")
    parser.add_argument("--minutes", type=float, default=15, help="after which no new trial begins")
    parser.add_argument(
        "--until-deadline", action="store_true", help="repeat the parts until the minutes are over"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random choices")
    parser.add_argument("--output", type=Path, help="write the table to this CSV file as well")
    return parser


def _run(module: ModuleType, trials: int | None, seed: int, seconds: float, until_deadline: bool) -> Row:
    """Runs one part; stops between two trials once its seconds are over."""
    started = time.monotonic()
    tried = survived = 0
    for round_seed in itertools.count(seed):
        folder = Path(tempfile.mkdtemp(prefix=f"cfbench-chaos-{module.__name__}-"))
        try:
            for trial in module.trials(Budget(folder, round_seed, trials or module.MINIMUM)):
                tried += 1
                survived += not trial.problem
                if trial.problem:
                    print(f"{module.NAME}: {trial.case} (seed {round_seed}): {trial.problem}", flush=True)
                if tried % 25 == 0:
                    print(f"{module.NAME}: {tried} tried, {survived} survived", file=sys.stderr, flush=True)
                if time.monotonic() - started > seconds:
                    break
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not until_deadline or time.monotonic() - started > seconds:
            break
    return Row(module.NAME, tried, survived, time.monotonic() - started)


def _show(rows: list[Row]) -> None:
    width = max(len(row.part) for row in rows)
    print(f"\n{'part':{width}}  tried  survived  seconds")
    for row in rows:
        print(f"{row.part:{width}}  {row.tried:>5}  {row.survived:>8}  {row.seconds:>7.0f}")


def _write(rows: list[Row], path: Path) -> None:
    """The table as ``path``, and what produced it as JSON under the same name."""
    known = capture(Path(__file__).parent)
    commit = known["git"]["commit"][:9] if known["git"] else ""
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["part", "tried", "survived", "seconds", "commit"])
        writer.writerows([row.part, row.tried, row.survived, f"{row.seconds:.0f}", commit] for row in rows)
    about = {
        "command": "python tests/chaos/run.py " + " ".join(sys.argv[1:]),
        "commit": known["git"],
        "hardware": known["hardware"],
        "versions": known["distributions"],
    }
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
