"""The arguments and the result of an explainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.real_arrays import real_array
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray, IntArray, complete


@dataclass(frozen=True)
class Factuals:
    """B rows to explain.

    Attributes:
        vectors: (B, d) encoded.
        classes: (B,) as the model predicts them, 0 or 1.
        units: the names of the rows.
    """

    vectors: FloatArray
    classes: IntArray
    units: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True)
class Context:
    """The data that an explainer may use besides the model.

    Attributes:
        encoding: the columns and their positions in the vectors.
        background: (n, d) the training rows.
        generator: ``generator(unit)`` is the random stream of a unit; it does not depend on the rest of the batch.
        counterfactuals_per_instance: the number of counterfactuals to generate for each factual; an explainer
            that generates only one ignores it.
        seconds: time limit per factual, on average over the batch; None: unlimited. Results under a limit depend
            on the machine.
        labels: (n,) the true classes of the training rows, 0 or 1; None if unknown.
        retrained: the model trained again and again, for an explainer that declares ``details={"models": "retrained"}``.
        respects_constraints: whether the explainer itself has to respect the constraints between columns. Only one that
            declares ``provides={"constraints": {"between-columns"}}`` has to; of others, the rows are repaired.
    """

    encoding: Encoding
    background: FloatArray
    generator: Callable[[str], np.random.Generator]
    counterfactuals_per_instance: int = 1
    seconds: float | None = None
    labels: IntArray | None = None
    retrained: Sequence[Classifier] = ()
    respects_constraints: bool = False

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints between columns that the explainer itself has to respect."""
        return self.encoding.constraints if self.respects_constraints else ()


@dataclass(frozen=True)
class Explanation:
    """Counterfactuals and details of how they were found, such as a proof of optimality or the length of a rule.

    Attributes:
        counterfactuals: (B, d) encoded; a row of NaN where none was found. Several per factual: (B, n, d) with
            n = ``context.counterfactuals_per_instance``, the best first.
        details: (B,) numbers by name; NaN where unknown. Stored with the explanations (``details.parquet``).
    """

    counterfactuals: FloatArray
    details: Mapping[str, FloatArray] = field(default_factory=dict)

    @staticmethod
    def of(found: FloatArray | Explanation) -> Explanation:
        """The return value of ``counterfactuals``, which may come without details."""
        if isinstance(found, Explanation):
            return found
        return Explanation(found)

    def stacked(self) -> FloatArray:
        """(B, n, d) the counterfactuals; n = 1 if there is one for each factual."""
        found = np.asarray(self.counterfactuals, dtype=np.float64)
        return found[:, None] if found.ndim == 2 else found

    def checked(self, factuals: Factuals, context: Context, label: str) -> FloatArray:
        """(B, n, d) the counterfactuals, of a shape that fits, and each complete or missing.

        Raises:
            UserError: if they are not, beginning with ``label``.
        """
        (units, width), most = factuals.vectors.shape, context.counterfactuals_per_instance
        shapes = ((units, width), (units, most, width))
        values = real_array(self.counterfactuals, *shapes, what=f"{label}: counterfactuals")
        flat = values.reshape(-1, width)
        missing = np.isnan(flat).all(axis=1)
        if not complete(flat[~missing]).all() or np.isinf(flat).any():
            raise UserError(
                f"{label}: a counterfactual must be finite, or NaN in every column where none was found"
            )
        return values[:, None] if values.ndim == 2 else values


def no_counterfactuals(factuals: Factuals) -> FloatArray:
    """(B, d) of NaN."""
    return np.full_like(factuals.vectors, np.nan)
