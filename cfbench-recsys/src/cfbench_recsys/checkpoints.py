"""Checkpoints of one training at several levels of quality (Consistency beyond top-1): which epochs, and their names.

A checkpoint is named by a share of the training, "25%", or by a share of the best validation HR@10, "q80%".
Training ends, for this purpose, with the epoch that model selection chose ("100%"): what comes after it only
showed that it was the best. "q80%" is the first evaluation at the validation data with at least 80% of the HR@10 of
the chosen epoch.

How long training lasts is known at its end only, so evaluations are stored during the training: at most ``MOST``, thinned by
half (every second, every fourth, ...) whenever they become more. A checkpoint is the stored evaluation nearest to
its place, which is off by at most 1/64 of the training; the chosen epoch itself is always stored.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import load_state, save_state

MOST = 64
CRITERION, LEVEL = "NDCG@10", "HR@10"
"""What the best evaluation is chosen by (as in ``training.py``), and what shares of the best quality are shares of."""

State = dict[str, np.ndarray]


class EvaluationHistory:
    """The evaluations on the validation data of one training, their states on disk below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: list[dict[str, float]] = []  # every evaluation: epoch and quality
        self.stored: dict[
            int, bool
        ] = {}  # epochs on disk; True: among the thinned, False: only for being best
        self._stride = 1
        self._best = -np.inf

    def record(self, epoch: int, quality: Mapping[str, float], state: Callable[[], State]) -> None:
        """To be called at each evaluation, in order of epochs; see ``training.train``."""
        number = len(self.seen)
        self.seen.append({"epoch": epoch, **quality})
        best = not quality or quality[CRITERION] > self._best
        regular = number % self._stride == 0
        if best:
            self._best = quality.get(CRITERION, -np.inf)
            for earlier in [old for old, thinned in self.stored.items() if not thinned]:
                self._drop(earlier)
        if best or regular:
            self.stored[epoch] = regular
            (self.folder / str(epoch)).mkdir(parents=True, exist_ok=True)
            save_state(state(), self.folder / str(epoch))
        if sum(self.stored.values()) > MOST:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        numbers = {int(evaluation["epoch"]): number for number, evaluation in enumerate(self.seen)}
        best = max(self.seen, key=lambda evaluation: evaluation.get(CRITERION, evaluation["epoch"]))["epoch"]
        for epoch in [old for old in self.stored if numbers[old] % self._stride]:
            if epoch == best:
                self.stored[epoch] = False
            else:
                self._drop(epoch)

    def _drop(self, epoch: int) -> None:
        shutil.rmtree(self.folder / str(epoch))
        del self.stored[epoch]

    def at(self, name: str, best_epoch: int) -> tuple[State, dict[str, float]]:
        """The state of the checkpoint ``name``, and what is known of it: epoch, quality, the chosen epoch."""
        share = float(name.removeprefix("q").removesuffix("%")) / 100
        evaluations = {int(evaluation["epoch"]): evaluation for evaluation in self.seen}
        if name.startswith("q"):
            if LEVEL not in evaluations[best_epoch]:
                raise UserError(f"checkpoint {name}: there are no validation data to measure the quality on")
            enough = share * evaluations[best_epoch][LEVEL]
            wanted = float(
                next(epoch for epoch, evaluation in evaluations.items() if evaluation[LEVEL] >= enough)
            )
        else:
            wanted = share * best_epoch
        candidates = sorted(epoch for epoch in self.stored if epoch <= best_epoch)
        epoch = min(candidates, key=lambda stored: (abs(stored - wanted), stored))
        return load_state(self.folder / str(epoch)), {**evaluations[epoch], "of": best_epoch}

    def discard(self) -> None:
        """Removes what is on disk."""
        shutil.rmtree(self.folder)


def save_checkpoint(folder: Path, name: str, state: State, evaluation: Mapping[str, float]) -> None:
    """Into ``folder/name``."""
    (folder / name).mkdir(parents=True)
    save_state(state, folder / name)
    (folder / name / "evaluation.json").write_text(json.dumps(evaluation), encoding="utf-8")


def load_checkpoint(folder: Path, name: str) -> tuple[State, dict[str, float]]:
    """What :func:`save_checkpoint` wrote."""
    evaluation: dict[str, float] = json.loads((folder / name / "evaluation.json").read_text(encoding="utf-8"))
    return load_state(folder / name), evaluation
