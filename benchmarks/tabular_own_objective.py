"""How often another explainer, or a training row, is better than ALIBIC by ALIBIC's own objective.

    python benchmarks/tabular_own_objective.py
    python benchmarks/tabular_own_objective.py --sets pbc adult --factuals 50 --rivals nice sedc
    python benchmarks/tabular_own_objective.py --version after --keep docs/results/tabular-own-objective

The objective of a row c of the other class is beta ||c - x||_1 + ||c - x||_2^2 + theta ||c - p||_2^2, in coordinates of
one number per column (``explainers/prototypes.py``), with the default weights; p is the nearest training row of the other
class. The first ``--factuals`` (100) test rows are explained with the networks of CF-tabular and the types of the columns.
A rival's counterfactual counts if it is in the other class by as much as ALIBIC requires, within the limits of the factual,
a row of levels, and at the steps of the columns. ``training-row`` is the one of all training rows of the other class
that is best by the objective.

``beaten`` is the share of factuals for which some rival is better by more than one part in 1e9, or for which only a rival
has a counterfactual; ``by_row`` the same for the training rows alone, ``most`` the rival that is better most often,
``excess`` the mean of ALIBIC's objective over the best rival's where it is beaten. ``farther`` is the share of ALIBIC's
counterfactuals that are farther than the nearest training row of the other class by L2. ``objective`` and ``L2`` are means
of ALIBIC's counterfactuals; ``ms`` are CPU milliseconds per factual, of one call on one thread, the least of three.
Needs the files of CF-tabular (``CFBENCH_DATA_DIR``).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dice_against_dice_ml import our_table
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.counting import CountedModel
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights, read_weights
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, margins
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.nearest_enemy import nearest_enemies
from cfbench_tabular.explainers.other_class import OtherClass
from cfbench_tabular.explainers.prototypes import STARTS, Options
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import FloatArray, complete

SETS = [
    "adult",
    "balance-scale",
    "bcw",
    "car-evaluation",
    "chess",
    "cmsc",
    "default-of-credit-card-clients",
    "ecoli",
    "hayes-roth",
    "iris",
    "lymphography",
    "magic",
    "nursery",
    "pbc",
    "statlog-german-credit",
    "student-performance",
    "tic-tac-toe",
    "wine",
]
RIVALS = [
    "nearest-enemy",
    "nice",
    "cadex",
    "ml-explain",
    "dice",
    "growing-spheres",
    "sedc",
    "synas",
    "lore",
    "random",
]
SAME = ["dataset", "explainer", "version"]
"""The key of a row: a new measurement replaces an older one."""
TRAINING_ROW = "training-row"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--factuals", type=int, default=100)
    parser.add_argument("--explainers", nargs="+", default=["alibic"], help="alibic, alibic-nograd")
    parser.add_argument("--rivals", nargs="+", default=RIVALS)
    parser.add_argument("--version", default="after", help="a label of the rows")
    parser.add_argument("--keep", help="path of the stored table, without its suffix")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets:
        setting = Setting(name, arguments.factuals)
        rivals = {rival: setting.objective(setting.answers(rival)[0]) for rival in arguments.rivals}
        rivals[TRAINING_ROW] = setting.best_training_rows()
        for explainer in arguments.explainers:
            key = {"dataset": name, "explainer": explainer, "version": arguments.version}
            rows.append({**key, **compared(setting, explainer, rivals)})
            print("  ".join(f"{value!s:>14}" for value in rows[-1].values()), flush=True)
    if arguments.keep:
        explained = " ".join(arguments.explainers)
        command = f"python benchmarks/tabular_own_objective.py --explainers {explained} --keep NAME"
        keep(Path(arguments.keep), rows, SAME, command)


class Setting:
    """A network of CF-tabular, the factuals, and ALIBIC's objective for them.

    Attributes:
        context: the encoding, with the types of the columns, and the training rows.
        factuals: the first test rows.
    """

    def __init__(self, name: str, count: int) -> None:
        files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
        table = our_table(name, files)
        data = files.prepared_dataset(table)
        types = {column.name: column for column in table.columns}
        columns = tuple(replace(types[own.name], levels=own.levels) for own in data.table.columns)
        encoding = replace(data.encoding, columns=columns)
        self.model: MLP = from_weights(read_weights(files.network))
        background, labels = data.sample("train")
        self.context = Context(encoding, background, lambda unit: generator("benchmark", unit), labels=labels)
        vectors = data.sample("test")[0][:count]
        classes = predicted_classes(self.model, vectors)
        self.factuals = Factuals(vectors, classes, tuple(map(str, range(len(vectors)))))
        self.known = predicted_classes(self.model, background)
        self.space = Space.of_columns(encoding, background, self.known, Options.categories)
        self.starts, self.points = self.space.points(vectors), self.space.points(background)
        # As ALIBIC asks for them: of equally near rows, a k-d tree returns another one for another number of rows.
        nearest = OtherClass(self.points, self.known).nearest_rows(self.starts, classes, STARTS)
        self.prototypes = nearest[:, 0]

    def answers(self, name: str, repeats: int = 1, **options: Any) -> tuple[FloatArray, float, float]:
        """(n, d) the counterfactuals of an explainer, CPU milliseconds and model queries per factual."""
        spec = installed().find("tabular", "explainer", name).spec
        explainer = resolve(spec.target)(resolve(str(spec.config))(**options))
        times = []
        for _ in range(repeats):
            counted: Any = CountedModel(self.model, Chunk.queries)
            started = time.process_time()
            found = Explanation.of(explainer.counterfactuals(counted, self.factuals, self.context))
            times.append(1e3 * (time.process_time() - started) / len(self.factuals))
        return found.stacked()[:, 0], min(times), counted.queries / len(self.factuals)

    def objective(self, found: FloatArray) -> FloatArray:
        """(n,) the objective of counterfactuals (n, d); infinite where one is missing or not feasible."""
        encoding, factuals = self.context.encoding, self.factuals
        low, high = encoding.allowed(factuals.vectors)
        with np.errstate(invalid="ignore"):
            good = complete(found) & ((found >= low - 1e-9) & (found <= high + 1e-9)).all(axis=1)
        rows = np.where(good[:, None], found, factuals.vectors)
        nearest = encoding.limits(factuals.vectors).projected(rows)
        good &= np.isclose(rows, nearest, rtol=0, atol=1e-9).all(axis=1)
        good &= margins(self.model, nearest, factuals.classes) > max(Options.kappa, CLEAR_MARGIN)
        return np.where(good, self._terms(self.space.points(nearest)), np.inf)

    def best_training_rows(self) -> FloatArray:
        """(n,) the smallest objective of a training row of the other class that is within the limits."""
        low, high = self.context.encoding.allowed(self.factuals.vectors)
        found = np.full(len(self.factuals), np.inf)
        for place, label in enumerate(self.factuals.classes):
            enemies = self.context.background[self.known != label]
            inside = ((low[place] <= enemies) & (enemies <= high[place])).all(axis=1)
            points = self.points[self.known != label][inside]
            if len(points):
                found[place] = self._terms(points, slice(place, place + 1)).min()
        return found

    def _terms(self, points: FloatArray, of: slice = slice(None)) -> FloatArray:
        away, toward = points - self.starts[of], points - self.prototypes[of]
        terms = Options.beta * np.abs(away) + away**2 + Options.theta * toward**2
        summed: FloatArray = terms.sum(axis=1)
        return summed


def compared(setting: Setting, explainer: str, rivals: dict[str, FloatArray]) -> dict[str, Any]:
    """The columns of the table for an explainer, from the objectives (n,) of the rivals."""
    found, milliseconds, queries = setting.answers(explainer, repeats=3)
    own, others = setting.objective(found), np.stack(list(rivals.values()))
    limit = np.where(np.isfinite(own), own - 1e-9 * (1 + own), np.inf)
    better = others < limit
    beaten = better.any(axis=0)
    given = complete(found)
    nearest = nearest_enemies(setting.model, setting.factuals, setting.context)
    distances, plain = (
        np.linalg.norm(rows - setting.factuals.vectors, axis=1)[given] for rows in (found, nearest)
    )
    both = beaten & np.isfinite(own)
    excess = own[both] / others[:, both].min(axis=0) - 1
    return {
        "factuals": len(own),
        "valid": round(float(np.isfinite(own).mean()), 3),
        "beaten": round(float(beaten.mean()), 3),
        "by_row": round(float(better[list(rivals).index(TRAINING_ROW)].mean()), 3),
        "most": list(rivals)[int(better.sum(axis=1).argmax())] if beaten.any() else "",
        "excess": round(float(excess.mean()), 3) if both.any() else 0.0,
        "farther": round(float((distances > plain + 1e-9).mean()), 3),
        "objective": round(float(own[np.isfinite(own)].mean()), 4),
        "L2": round(float(distances.mean()), 3),
        "L2_nearest": round(float(plain.mean()), 3),
        "queries": round(queries, 1),
        "ms": round(milliseconds, 2),
    }


if __name__ == "__main__":
    main()
