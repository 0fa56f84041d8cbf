"""SynAS next to the code that its authors published, on the same networks and rows.

    pip install tensorflow-cpu
    git clone https://github.com/goutham7r/synth-action-seq CHECKOUT
    python benchmarks/authors_tabular_synas.py CHECKOUT --sets magic --length 1 --factuals 5 \\
        --keep docs/results/authors-tabular-synas

Their search (``SequenceSearch`` with the heuristics ``vanilla`` and ``base_config``) is imported from the checkout and run
as it is, through TensorFlow's interface of version 1. Their code expects the actions of a data set, written by its user,
here those of the preset ``as-published``: add to a number, at a cost of 1 for each standard deviation, with the ends of
its range as conditions on the raw number; set a category to another level, at a cost of 1. They try sequences in every
order, ours each set of actions once.

Rows: ``authors``, their code with the logits of the network; ``authors, smaller logit 0``, with the smaller of both logits
taken from both, which leaves the probabilities as they are. Their code computes how much is missing as
max(0, max(z_own, 0) - z_other), because it sets the logit of the other class to 0 before it takes the maximum. So it
depends on a constant that may be added to both logits, and a class with negative logits is left too late or not at all;
the paper has max(0, z_own - z_other), which is also what it computes where the smaller logit is 0.

Columns: see ``authors_tabular_rows.py``; ``model`` names the limit of actions, ``cost`` is the mean cost of the answers.
Each sequence takes thousands of steps, seconds, so few rows and short sequences are compared.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from authors_tabular_rows import SETS, Answers, Case, case, our_answers, silent, stored, table_rows, timed

from cfbench_tabular.table import FloatArray, complete

TOLERANCE = 1e-3
"""Of the columns of an answer: thousands of steps of Adam end within a step of 0.005 of each other."""
THEIRS = ("recourse", "heuristics", "actions", "common", "models")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a copy of the authors' repository")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--length", type=int, default=1, help="actions at most")
    parser.add_argument("--factuals", type=int, default=5)
    parser.add_argument("--keep", default="", help="where to store the table, without its ending")
    options = parser.parse_args()
    for name in options.sets:
        given = case(name, options.factuals)
        answers = {"paper": our_answers(given, "synas", length=options.length)}
        for row, smaller_is_zero in (("authors", False), ("authors, smaller logit 0", True)):
            answers[row] = theirs(given, options.checkout.resolve(), options.length, smaller_is_zero)
        model = f"mlp, {options.length} actions" if options.length > 1 else "mlp, 1 action"
        rows = table_rows(given, "synas", answers, model=model, tolerance=TOLERANCE)
        for row, found in zip(rows, answers.values(), strict=True):
            row["cost"] = round(float(np.nanmean(costs(given, found.counterfactuals))), 4)
        stored(options.keep, rows, "python benchmarks/authors_tabular_synas.py CHECKOUT")


def costs(given: Case, found: FloatArray) -> FloatArray:
    """(n,) what the changes of the answers cost, NaN where there is none."""
    encoding = given.context.encoding
    away = np.abs(found - given.factuals.vectors)
    largest = np.maximum.reduceat(away, [block.start for block in encoding.blocks], axis=1)
    scalar = np.array([column.scalar for column in encoding.columns])
    values = np.where(scalar, largest, (largest > 0.5).astype(float)).sum(axis=1)
    return np.where(complete(found), values, np.nan)


def theirs(given: Case, checkout: Path, length: int, smaller_is_zero: bool) -> Answers:
    """The answers of their code."""
    import tensorflow

    tensorflow.compat.v1.disable_eager_execution()
    tf = tensorflow.compat.v1
    with _imported(checkout, tf):
        search = importlib.import_module("recourse.search")
        config = importlib.import_module("recourse.config").base_config
        vanilla = importlib.import_module("heuristics.vanilla")
        action = importlib.import_module("actions.action")
        conditions = importlib.import_module("actions.condition_ops")

        def run() -> FloatArray:
            found = np.full_like(given.factuals.vectors, np.nan)
            for place, row in enumerate(given.factuals.vectors):
                target = np.eye(2)[1 - given.factuals.classes[place]][None]
                # One graph for each length: the code adds operations for each sequence and never removes one.
                with tf.Graph().as_default(), tf.Session() as session, silent():
                    actions = _actions(given, place, tf, action, conditions)
                    order = vanilla.VanillaHeuristics(actions, max_length=length)
                    sequences = search.SequenceSearch(
                        _network(given, tf, smaller_is_zero), actions, order, config
                    )
                    best = sequences.find_correction(row[None], target, session).best_result
                if best is not None:
                    found[place] = best.final_instance
            return found

        return timed(run, len(given.factuals))


def _network(given: Case, tf: Any, smaller_is_zero: bool) -> Any:
    """The network as a function of a tensor of rows: the logits of both classes."""
    (w1, b1), (w2, b2) = given.model.layers()

    def logits(rows: Any) -> Any:
        hidden = tf.nn.relu(tf.matmul(rows, tf.constant(w1, tf.float32)) + tf.constant(b1, tf.float32))
        found = tf.matmul(hidden, tf.constant(w2, tf.float32)) + tf.constant(b2, tf.float32)
        return found - tf.reduce_min(found, axis=1, keepdims=True) if smaller_is_zero else found

    return logits


def _actions(given: Case, place: int, tf: Any, action: Any, conditions: Any) -> list[Any]:
    """Their class ``Action`` for each number, and for each other level of each category."""
    encoding, row = given.context.encoding, given.factuals.vectors[place]
    low, high = (side[0] for side in encoding.allowed(row[None]))
    scale = encoding.scale[encoding.column_of]

    class Add(action.Action):  # type: ignore[misc]
        """Add the parameter to the number at ``position``."""

        def __init__(self, position: int) -> None:
            super().__init__(f"add {position}", "", "Numeric", {}, [], [0.0])
            self.position = position
            self.unit = tf.constant(np.eye(encoding.width)[position], tf.float32)

        def apply(self, instance: Any, p: Any, use_tensor: bool = True) -> Any:
            return instance + self.get_param(p, use_tensor) * self.unit

        def get_cost(self, instance: Any, new_instance: Any, use_tensor: bool = True) -> Any:
            change = tf.abs(tf.reduce_sum((new_instance - instance) * self.unit))
            return self.return_cost(instance, new_instance, change, use_tensor)

        def postcondition(self, instance: Any, new_instance: Any, use_tensor: bool = True) -> Any:
            raw = scale[self.position]
            value = tf.reduce_sum(new_instance * self.unit) * raw
            start, end = low[self.position] * raw, high[self.position] * raw
            return conditions.op_and(
                conditions.op_gt(value, start, use_tensor, scale=end - start),
                conditions.op_lt(value, end, use_tensor, scale=end - start),
                use_tensor,
            )

    class Set(action.Action):  # type: ignore[misc]
        """Set the category of ``block`` to the level at ``position``, or a category of two levels to the other one."""

        def __init__(self, block: slice, position: int) -> None:
            super().__init__(f"set {block.start}", "", "Categoric", {}, [], [], num_params=0)
            others, level = np.ones(encoding.width), np.zeros(encoding.width)
            others[block] = 0.0
            level[position] = 1.0 - row[position]
            self.others, self.level = tf.constant(others, tf.float32), tf.constant(level, tf.float32)

        def apply(self, instance: Any, p: Any, use_tensor: bool = True) -> Any:
            return instance * self.others + self.level

        def get_cost(self, instance: Any, new_instance: Any, use_tensor: bool = True) -> Any:
            return self.return_cost(instance, new_instance, tf.constant(1.0, tf.float32), use_tensor)

    made: list[Any] = []
    for block in encoding.blocks:
        single = block.stop - block.start == 1
        for position in range(block.start, block.stop):
            if encoding.numeric[position]:
                made += [Add(position)] if low[position] < high[position] else []
            elif single or row[position] == 0.0:
                made.append(Set(block, position))
    return made


@contextmanager
def _imported(checkout: Path, tf: Any) -> Iterator[None]:
    """Their modules, imported anew with ``tf`` as TensorFlow."""
    ours = sys.modules.get("tensorflow")
    sys.modules["tensorflow"] = tf
    sys.path.insert(0, str(checkout))
    for name in [name for name in sys.modules if name.split(".")[0] in THEIRS]:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.path.remove(str(checkout))
        sys.modules.pop("tensorflow")
        if ours is not None:
            sys.modules["tensorflow"] = ours


if __name__ == "__main__":
    main()
