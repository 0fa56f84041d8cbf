"""The gradient methods for tables as published, next to the code that their authors published, on the same networks.

    python benchmarks/authors_tabular_gradients.py ml-explain CHECKOUT_OF_ivan-afonichkin_ml-explain
    python benchmarks/authors_tabular_gradients.py cadex CHECKOUT_OF_rmazzine_cadex-cfbench
    python benchmarks/authors_tabular_gradients.py dice --sets magic --factuals 8
    python benchmarks/authors_tabular_gradients.py dice --sets statlog-german-credit --factuals 4
    python benchmarks/authors_tabular_gradients.py dice --sets magic --factuals 2 --counterfactuals 4
    python benchmarks/authors_tabular_gradients.py alibic --factuals 4 --iterations 100
    python benchmarks/authors_tabular_gradients.py alibic --sets magic --factuals 6 --control

The rows and their columns are described in ``authors_tabular_rows.py``; our side is the preset ``as-published``, on the
networks of CF-tabular (one hidden layer). Nothing of the authors' is part of this project: their code is imported from a
checkout or a library, unmodified, and called with the options of the preset. The environment needs torch for ml-explain and
dice; dice-ml for dice; ``tensorflow-cpu`` and ``tf_keras`` for cadex and alibic; alibi for alibic (see
``tabular_libraries.py``). ``authors`` computes in single precision, which their libraries use unless set otherwise,
``authors, double precision`` in double precision as cfbench does.

- ml-explain: ``VanillaGradientCounterfactual`` gets the network as a function of torch. Its file imports torchvision for
  an example that does not run here: an empty module takes its place. It returns its last point whatever its class; a point
  in the class of the factual counts as no answer, as in cfbench. Points swing about the factual, where the distance has
  a kink, so that rounding decides where they end after 100 steps: their own answers differ if the neurons of the hidden
  layer are summed in the reverse order (``neurons reversed``). ``decided``: the factuals for which these two agree;
  ``20 steps``: both sides after a fifth of the steps.
- cadex: ``Cadex`` gets a functional Keras model. It was written for Keras 2.1 on TensorFlow 1.12: ``keras`` is tf_keras,
  the Keras 2 for today's TensorFlow, in graph mode, with its ``legacy.Adam``, the class with the method ``get_gradients``
  that their ``MaskedAdam`` overrides, and the same formula and defaults. Their loop reads a category as a group of one-hot
  columns, so that a two-valued column is a pair (no, yes) here, with the weights of the network divided between both
  (yes counts half of the weight, no minus half of it, the rest is in the bias): the same network on rows. For double
  precision, their constant mask of single precision is made one of double precision.
- dice: the gradient method of dice-ml 0.12 with its PyTorch backend (``authors_dice.py``). Ranges and deviations are those
  of the whole table for both sides, numbers have the steps of their decimals, and two-valued columns are numbers to dice-ml.
  ``sets of 4``: four counterfactuals for each factual, each a row of the comparison. ``numbers not reset``: without the
  last search of both sides, for which dice-ml would take minutes where a number has four decimals.
- alibic: ``CounterfactualProto`` of alibi 0.9.6 (see ``authors_prototypes.py``) on a Keras model, k-d trees, ABDM. The
  levels of categories are where its multidimensional scaling puts them, for both sides. It runs two
  updates without an order, so that TensorFlow decides, in the middle of a run, whether there is momentum (``authors``);
  ``with momentum`` computes both before it stores either, as in the paper. It takes seconds for each factual, and longer
  with categories: ``100 steps`` are 100 instead of 1,000 for each of ten costs, on both sides.
"""

from __future__ import annotations

import argparse
import os
import sys
import types

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from authors_tabular_rows import (
    SETS,
    Answers,
    Case,
    case,
    explainer,
    imported,
    our_answers,
    same_answers,
    stored,
    subset,
    table_rows,
    timed,
    valid_only,
)
from library_methods import Layout, check_agreement

from cfbench_tabular.classifiers.mlp import from_weights
from cfbench_tabular.explainers.base import Explanation
from cfbench_tabular.explainers.counterfactual_sets import distances, inverse_deviations
from cfbench_tabular.table import FloatArray

STEPS, EARLY = 100, 20
"""Of ml-explain: as published, and before rounding decides."""
ALIBI_STEPS = 1000
"""Of alibic for each cost, as published."""
CLOSE = 1e-3
"""The tolerance of alibic, which computes 10,000 steps."""
SINGLE, DOUBLE = "float32", "float64"
COMPARISONS: dict[str, Callable[[Case, argparse.Namespace], list[dict[str, Any]]]] = {}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=sorted(COMPARISONS))
    parser.add_argument("checkout", type=Path, nargs="?", help="folder of the authors' repository")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--factuals", type=int, default=20)
    parser.add_argument(
        "--iterations", type=int, default=ALIBI_STEPS, help="steps of alibic for each of its ten costs"
    )
    parser.add_argument(
        "--control", action="store_true", help="of alibic: compare their answers with each other, too"
    )
    parser.add_argument("--counterfactuals", type=int, default=1, help="of dice, for each factual")
    parser.add_argument("--keep", default="", help="path of the stored table, without its suffix")
    options = parser.parse_args()
    for name in options.sets:
        given = case(name, options.factuals)
        rows = COMPARISONS[options.method](given, options)
        stored(options.keep, rows, "python benchmarks/authors_tabular_gradients.py METHOD CHECKOUT")


def comparison(name: str) -> Callable[[Any], Any]:
    def registered(compare: Any) -> Any:
        COMPARISONS[name] = compare
        return compare

    return registered


@comparison("ml-explain")
def ml_explain(given: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    import torch

    sys.modules.setdefault("torchvision", types.ModuleType("torchvision"))
    file = options.checkout / "mlexplain" / "counterfactuals" / "vanilla_gradient_counterfactual.py"
    theirs = imported("vanilla_gradient_counterfactual", file).VanillaGradientCounterfactual
    count, weights = len(given.factuals), given.model.weights

    def answers(precision: str, steps: int, turn: int = 1) -> Answers:
        """``turn`` -1: with the neurons of the hidden layer in the reverse order."""
        parts = weights["W1"][:, ::turn], weights["b1"][::turn], weights["W2"][::turn], weights["b2"]
        w1, b1, w2, b2 = (torch.tensor(part.astype(precision)) for part in parts)
        search = theirs(lambda x: torch.softmax(torch.relu(x @ w1 + b1) @ w2 + b2, dim=-1))

        def run() -> FloatArray:
            found = [
                search.generate(row[None].astype(precision), int(own), n_iters=steps).detach().numpy()[0]
                for row, own in zip(given.factuals.vectors, given.factuals.classes, strict=True)
            ]
            return np.array(found, dtype=np.float64)

        return timed(run, count)

    double = "authors, double precision"
    points = {
        "authors": answers(SINGLE, STEPS),
        double: answers(DOUBLE, STEPS),
        "authors, neurons reversed": answers(DOUBLE, STEPS, -1),
    }
    decided = same_answers(*(points[row].counterfactuals for row in list(points)[1:]))
    found = {"paper": our_answers(given, "ml-explain")} | {
        row: replace(last, counterfactuals=valid_only(given, last.counterfactuals))
        for row, last in points.items()
    }
    some = subset(given, {row: found[row] for row in ("paper", double)}, decided)
    early = answers(DOUBLE, EARLY)
    first_steps = {
        "paper": our_answers(given, "ml-explain", iterations=EARLY),
        double: replace(early, counterfactuals=valid_only(given, early.counterfactuals)),
    }
    return [
        *table_rows(given, "ml-explain", found),
        *renamed(table_rows(some[0], "ml-explain", some[1]), ", decided"),
        *renamed(table_rows(given, "ml-explain", first_steps), f", {EARLY} steps"),
    ]


def renamed(rows: list[dict[str, Any]], suffix: str) -> list[dict[str, Any]]:
    return [{**row, "row": f"{row['row']}{suffix}"} for row in rows]


@comparison("cadex")
def cadex(given: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    import pandas as pd

    theirs = cadex_module(options.checkout)
    keras = sys.modules["keras"]
    layout = with_pairs(Layout.of(given.context.encoding, scaled=False))
    groups = [
        list(range(start, start + size))
        for start, size in zip(layout.starts, layout.sizes, strict=True)
        if size > 1
    ]
    constant = keras.backend.constant

    def search(precision: str) -> Answers:
        keras.backend.clear_session()
        keras.backend.set_floatx(precision)
        network = keras_network(keras, layout, given)
        rows = layout.to_library(given.factuals.vectors, DOUBLE)
        made = theirs.Cadex(network, categorical_attributes=groups or None)

        def answers() -> FloatArray:
            found = []
            for row, own in zip(rows, given.factuals.classes, strict=True):
                answer, _ = made.train(pd.DataFrame([row]), 1 - int(own), 2, categorical_threshold=0.2)
                found.append(np.full(len(row), np.nan) if answer is None else np.asarray(answer)[0])
            return layout.from_library(np.array(found))

        with patch.object(keras.backend, "constant", lambda value, dtype: constant(value, dtype=precision)):
            return timed(answers, len(given.factuals))

    found = {
        "paper": our_answers(given, "cadex"),
        "authors": search(SINGLE),
        "authors, double precision": search(DOUBLE),
    }
    return table_rows(given, "cadex", found)


@comparison("alibic")
def alibic(given: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    from authors_prototypes import Prototypes

    steps, double = options.iterations, "authors, with momentum, double precision"
    precise = Prototypes(given, steps, DOUBLE)
    with precise.levels():
        found = {"paper": our_answers(given, "alibic", iterations=steps)}
    found[double] = precise.answers(True)
    if options.control:
        found["authors, neurons reversed"] = Prototypes(turned(given), steps, DOUBLE).answers(True)
        theirs = (found[row].counterfactuals for row in (double, "authors, neurons reversed"))
        decided = same_answers(next(theirs), next(theirs), tolerance=CLOSE)
        some = subset(given, {row: found[row] for row in ("paper", double)}, decided)
        rows = table_rows(given, "alibic", found, tolerance=CLOSE)
        rows += renamed(table_rows(some[0], "alibic", some[1], tolerance=CLOSE), ", decided")
    else:
        found["authors"] = Prototypes(given, steps).answers(None)
        rows = table_rows(given, "alibic", found, tolerance=CLOSE)
    return renamed(rows, "" if steps == ALIBI_STEPS else f", {steps} steps")


def turned(given: Case) -> Case:
    """The case with the neurons of the hidden layer in the reverse order."""
    w1, b1, w2, b2 = (given.model.weights[name] for name in ("W1", "b1", "W2", "b2"))
    return replace(given, model=from_weights({"W1": w1[:, ::-1], "b1": b1[::-1], "W2": w2[::-1], "b2": b2}))


@comparison("dice")
def dice(given: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    from authors_dice import DIGITS, Library, with_steps

    count, sparse = options.counterfactuals, given.name not in DIGITS
    given = with_steps(given)
    context = replace(given.context, counterfactuals_per_instance=count)
    given = replace(given, context=context)
    made = explainer("dice", **({} if sparse else {"sparsity": "none"}))
    found = {
        "paper": timed(
            lambda: Explanation.of(made.counterfactuals(given.model, given.factuals, context)).stacked(),
            len(given.factuals),
        ),
        "authors": Library(given, SINGLE).answers(count, sparse),
        "authors, double precision": Library(given, DOUBLE).answers(count, sparse),
    }
    each = np.repeat(np.arange(len(given.factuals)), count)
    rows = {
        row: replace(answers, counterfactuals=nearest_first(given, answers.counterfactuals))
        for row, answers in found.items()
    }
    some = subset(given, {}, each)[0]
    suffix = ("" if sparse else ", numbers not reset") + (f", sets of {count}" if count > 1 else "")
    return renamed(table_rows(some, "dice", rows), suffix)


def nearest_first(given: Case, sets: FloatArray) -> FloatArray:
    """(n k, d) the counterfactuals (n, k, d) of each factual in the order of cfbench, NaN last."""
    weights = inverse_deviations(given.context.background, given.context.encoding)
    away = distances(sets, given.factuals.vectors[:, None], weights)
    order = np.where(np.isnan(away), np.inf, away).argsort(axis=1, kind="stable")
    return np.take_along_axis(sets, order[:, :, None], axis=1).reshape(-1, sets.shape[2])


def cadex_module(checkout: Path) -> Any:
    """Their file, with tf_keras in place of the Keras of its time."""
    import tensorflow as tf
    import tf_keras

    tf.compat.v1.disable_v2_behavior()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    optimizers = types.ModuleType("keras.optimizers")
    optimizers.Adam = tf_keras.optimizers.legacy.Adam  # type: ignore[attr-defined]
    sys.modules |= {
        "keras": tf_keras,
        "keras.backend": tf_keras.backend,
        "keras.layers": tf_keras.layers,
        "keras.models": tf_keras.models,
        "keras.optimizers": optimizers,
    }
    return imported("Cadex", checkout / "Cadex.py")


def with_pairs(layout: Layout) -> Layout:
    """The layout with v = (yes - no + 1) / 2 for two-valued columns, instead of v = yes."""
    mixing, shift = layout.mixing.copy(), layout.shift.copy()
    for start, size, block in zip(layout.starts, layout.sizes, layout.encoding.blocks, strict=True):
        if size == 2:
            mixing[start, block.start], mixing[start + 1, block.start], shift[block.start] = -0.5, 0.5, 0.5
    return replace(layout, mixing=mixing, shift=shift)


def keras_network(keras: Any, layout: Layout, given: Case) -> Any:
    """The network of the case in Keras, whose first layer is its input, for rows in the layout of the library."""
    w1, b1, w2, b2 = layout.weights(given.model, DOUBLE)
    start = keras.layers.Input(shape=(len(layout.mixing),))
    hidden = keras.layers.Dense(len(b1), "relu")(start)
    network = keras.models.Model(start, keras.layers.Dense(2, "softmax")(hidden))
    network.set_weights([w1, b1, w2, b2])
    some = given.context.background[:100]
    check_agreement(network.predict(layout.to_library(some, DOUBLE)), given.model, some)
    return network


if __name__ == "__main__":
    main()
