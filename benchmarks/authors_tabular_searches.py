"""NICE, SEDC, Growing Spheres and MACE next to the code that their authors published, on the same networks and rows.

    python benchmarks/authors_tabular_searches.py sedc CHECKOUT --keep docs/results/authors-tabular-searches
    python benchmarks/authors_tabular_searches.py growing-spheres CHECKOUT --keep docs/results/authors-tabular-searches
    pip install pysmt; python benchmarks/authors_tabular_searches.py mace CHECKOUT --sets iris balance-scale \\
        --keep docs/results/authors-tabular-searches
    python benchmarks/authors_tabular_searches.py nice examples/nicex-explainer --keep docs/results/authors-tabular-searches

CHECKOUT is a copy of

- sedc: https://github.com/rmazzine/sedc-mean-cfbench, the authors' ``explainer.py`` as CF-tabular ran it, with the means of
  the training rows as replacements, up to 20 iterations, and stopped at the first explanation;
- growing-spheres: https://github.com/thibaultlaugel/growingspheres, with the settings of its example (2,000 points, first
  radius 0.1, divided by ten);
- mace: https://github.com/amirhk/mace, ``findClosestCounterfactualSample`` with the distance ``one_norm`` and a tolerance of
  1e-5, as in its experiments, on z3. It translates networks of one output; ours has two, so it gets their difference.

NICE is the authors' library NICEx (``pip install --no-deps NICEx==0.2.3``) with its default options, through its adapter in
``examples/nicex-explainer``.

Their programs are imported from the checkout and run as they are. For today's NumPy ``np.in1d`` and ``np.infty``, which it
no longer has, are set to ``np.isin`` and ``np.inf``, the same functions and numbers; modules for plots and debugging,
which are not called, are left out. Growing Spheres draws its random numbers from the stream that ours has for the same
row, in the row ``authors``, and from another one in ``authors, other draws``.

Columns: see ``authors_tabular_rows.py``. MACE has no unique answer, as any within its tolerance of the nearest will do; for
it, ``identical`` is the share of the factuals for which the distances of both answers differ by twice the tolerance at
most. Its distance is the mean over the columns of |difference| / range, for a category 0 or 1.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from authors_tabular_rows import (
    SEARCHES,
    SETS,
    Answers,
    Case,
    case,
    imported,
    our_answers,
    silent,
    stored,
    table_rows,
    timed,
)

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.mace import costs_of
from cfbench_tabular.table import FloatArray, complete

TOLERANCE = 1e-5
"""Of MACE, in its distance."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=tuple(METHODS))
    parser.add_argument("checkout", type=Path, help="a copy of the authors' repository")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--factuals", type=int, default=20)
    parser.add_argument("--keep", default="", help="where to store the table, without its ending")
    options = parser.parse_args()
    for name in options.sets:
        given = case(name, options.factuals)
        rows = METHODS[options.method](given, options.checkout.resolve())
        stored(options.keep, rows, SEARCHES)


def nice(given: Case, adapter: Path) -> list[dict[str, Any]]:
    with _first_in_path(adapter / "src"):
        theirs = importlib.import_module("cfbench_explainer_nicex.nicex")

    def run() -> FloatArray:
        library = theirs.NICEx(theirs.Config())
        found: FloatArray = library.counterfactuals(given.model, given.factuals, given.context)
        return found

    return table_rows(given, "nice", {"paper": our_answers(given, "nice"), "authors": _timed(run, given)})


def sedc(given: Case, checkout: Path) -> list[dict[str, Any]]:
    np.in1d = np.isin  # type: ignore[attr-defined]
    theirs = imported("theirs_sedc", checkout / "explainer.py")
    typical = given.context.background.mean(axis=0)

    def scores(rows: Any) -> FloatArray:
        return given.model.predict_proba(np.asarray(rows))[:, 1]

    def run() -> FloatArray:
        explainer = theirs.Explainer(scores, typical, prune=True, omit_default=False)
        sets = explainer.explain(given.factuals.vectors, max_ite=20, stop_at_first=True)
        found = np.full_like(given.factuals.vectors, np.nan)
        for place, explanations in enumerate(sets):
            if explanations:
                found[place] = given.factuals.vectors[place]
                found[place, explanations[0]] = typical[explanations[0]]
        return found

    return table_rows(given, "sedc", {"paper": our_answers(given, "sedc"), "authors": _timed(run, given)})


def growing_spheres(given: Case, checkout: Path) -> list[dict[str, Any]]:
    with _first_in_path(checkout):
        spheres = importlib.import_module("growingspheres.growingspheres")
        draws = importlib.import_module("growingspheres.utils.gs_utils")

    def classes(rows: FloatArray) -> Any:
        found = predicted_classes(given.model, rows)
        return found if len(rows) > 1 else int(found[0])

    def run(*stream: str) -> FloatArray:
        found = np.full_like(given.factuals.vectors, np.nan)
        for place, row in enumerate(given.factuals.vectors):
            draws.np = _NumPy(generator("benchmark", *stream, given.factuals.units[place]))
            search = spheres.GrowingSpheres(
                row[None], classes, n_in_layer=2000, first_radius=0.1, dicrease_radius=10
            )
            found[place] = search.find_counterfactual()
        return found

    answers = {
        "paper": our_answers(given, "growing-spheres"),
        "authors": _timed(run, given),
        "authors, other draws": _timed(lambda: run("other"), given),
    }
    return table_rows(given, "growing-spheres", answers)


class _NumPy(types.ModuleType):
    """NumPy, with a generator's ``normal`` and ``uniform`` in place of those of ``numpy.random``."""

    def __init__(self, stream: np.random.Generator) -> None:
        super().__init__("numpy")
        self.random = types.SimpleNamespace(normal=stream.normal, uniform=stream.uniform)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def mace(given: Case, checkout: Path) -> list[dict[str, Any]]:
    np.infty = np.inf  # type: ignore[attr-defined]
    with _first_in_path(checkout, checkout / "_data_main"):
        sys.modules["debug"] = types.SimpleNamespace(ipsh=None)  # type: ignore[assignment]
        graphviz = types.ModuleType("graphviz")
        graphviz.Source = None  # type: ignore[attr-defined]
        sys.modules.setdefault("graphviz", graphviz)
        with silent():
            search = importlib.import_module("generateSATExplanations")
            data = importlib.import_module("loadData")
    warnings.filterwarnings("ignore", message="Defining new symbol")  # a line for each symbol of a formula
    described = _described(given, data)
    network = _one_output(given)

    def run() -> FloatArray:
        found = np.full_like(given.factuals.vectors, np.nan)
        for place, row in enumerate(given.factuals.vectors):
            sample = dict(zip(described.names, row.tolist(), strict=True))
            sample["y"] = bool(given.factuals.classes[place])
            symbols = _symbols(search, described)
            _, nearest, _ = search.findClosestCounterfactualSample(
                network, symbols, described.dataset, sample, "one_norm", "mace", TOLERANCE, io.StringIO()
            )
            if nearest["counterfactual_sample"]:
                found[place] = [nearest["counterfactual_sample"][name] for name in described.names]
        return found

    ours = our_answers(given, "mace", epsilon=TOLERANCE)
    theirs = _timed(run, given)
    distances = [_distances(given, answers.counterfactuals) for answers in (ours, theirs)]
    rows = table_rows(given, "mace", {"paper": ours, "authors": theirs}, tolerance=2 * TOLERANCE)
    for row, of_row in zip(rows, distances, strict=True):
        near = np.abs(of_row - distances[0]) <= 2 * TOLERANCE
        row["identical"] = round(float((near | (np.isnan(of_row) & np.isnan(distances[0]))).mean()), 4)
        row["distance"] = round(float(np.nanmean(of_row)), 6)
    return rows


def _distances(given: Case, found: FloatArray) -> FloatArray:
    """(n,) the distances of MACE between factuals and answers, NaN where there is none."""
    costs = costs_of("l1", given.context.encoding)
    there = complete(found)
    values = np.full(len(found), np.nan)
    starts = [block.start for block in given.context.encoding.blocks]
    away = np.abs(found - given.factuals.vectors)
    largest = np.maximum.reduceat(away, starts, axis=1)
    values[there] = (largest * costs.slope + (largest > 1e-9) * costs.fixed).sum(axis=1)[there]
    return values


class _Described:
    """The data set as their program describes one, by encoded positions: numbers are reals, levels 0 or 1."""

    def __init__(self, names: list[str], dataset: Any) -> None:
        self.names, self.dataset = names, dataset


def _described(given: Case, data: Any) -> _Described:
    import pandas as pd

    encoding = given.context.encoding
    low, high = encoding.bounds
    names, attributes = [], {}
    for column, block in enumerate(encoding.blocks):
        several = block.stop - block.start > 1
        for place in range(block.start, block.stop):
            name = f"x{column}_cat_{place - block.start}" if several else f"x{column}"
            kind = "sub-categorical" if several else "numeric-real" if encoding.numeric[place] else "binary"
            parent = f"x{column}" if several else -1
            limits = (float(low[place]), float(high[place])) if encoding.numeric[place] else (0, 1)
            attributes[name] = data.DatasetAttribute(
                name, name, kind, "input", "any", True, parent, parent, *limits
            )
            names.append(name)
    attributes["y"] = data.DatasetAttribute("y", "y", "binary", "output", "none", False, -1, -1, 0, 1)
    values = given.context.background
    frame = pd.DataFrame({name: values[:, place] for place, name in enumerate(names)})
    frame["y"] = given.context.labels
    return _Described(names, data.Dataset(frame, attributes, True, "study"))


def _symbols(search: Any, described: _Described) -> dict[str, Any]:
    """The symbols of the formula, as ``genExp`` makes them."""
    from pysmt.shortcuts import Int, Real, Symbol
    from pysmt.typing import BOOL, INT, REAL

    symbols: dict[str, Any] = {
        "counterfactual": {},
        "interventional": {},
        "output": {"y": {"symbol": Symbol("y", BOOL)}},
    }
    for name in described.names:
        about = described.dataset.attributes_kurz[name]
        real = about.attr_type == "numeric-real"
        bounds = (about.lower_bound, about.upper_bound)
        low, high = (Real(float(end)) if real else Int(int(end)) for end in bounds)
        for which in ("counterfactual", "interventional"):
            symbol = Symbol(f"{name}_{which}", REAL if real else INT)
            symbols[which][name] = {"symbol": symbol, "lower_bound": low, "upper_bound": high}
    return symbols


def _one_output(given: Case) -> Any:
    """The network as scikit-learn's, with the log-odds of class 1 as its output."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    warnings.simplefilter("ignore", ConvergenceWarning)  # the weights are replaced
    (w1, b1), (w2, b2) = given.model.layers()
    network = MLPClassifier(hidden_layer_sizes=(w1.shape[1],), max_iter=1)
    rows = given.context.background[:50]
    network.fit(rows, np.arange(len(rows)) % 2)
    network.coefs_ = [w1, w2[:, 1:] - w2[:, :1]]
    network.intercepts_ = [b1, b2[1:] - b2[:1]]
    return network


def _timed(run: Callable[[], FloatArray], given: Case) -> Answers:
    return timed(run, len(given.factuals))


@contextmanager
def _first_in_path(*folders: Path) -> Iterator[None]:
    sys.path[:0] = map(str, folders)
    try:
        yield
    finally:
        del sys.path[: len(folders)]


METHODS: dict[str, Callable[[Case, Path], list[dict[str, Any]]]] = {
    "nice": nice,
    "sedc": sedc,
    "growing-spheres": growing_spheres,
    "mace": mace,
}


if __name__ == "__main__":
    main()
