"""What is known of each user when a model is fitted, chosen, tested and explained.

- ``per-interaction`` (CFExpRec): the interactions are divided at random, 8:1:1. A user always has one for
  training.
- ``per-user`` (LXR): the users are divided; those of the test part are the first 20% of
  ``numpy.random.RandomState(42).permutation(users)``, as in the published code. Models learn from the full
  histories of the training users; of each other user 20% of the interactions are held out.
- ``leave-one-out``: each user's last interaction is for the test, the one before for validation (by time
  where there are times, else at random). A user with two interactions has one in training and one in test; a user
  with one is in neither.
- ``temporal``: one moment for all: what happened after it is for the test. Nobody who was not there before it
  is in a holdout: nothing is known of them.

A held-out user is scored from ``inputs`` alone. A user without any remaining input
is left out of the holdout (``per-user``: who has a single interaction), and may be explained all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_core.config.component import not_default
from cfbench_core.errors import UserError
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.interactions import Interactions, load_matrix, save_matrix

Kind = Literal["per-interaction", "per-user", "leave-one-out", "temporal"]

OPTIONS: dict[Kind, frozenset[str]] = {
    "per-interaction": frozenset({"test", "validation"}),
    "per-user": frozenset({"test", "validation", "holdout", "user_seed"}),
    "leave-one-out": frozenset(),
    "temporal": frozenset({"test", "validation"}),
}
"""Those that have an effect on each kind."""


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """``split: {kind: per-user, test: 0.2}``."""

    kind: Annotated[Kind, Help("what is divided: all interactions, the users, each user's last, or time")] = (
        "per-interaction"
    )
    test: Annotated[
        float | None, Range(above=0, below=1), Help("share of interactions or users; none: 0.1, per-user 0.2")
    ] = None
    validation: Annotated[
        float,
        Range(above=0, below=1),
        Help("share of interactions; per-user: of the users not in the test part"),
    ] = 0.1
    holdout: Annotated[
        float,
        Range(above=0, below=1),
        Help("per-user: share of a held-out user's interactions that is held out"),
    ] = 0.2
    user_seed: Annotated[
        int, Range(minimum=0, maximum=2**32 - 1), Help("per-user: of the order of the users")
    ] = 42

    def __post_init__(self) -> None:
        for name in not_default(self):
            if name != "kind" and name not in OPTIONS[self.kind]:
                raise UserError(f"{name}: has no effect with kind: {self.kind}")
        if self.kind in ("per-interaction", "temporal") and self.test_share + self.validation >= 1:
            raise UserError(
                f"test {self.test_share:g} and validation {self.validation:g} leave nothing to train on; their sum must "
                "be below 1"
            )

    @property
    def test_share(self) -> float:
        return self.test if self.test is not None else (0.2 if self.kind == "per-user" else 0.1)


@dataclass(frozen=True)
class Holdout:
    """Held-out interactions: what a model sees of n users, and what it should find.

    Attributes:
        users: (n,) user indices.
        inputs: (n, items) their profiles as the model sees them.
        targets: (n, items) the held-out interactions; at least one in each row.
    """

    users: IntArray
    inputs: scipy.sparse.csr_matrix
    targets: scipy.sparse.csr_matrix


@dataclass(frozen=True)
class Split:
    """A data set, divided.

    Attributes:
        train: (users, items) interactions that models learn from; the rows of other users are empty.
        profiles: (users, items) what recommendations (and explanations) are made from.
        validation, test: what models are chosen on, and what their quality is reported on.
        explainable: users who may be explained (with at least one interaction in ``profiles``).
    """

    train: scipy.sparse.csr_matrix
    profiles: scipy.sparse.csr_matrix
    validation: Holdout
    test: Holdout
    explainable: IntArray


def make_split(interactions: Interactions, config: SplitConfig, generator: np.random.Generator) -> Split:
    """Divides a data set. All that is random comes from ``generator``, but for the users of ``per-user``.

    Raises:
        UserError: if a part would be empty, or the kind needs times that the data set does not have.
    """
    divide: dict[str, Callable[[Interactions, SplitConfig, np.random.Generator], Split]] = {
        "per-interaction": _per_interaction,
        "per-user": _per_user,
        "leave-one-out": _leave_one_out,
        "temporal": _temporal,
    }
    split = divide[config.kind](interactions, config, generator)
    for part, size in (
        ("training", split.train.nnz),
        ("validation", len(split.validation.users)),
        ("test", len(split.test.users)),
    ):
        if not size:
            users, items = interactions.matrix.shape
            if config.kind == "temporal" and split.train.nnz:
                raise UserError(
                    f"split temporal: nothing is left for {part}: no user of {interactions.name} has interactions in it "
                    f"and before it, of {users:,} users with {interactions.matrix.nnz:,} interactions; another kind of "
                    "split needs no common moment"
                )
            if config.kind == "temporal" and interactions.times is not None:
                moments = len(np.unique(interactions.times))
                found = f"{moments:,} different {'time' if moments == 1 else 'times'}"
                raise UserError(
                    f"split temporal: nothing is left for training: the {interactions.matrix.nnz:,} interactions of "
                    f"{interactions.name} have {found}, too few to divide by; use another kind of split"
                )
            raise UserError(
                f"split {config.kind}: nothing is left for {part}: {interactions.name} is too small "
                f"({users:,} users, {items:,} items, {interactions.matrix.nnz:,} interactions)"
            )
    return split


TRAIN, VALIDATION, TEST = 0, 1, 2


def _per_interaction(
    interactions: Interactions, config: SplitConfig, generator: np.random.Generator
) -> Split:
    matrix = interactions.matrix
    order = generator.permutation(matrix.nnz)
    part = np.full(matrix.nnz, TRAIN, dtype=np.int8)
    test, validation = round(config.test_share * matrix.nnz), round(config.validation * matrix.nnz)
    part[order[:test]] = TEST
    part[order[test : test + validation]] = VALIDATION
    part[_first_of_untrained(matrix, part, order)] = TRAIN
    return _from_parts(interactions, part)


def _first_of_untrained(matrix: scipy.sparse.csr_matrix, part: np.ndarray, order: IntArray) -> IntArray:
    """For each user without a training interaction, the one that ``order`` names last."""
    rows = _rows(matrix)
    trained = np.bincount(rows[part == TRAIN], minlength=matrix.shape[0]) > 0
    last = np.full(matrix.shape[0], -1, dtype=np.int64)
    last[rows[order]] = order
    return last[~trained & (last >= 0)]


def _leave_one_out(interactions: Interactions, config: SplitConfig, generator: np.random.Generator) -> Split:
    matrix = interactions.matrix
    times = generator.random(matrix.nnz) if interactions.times is None else interactions.times
    rows = _rows(matrix)
    order = np.lexsort((matrix.indices, times, rows))  # of equal times the higher item index counts as later
    lengths = np.diff(matrix.indptr)[rows[order]]
    from_end = lengths - 1 - (np.arange(matrix.nnz) - matrix.indptr[rows[order]])
    part = np.full(matrix.nnz, TRAIN, dtype=np.int8)
    part[order[(from_end == 0) & (lengths >= 2)]] = TEST
    part[order[(from_end == 1) & (lengths >= 3)]] = VALIDATION
    return _from_parts(interactions, part)


def _temporal(interactions: Interactions, config: SplitConfig, generator: np.random.Generator) -> Split:
    if interactions.times is None:
        raise UserError(f"split temporal: {interactions.name} has no times; another kind of split needs none")
    times = interactions.times
    test = _since(times, round(config.test_share * len(times)))
    validation = _since(times[times < test], round(config.validation * len(times)))
    part = np.where(times >= test, TEST, np.where(times >= validation, VALIDATION, TRAIN))
    return _from_parts(interactions, part)


def _since(times: FloatArray, count: int) -> float:
    """The moment since which there are ``count``; more, where several happened at that moment."""
    return float(np.sort(times)[-count]) if 0 < count <= len(times) else np.inf


def _from_parts(interactions: Interactions, part: np.ndarray) -> Split:
    """The split in which each interaction (in the order of ``matrix.data``) belongs to a part."""
    train, validation, test = (
        _select(interactions.matrix, part == which) for which in (TRAIN, VALIDATION, TEST)
    )
    known = np.diff(train.indptr) > 0

    def holdout(targets: scipy.sparse.csr_matrix) -> Holdout:
        users = np.flatnonzero(known & (np.diff(targets.indptr) > 0)).astype(np.int64)
        return Holdout(users, train[users], targets[users])

    return Split(train, train, holdout(validation), holdout(test), np.flatnonzero(known).astype(np.int64))


def _per_user(interactions: Interactions, config: SplitConfig, generator: np.random.Generator) -> Split:
    matrix = interactions.matrix
    users = np.random.RandomState(config.user_seed).permutation(matrix.shape[0]).astype(np.int64)
    tested = int(np.ceil(config.test_share * len(users)))
    test, others = users[:tested], users[tested:]
    validated = int(np.ceil(config.validation * len(others)))
    training = np.zeros(matrix.shape[0], dtype=bool)
    training[others[validated:]] = True
    return Split(
        train=_select(matrix, training[_rows(matrix)]),
        profiles=matrix,
        validation=_keep_back(matrix, others[:validated], config.holdout, generator),
        test=_keep_back(matrix, test, config.holdout, generator),
        explainable=test,
    )


def _keep_back(
    matrix: scipy.sparse.csr_matrix, users: IntArray, share: float, generator: np.random.Generator
) -> Holdout:
    """A random share of each user's interactions: at least one, and never all."""
    users = users[np.diff(matrix.indptr)[users] >= 2]
    profiles = matrix[users]
    rows = _rows(profiles)
    order = np.lexsort((generator.random(profiles.nnz), rows))
    lengths = np.diff(profiles.indptr)
    back = np.clip(np.rint(share * lengths), 1, lengths - 1)
    place = np.arange(profiles.nnz) - profiles.indptr[rows]
    hidden = np.zeros(profiles.nnz, dtype=bool)
    hidden[order] = place < back[rows]
    return Holdout(users, _select(profiles, ~hidden), _select(profiles, hidden))


def _rows(matrix: scipy.sparse.csr_matrix) -> IntArray:
    """(interactions,) the row of each entry of ``matrix.data``."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def _select(matrix: scipy.sparse.csr_matrix, retained: BoolArray) -> scipy.sparse.csr_matrix:
    """The same shape, with only the entries that ``retained`` (in the order of ``matrix.data``) marks."""
    ends = np.concatenate([[0], np.cumsum(retained)])[matrix.indptr].astype(matrix.indptr.dtype)
    return scipy.sparse.csr_matrix(
        (matrix.data[retained], matrix.indices[retained], ends), shape=matrix.shape
    )


def save_split(split: Split, folder: Path) -> None:
    """Into ``folder`` (made if need be), as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    save_matrix(split.train, folder / "train.parquet")
    save_matrix(split.profiles, folder / "profiles.parquet")
    _save_users(split.explainable, folder / "explainable.parquet")
    for name, part in (("validation", split.validation), ("test", split.test)):
        _save_users(part.users, folder / f"{name}_users.parquet")
        save_matrix(part.inputs, folder / f"{name}_inputs.parquet")
        save_matrix(part.targets, folder / f"{name}_targets.parquet")


def load_split(folder: Path) -> Split:
    """What :func:`save_split` wrote."""

    def matrix(name: str) -> scipy.sparse.csr_matrix:
        return load_matrix(folder / f"{name}.parquet")[0]

    def holdout(name: str) -> Holdout:
        users = _load_users(folder / f"{name}_users.parquet")
        return Holdout(users, matrix(f"{name}_inputs"), matrix(f"{name}_targets"))

    return Split(
        matrix("train"),
        matrix("profiles"),
        holdout("validation"),
        holdout("test"),
        _load_users(folder / "explainable.parquet"),
    )


def _save_users(users: IntArray, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"user": users.astype(np.int64)}), path, compression="zstd")


def _load_users(path: Path) -> IntArray:
    import pyarrow.parquet as pq

    users: IntArray = pq.read_table(path)["user"].to_numpy()
    return users
