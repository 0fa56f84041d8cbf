"""What the suite asks of an explainer of classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
        labels: (n,) the classes that the table gives the training rows, 0 or 1; None where that is not known.
        answers: how many counterfactuals are asked for; an explainer that gives one only may ignore it.
        seconds: what a search may take for each factual, on average over the batch; None: as long as it needs.
            What is found by then depends on the machine, so a study that sets it does not repeat exactly.
    """

    encoding: Encoding
    background: FloatArray
    generator: Callable[[str], np.random.Generator]
    answers: int = 1
    seconds: float | None = None
    labels: IntArray | None = None


@dataclass(frozen=True)
class Answer:
    """Counterfactuals, and what the method knows about them: a proof, a bound, how long its rule is, ...

    Attributes:
        counterfactuals: (B, d) encoded; a row of NaN where there is no answer. Several answers: (B, n, d) with
            n = ``context.answers``, the best first.
        details: by name, (B,) numbers; NaN where there is none. Kept with the explanations
            (``details.parquet``).
    """

    counterfactuals: FloatArray
    details: Mapping[str, FloatArray] = field(default_factory=dict)

    @staticmethod
    def of(given: FloatArray | Answer) -> Answer:
        """What ``counterfactuals`` returned, with or without details."""
        return given if isinstance(given, Answer) else Answer(np.asarray(given, dtype=np.float64))

    def several(self) -> FloatArray:
        """(B, n, d) the counterfactuals; n = 1 where each factual has one."""
        found = np.asarray(self.counterfactuals, dtype=np.float64)
        return found[:, None] if found.ndim == 2 else found


class Explainer(Protocol):
    """A component of kind "explainer": ``Name(config)``, then ``counterfactuals`` for a batch of rows."""

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray | Answer:
        """(B, d) encoded counterfactuals; a row of NaN where there is no answer.

        An explainer that declares ``provides={"answers": {"several"}}`` gives (B, context.answers, d) instead.

        The answer to a factual must not depend on the others in the batch. Whether the class really changes
        is checked by the suite.
        """


def no_answers(factuals: Factuals) -> FloatArray:
    """(B, d) of NaN."""
    return np.full_like(factuals.vectors, np.nan)
