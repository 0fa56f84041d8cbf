"""Training in epochs with early stopping on validation data; shared by the trained recommenders."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line
from cfbench_recsys.splits import Holdout

CRITERION = "NDCG@10"
"""What the best epoch is chosen by."""

VALIDATION_USERS = 2000
"""At most so many validation users are evaluated during the training."""

State = dict[str, np.ndarray]
CheckpointCallback = Callable[[int, Mapping[str, float], Callable[[], State]], None]
"""``checkpoint(epoch, quality, state)``: called at each evaluation; ``state()`` copies the model as it is then."""


@dataclass(frozen=True)
class Stopping:
    """How long to train: at most ``epochs``, an evaluation on the validation data every ``eval_every`` epochs, and an end
    when ``patience`` evaluations in a row were not better."""

    epochs: int
    patience: int
    eval_every: int = 1


def train(
    epoch: Callable[[], float],
    validate: Callable[[], Mapping[str, float]],
    snapshot: Callable[[], State],
    stopping: Stopping,
    report: Callable[[int, int], None],
    checkpoint: CheckpointCallback | None = None,
) -> tuple[State, dict[str, Any]]:
    """Runs epochs; returns the state of the best one, and a summary of the training (JSON).

    ``epoch()`` trains once over the data and returns its mean loss; ``validate()`` gives the quality on
    validation data, or nothing when there are none: then all epochs are run and the last state is selected.

    Raises:
        UserError: if the loss is no longer a finite number.
    """
    started = time.perf_counter()
    history: list[dict[str, float]] = []
    best: tuple[float, int, State] | None = None
    evaluations_without_gain = 0
    for number in range(1, stopping.epochs + 1):
        loss = epoch()
        report(number, stopping.epochs)
        if not math.isfinite(loss):
            raise UserError(f"training diverged in epoch {number} (loss {loss}); try a smaller learning_rate")
        if number % stopping.eval_every and number < stopping.epochs:
            continue
        quality = validate()
        history.append({"epoch": number, "loss": loss, **quality})
        if checkpoint is not None:
            checkpoint(number, quality, snapshot)
        if best is None or not quality or quality[CRITERION] > best[0]:
            best = (quality.get(CRITERION, -math.inf), number, snapshot())
            evaluations_without_gain = 0
        else:
            evaluations_without_gain += 1
            if evaluations_without_gain == stopping.patience:
                break
    assert best is not None, "there is at least one epoch"
    chosen = next(look for look in history if look["epoch"] == best[1])
    summary = {
        "epochs": number,
        "best_epoch": best[1],
        "validation": {name: value for name, value in chosen.items() if name not in ("epoch", "loss")},
        "elapsed_seconds": time.perf_counter() - started,
        "history": history,
    }
    return best[2], summary


def sample_of(holdout: Holdout, generator: np.random.Generator) -> Holdout:
    """The holdout, or ``VALIDATION_USERS`` of its users drawn at random."""
    if len(holdout.users) <= VALIDATION_USERS:
        return holdout
    rows = np.sort(generator.permutation(len(holdout.users))[:VALIDATION_USERS])
    return Holdout(holdout.users[rows], holdout.inputs[rows], holdout.targets[rows])


def check_shapes(
    model: str,
    state: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    optional: Collection[str] = (),
) -> None:
    """Are the arrays of ``state``, which may come from a file of the user's, those that a model needs, and no others?

    Args:
        optional: names of arrays that may be there as well.

    Raises:
        UserError: one line for each array that is missing or of another shape, and one for those that the model has not: the
            scores of the model that they are of would depend on them.
    """
    wrong = []
    for name, shape in shapes.items():
        if name not in state:
            wrong.append(f"{model}: weights: {name} {shape} is missing (found: {', '.join(state) or 'none'})")
        elif state[name].shape != shape:
            wrong.append(f"{model}: weights: {name} must be {shape}, is {state[name].shape}")
    further = [name for name in state if name not in shapes and name not in optional]
    if further and not wrong:
        wrong.append(
            f"{model}: weights: are of another model, with further arrays: {one_line(', '.join(further))}"
        )
    if wrong:
        raise UserError(*wrong)
