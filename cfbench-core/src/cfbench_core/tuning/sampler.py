"""Which options to try next: optuna's tree-structured Parzen estimator (Bergstra et al. 2011).

The sampler of trial n is made anew, seeded with (seed, n) and given all earlier trials. So it has no state of its
own, and a resumed search continues exactly as it would have.

A trial that failed (diverged, took too long) is reported to optuna as one that was as bad as the
worst: otherwise optuna would ignore it and try the same options again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError
from cfbench_core.hashing import canonical_json
from cfbench_core.lifecycle.streams import seed_of
from cfbench_core.tuning.space import Dimension

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

RANDOM_TRIALS = 8
"""So many trials are drawn at random before the sampler models what is good."""


@dataclass(frozen=True)
class Observation:
    """An earlier trial as the sampler knows it; ``value`` is None where it failed."""

    options: Mapping[str, Any]
    value: float | None


def require_optuna() -> None:
    """Raises UserError, saying how to get it, where optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise UserError("cfbench tune needs optuna: pip install 'cfbench-core[tune]'") from None


def propose(
    space: Sequence[Dimension], earlier: Sequence[Observation], direction: str, seed: int, number: int
) -> dict[str, Any]:
    """The options of trial ``number``. Earlier trials outside of the space (where it begins, say) are left out."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(
            seed=seed_of(seed, "tune", number) % 2**32, n_startup_trials=RANDOM_TRIALS
        )
        higher = direction == "higher"
        study = optuna.create_study(sampler=sampler, direction="maximize" if higher else "minimize")
        distributions = {dimension.name: _distribution(dimension) for dimension in space}
        values = [seen.value for seen in earlier if seen.value is not None]
        worst = (min if higher else max)(values, default=None)
        for seen in earlier:
            if all(seen.options[dimension.name] in dimension for dimension in space):
                value = worst if seen.value is None else seen.value
                study.add_trial(_frozen(seen.options, value, space, distributions))
        drawn = study.ask(distributions).params
    finally:
        optuna.logging.set_verbosity(verbosity)
    return {dimension.name: _value(dimension, drawn[dimension.name]) for dimension in space}


def _frozen(
    options: Mapping[str, Any],
    value: float | None,
    space: Sequence[Dimension],
    distributions: Mapping[str, BaseDistribution],
) -> FrozenTrial:
    """An earlier trial as optuna has it; one without a value counts for nothing."""
    from optuna.trial import TrialState, create_trial

    return create_trial(
        params={dimension.name: _encoded(dimension, options[dimension.name]) for dimension in space},
        distributions=dict(distributions),
        value=value,
        state=TrialState.FAIL if value is None else TrialState.COMPLETE,
    )


def _distribution(dimension: Dimension) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if dimension.choices:
        return CategoricalDistribution([canonical_json(choice) for choice in dimension.choices])
    if dimension.whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _encoded(dimension: Dimension, value: Any) -> Any:
    """As optuna has it: choices are their JSON texts, for it knows no lists."""
    return canonical_json(value) if dimension.choices else value


def _value(dimension: Dimension, drawn: Any) -> Any:
    return dimension.restored(json.loads(drawn)) if dimension.choices else dimension.rounded(drawn)
