"""Designs to compute or to estimate Shapley values of a game: which coalitions to evaluate, and what follows from them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Protocol

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_recsys.edits import BoolArray, FloatArray


class Design(Protocol):
    """Which coalitions of m players are evaluated, and what follows from their responses.

    Attributes:
        coalitions: (E, m) the members; the first is empty, the last has all players.
    """

    coalitions: BoolArray

    def values(self, responses: FloatArray) -> FloatArray:
        """(m,) Shapley values from the (E,) responses."""


class Enumeration:
    """All 2^m coalitions: the definition itself."""

    def __init__(self, players: int) -> None:
        self.coalitions: BoolArray = (np.arange(2**players)[:, None] >> np.arange(players)) % 2 == 1
        weight = np.array([1 / (players * math.comb(players - 1, size)) for size in range(players)])
        sizes = self.coalitions.sum(axis=1)[:, None]
        joined, left = weight[np.maximum(sizes - 1, 0)], -weight[np.minimum(sizes, players - 1)]
        self._factors: FloatArray = np.ascontiguousarray(np.where(self.coalitions, joined, left).T)

    def values(self, responses: FloatArray) -> FloatArray:
        values: FloatArray = self._factors @ (responses - responses[0])
        return values


enumeration = functools.lru_cache(maxsize=16)(Enumeration)


class Permutations:
    """q random orders and their reverses, every coalition that they go through."""

    def __init__(self, players: int, samples: int, generator: np.random.Generator) -> None:
        pairs = max(1, (samples - 2) // max(2 * (players - 1), 1)) if players > 1 else 1
        orders = generator.permuted(np.tile(np.arange(players), (pairs, 1)), axis=1)
        both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * pairs, players)
        self._places = np.argsort(both, axis=1)  # where each player stands in each order
        steps = self._places[:, None, :] < np.arange(1, players)[:, None]
        empty = np.zeros((1, players), dtype=np.bool_)
        self.coalitions: BoolArray = np.concatenate([empty, steps.reshape(-1, players), ~empty])

    def values(self, responses: FloatArray) -> FloatArray:
        values: FloatArray = self._of_pairs(responses).mean(axis=0)
        return values

    def errors(self, responses: FloatArray) -> FloatArray:
        """(m,) standard errors of the values; NaN with a single pair of orders."""
        found = self._of_pairs(responses)
        if len(found) < 2:
            return np.full(found.shape[1], np.nan)
        errors: FloatArray = found.std(axis=0, ddof=1) / math.sqrt(len(found))
        return errors

    def _of_pairs(self, responses: FloatArray) -> FloatArray:
        """(q, m) what each player adds, mean of an order and its reverse."""
        orders, players = self._places.shape
        paths = np.empty((orders, players + 1))
        paths[:, 0], paths[:, -1] = responses[0], responses[-1]
        paths[:, 1:-1] = responses[1:-1].reshape(orders, players - 1)
        added = np.take_along_axis(np.diff(paths, axis=1), self._places, axis=1)
        means: FloatArray = added.reshape(-1, 2, players).mean(axis=1)
        return means


class Kernel:
    """Weighted least squares, with the sum of the values given."""

    def __init__(self, players: int, samples: int, generator: np.random.Generator) -> None:
        between, weights = kernel_coalitions(players, samples - 2, generator)
        empty = np.zeros((1, players), dtype=np.bool_)
        self.coalitions: BoolArray = np.concatenate([empty, between, ~empty])
        self._shares = between.mean(axis=1)
        # phi = (v(1) - v(0)) / m + psi, the psi add up to 0, and z . psi = (z - |z| / m) . psi.
        centred = between - self._shares[:, None]
        self._weighted = np.ascontiguousarray((centred * weights[:, None]).T)
        gram = self._weighted @ centred
        level = np.trace(gram) / players or 1.0
        gram += level / players  # the curvature along (1, ..., 1), where psi is 0
        gram[np.diag_indices(players)] += 1e-10 * level
        self._factor = scipy.linalg.cho_factor(gram, overwrite_a=True)

    def values(self, responses: FloatArray) -> FloatArray:
        whole = responses[-1] - responses[0]
        rest = responses[1:-1] - responses[0] - self._shares * whole
        psi = scipy.linalg.cho_solve(self._factor, self._weighted @ rest)
        values: FloatArray = whole / len(psi) + psi - psi.mean()
        return values


def kernel_coalitions(
    players: int, samples: int, generator: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """At most ``samples`` coalitions (E, m), neither empty nor full, and their weights (E,), complements together."""
    sizes = np.arange(1, players // 2 + 1)
    mass = (players - 1) / (sizes * (players - sizes)) * np.where(2 * sizes == players, 1, 2)
    parts, weights = [np.zeros((0, players), dtype=np.bool_)], [np.zeros(0)]
    left, whole = samples, 0
    for size in sizes.tolist():
        count = math.comb(players, size) * (1 if 2 * size == players else 2)
        if count > left * mass[size - 1] / mass[size - 1 :].sum():
            break
        chosen = np.array(list(itertools.combinations(range(players), size)))
        layer = np.zeros((len(chosen), players), dtype=np.bool_)
        np.put_along_axis(layer, chosen, True, axis=1)
        parts.append(layer if 2 * size == players else np.concatenate([layer, ~layer]))
        weights.append(np.full(count, mass[size - 1] / count))
        left, whole = left - count, size
    rest, pairs = mass[whole:], left // 2
    if len(rest) and pairs:
        drawn = generator.choice(sizes[whole:], size=pairs, p=rest / rest.sum())
        places = generator.random((pairs, players)).argsort(axis=1).argsort(axis=1)
        some = places < drawn[:, None]
        parts += [some, ~some]
        weights.append(np.full(2 * pairs, rest.sum() / (2 * pairs)))
    return np.concatenate(parts), np.concatenate(weights)
