"""What the suite asks of an explainer of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cfbench_tabular.classifiers.base import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray, IntArray


@dataclass(frozen=True)
class Factuals:
    """B rows to explain.

    Attributes:
        vectors: (B, d) encoded.
        classes: (B,) as the model predicts them, 0 or 1.
        units: their names.
    """

    vectors: FloatArray
    classes: IntArray
    units: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True)
class Context:
    """What an explainer may use besides the model.

    Attributes:
        encoding: the columns and their places in the vectors.
        background: (n, d) the training rows.
        generator: ``generator(unit)`` is the random stream of a unit, the same whatever else is in the batch.
    """

    encoding: Encoding
    background: FloatArray
    generator: Callable[[str], np.random.Generator]


class Explainer(Protocol):
    """A component of kind "explainer": ``Name(config)``, then ``counterfactuals`` for a batch of rows."""

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, d) encoded counterfactuals; a row of NaN where there is no answer.

        The answer to a factual must not depend on the others in the batch. Whether the class really changes
        is checked by the suite.
        """


def no_answers(factuals: Factuals) -> FloatArray:
    """(B, d) of NaN."""
    return np.full_like(factuals.vectors, np.nan)
