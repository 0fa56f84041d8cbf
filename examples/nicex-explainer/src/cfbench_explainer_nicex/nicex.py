"""NICEx: NICE (Brughmans, Leyman & Martens 2023) by its authors' library.

The library receives one number for each column: numbers as encoded, categories as the index of their level. Its distance
divides numbers by their range or standard deviation, so that standardised numbers make no difference. It does not support
admissible ranges, immutable and one-way columns; a counterfactual that changes one counts as not actionable. No
counterfactual is found where the model is right about no training row of the other class.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/nicex",
    summary="Columns of the nearest training row of the other class: the library NICEx",
    target=f"{__name__}:NICEx",
    config=f"{__name__}:Config",
    provides={"columns": {"numeric", "categorical"}, "constraints": {"one-hot"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("brughmans2023nice",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    reward: Annotated[
        Literal["sparsity", "proximity", "none"], Help("what is optimised; none: the training row itself")
    ] = "sparsity"
    scale: Annotated[Literal["minmax", "std"], Help("unit of numbers: range, or standard deviation")] = (
        "minmax"
    )


class NICEx:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        from nice import NICE

        found = no_counterfactuals(factuals)
        if len(factuals) == 0:
            return found
        rows = Columns(context.encoding)
        search: Any = NICE(
            lambda table: probabilities(model, rows.vectors(table)),
            rows.of(context.background),
            rows.categorical,
            rows.numeric,
            y_train=context.labels,
            optimization=self.config.reward,
            justified_cf=context.labels is not None,
            num_normalization=self.config.scale,
        )
        trusted = search.data.X_train_class[search.data.candidates_mask]
        for place, vector in enumerate(factuals.vectors):
            if (trusted != factuals.classes[place]).any():
                found[place] = rows.vectors(search.explain(rows.of(vector[None])))[0]
        return found


class Columns:
    """Encoded rows as rows of one number for each column.

    Attributes:
        categorical, numeric: the indices of the columns of each kind.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.blocks = encoding.blocks
        kinds = [column.kind == "numeric" or column.ordered for column in encoding.columns]
        self.numeric = [place for place, number in enumerate(kinds) if number]
        self.categorical = [place for place, number in enumerate(kinds) if not number]

    def of(self, vectors: FloatArray) -> FloatArray:
        """(n, M) for encoded rows (n, d)."""
        parts = [vectors[:, block] for block in self.blocks]
        codes = [part[:, 0] if part.shape[1] == 1 else part.argmax(axis=1) for part in parts]
        return np.stack(codes, axis=1).astype(np.float64)

    def vectors(self, table: FloatArray) -> FloatArray:
        """(n, d) encoded rows for (n, M)."""
        sizes = [block.stop - block.start for block in self.blocks]
        parts = [
            table[:, place, None] if size == 1 else np.eye(size)[table[:, place].astype(np.int64)]
            for place, size in enumerate(sizes)
        ]
        return np.concatenate(parts, axis=1)
