"""LORE next to the code that its authors published, on the same networks and rows.

    pip install deap networkx pydot pydotplus
    python benchmarks/authors_tabular_lore.py CHECKOUT --keep docs/results/authors-tabular-searches

CHECKOUT is a copy of https://github.com/riccotti/LORE. Its ``lore.explain`` is called as in its experiments (genetic
neighbourhood of 1,000 rows, ten generations), with its program YaDT for the tree, which must be executable. It reads
numbers in the units of the table and categories as texts. Random numbers are those that ours has for the same row, in
the row ``authors``, and others in ``authors, other draws``: what deap and NumPy draw is read from the stream of the row,
and the values that mutations may take are drawn as ours are.

The code explains by its shortest rules; on both sides one row that satisfies one of them is chosen in the same way
(``PublishedSearch.chosen``). Where the code ends with an error it has no answer. imbalanced-learn, which other
neighbourhoods need, is left out.

``same neighbours`` is the share of the factuals for which both sides learn their trees from the same rows, ``same rules``
the share with the same shortest rules. Other columns: see ``authors_tabular_rows.py``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import tempfile
import time
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from authors_tabular_rows import (
    SEARCHES,
    SETS,
    Answers,
    Case,
    case,
    explainer,
    our_answers,
    silent,
    stored,
    table_rows,
)
from sklearn.preprocessing import LabelEncoder

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.lore_deltas import Delta, shortest_deltas
from cfbench_tabular.explainers.lore_published import Draws, PublishedSearch
from cfbench_tabular.table import FloatArray, IntArray

CLASS = "class"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a copy of the authors' repository")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--factuals", type=int, default=20)
    parser.add_argument("--keep", default="", help="where to store the table, without its ending")
    options = parser.parse_args()
    theirs = Theirs(options.checkout.resolve())
    for name in options.sets:
        stored(options.keep, compared(case(name, options.factuals), theirs), SEARCHES)


@dataclass(frozen=True)
class Explained:
    """Of one factual: the neighbours, and the shortest rules as conditions by column; None where the code fails."""

    neighbours: FloatArray | None
    deltas: list[Delta]

    def rules(self) -> frozenset[Any]:
        """With thresholds of six digits, of which YaDT prints about as many."""
        return frozenset(
            frozenset((column, _rounded(one)) for column, one in delta.conditions.items())
            for delta in self.deltas
        )


def _rounded(condition: tuple[float, float] | int) -> Any:
    return tuple(f"{end:.5g}" for end in condition) if isinstance(condition, tuple) else condition


def compared(given: Case, theirs: Theirs) -> list[dict[str, Any]]:
    answers = {"paper": our_answers(given, "lore")}
    found: dict[str, list[Explained]] = {}
    for row, names in (("authors", ()), ("authors, other draws", ("other",))):
        started = time.perf_counter()
        with silent(), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # deap: a class is created again
            found[row] = [theirs.explained(given, place, *names) for place in range(len(given.factuals))]
        seconds = (time.perf_counter() - started) / len(given.factuals)
        answers[row] = Answers(
            np.stack([row_of(given, place, one) for place, one in enumerate(found[row])]), seconds
        )
    ours = [our_explanation(given, place) for place in range(len(given.factuals))]
    rows = table_rows(given, "lore", answers)
    for row in rows:
        if row["row"] in found:
            pairs = list(zip(ours, found[row["row"]], strict=True))
            same = [same_rows(one.neighbours, two.neighbours) for one, two in pairs]
            row["same neighbours"] = round(float(np.mean(same)), 4)
            row["same rules"] = round(float(np.mean([one.rules() == two.rules() for one, two in pairs])), 4)
    return rows


def same_rows(one: FloatArray | None, two: FloatArray | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.shape == two.shape and bool(np.allclose(one, two, rtol=1e-9, atol=1e-9))


def row_of(given: Case, place: int, found: Explained) -> FloatArray:
    """(d,) the row that satisfies one of the rules, chosen as ours."""
    row = given.factuals.vectors[place]
    if not found.deltas:
        return np.full_like(row, np.nan)
    return search_of(given).chosen(found.deltas, row, int(given.factuals.classes[place]))[0]


def search_of(given: Case) -> PublishedSearch:
    config = explainer("lore").config
    return PublishedSearch(
        given.model,
        given.context,
        population=config.population,
        generations=config.generations,
        crossover=config.crossover,
        mutation=config.mutation,
    )


def our_explanation(given: Case, place: int) -> Explained:
    """What our search does on the way to its answer."""
    search = search_of(given)
    row, label = given.factuals.vectors[place], int(given.factuals.classes[place])
    stream = given.context.generator(given.factuals.units[place])
    values = search.values(stream)
    neighbours = search.neighbours(row, label, values, Draws(stream))
    classes = predicted_classes(given.model, search.table.encoded(neighbours))
    tree = search.tree(neighbours, classes)
    if tree is None:
        return Explained(None, [])
    return Explained(
        neighbours, shortest_deltas(tree, search.table.raw(row[None])[0], label, search.table.numeric)
    )


class Theirs:
    """The authors' modules, which draw from a stream that is set for each factual."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        samplers = {"over_sampling": "RandomOverSampler", "under_sampling": "CondensedNearestNeighbour"}
        sys.modules["imblearn"] = types.ModuleType("imblearn")
        for name, sampler in samplers.items():
            sys.modules[f"imblearn.{name}"] = types.ModuleType(name)
            setattr(sys.modules[f"imblearn.{name}"], sampler, None)
        sys.path.insert(0, str(checkout))
        os.environ["LD_LIBRARY_PATH"] = str(checkout / "yadt")
        os.chdir(checkout)  # where the code looks for its program
        self.lore = importlib.import_module("lore")
        self.genetic = importlib.import_module("gpdatagenerator")
        self.deap = [
            importlib.import_module(f"deap.{name}")
            for name in ("tools.selection", "tools.crossover", "algorithms")
        ]

    def explained(self, given: Case, place: int, *names: str) -> Explained:
        search = search_of(given)
        row = given.factuals.vectors[place]
        unit = given.factuals.units[place]
        stream = generator("benchmark", *names, unit) if names else given.context.generator(unit)
        values = search.values(stream)
        shim = Randomness(Draws(stream))
        for module in self.deap:
            module.random = shim
        self.genetic.np = shim.numpy()
        self.lore.calculate_feature_values = lambda *_: dict(enumerate(values))
        dataset = dataset_of(search)
        with tempfile.TemporaryDirectory() as folder:
            try:
                found, infos = self.lore.explain(
                    0,
                    search.table.raw(row[None]),
                    dataset,
                    Blackbox(search),
                    returns_infos=True,
                    path=f"{folder}/",
                )
            except (ValueError, AttributeError, IndexError) as error:
                print(f"{given.name} {unit}: {error!r}", file=sys.stderr)
                return Explained(None, [])
        return Explained(np.asarray(infos["Z"]), [delta_of(one) for one in found[1]])


class Blackbox:
    def __init__(self, search: PublishedSearch) -> None:
        self.search = search

    def predict(self, rows: Any) -> IntArray:
        return predicted_classes(self.search.model, self.search.table.encoded(np.asarray(rows, dtype=float)))


class Randomness:
    """The functions of ``random`` and ``numpy.random`` that the code calls, from one sequence of uniform numbers."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.random = draws.one

    def choice(self, values: Any) -> Any:
        return values[self.draws.below(len(values))]

    def randint(self, low: int, high: int) -> int:
        return low + self.draws.below(high - low + 1)

    def numpy(self) -> types.ModuleType:
        """NumPy with these in place of ``numpy.random``."""
        found = types.ModuleType("numpy")
        drawing = types.SimpleNamespace(random=self.draws.one, choice=lambda values, _: [self.choice(values)])
        found.__dict__.update({**np.__dict__, "random": drawing})
        return found


def dataset_of(search: PublishedSearch) -> dict[str, Any]:
    """The table as the code describes it, with the class first."""
    names = [f"c{place:03d}" for place in range(len(search.table.levels))]
    kinds = dict(zip(names, search.table.levels, strict=True))
    discrete = [name for name, levels in kinds.items() if levels]
    encoders = {
        name: LabelEncoder().fit([f"v{level:03d}" for level in range(kinds[name])]) for name in discrete
    }
    whole = dict(zip(names, search.table.whole, strict=True))
    types_of = {name: "string" if kinds[name] else "integer" if whole[name] else "double" for name in names}
    return {
        "name": "rows",
        "class_name": CLASS,
        "columns": [CLASS, *names],
        "discrete": [*discrete, CLASS],
        "continuous": [name for name in names if not kinds[name]],
        "features_type": {**types_of, CLASS: "integer"},
        "label_encoder": {**encoders, CLASS: LabelEncoder().fit([0, 1])},
        "possible_outcomes": [0, 1],
        "idx_features": dict(enumerate(names)),
    }


def delta_of(found: dict[str, str]) -> Delta:
    """The conditions of a rule: "12< c003 <=20", ">12", "<=20" or "v002"."""
    conditions: dict[int, tuple[float, float] | int] = {}
    for name, value in found.items():
        column = int(name.removeprefix("c"))
        if value.startswith("v"):
            conditions[column] = int(value.removeprefix("v"))
            continue
        low = re.match(r"([^<>]+)<", value) or re.match(r">(.+)", value)
        high = re.search(r"<=(.+)", value)
        conditions[column] = (float(low[1]) if low else -np.inf, float(high[1]) if high else np.inf)
    return Delta(conditions, len(conditions))


if __name__ == "__main__":
    main()
