"""Chess, king and rook against king: all 28,056 positions with Black to move; how many moves until mate?

Bain & Hoff 1994; UCI Machine Learning Repository (King-Rook vs. King), CC BY 4.0. Computed here: every position
is worked back from the mates (retrograde analysis) and counts once, turned and mirrored so that the white king
stands on a1-d1-d4. The rows equal UCI's in UCI's order, which is by depth; so the file of CF-tabular, which has that
order but only distinguishes draws from wins, confirms the depths too.

CF-tabular distinguishes a draw from a win: `depth: false`. With `depth: true` the classes are UCI's 18: draw,
zero (mate), one, ..., sixteen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, categorical
from cfbench_tabular.table import BoolArray, IntArray, Table

SPEC = ComponentSpec(
    id="tabular/dataset/chess",
    summary="King and rook against king: won or drawn, all 28,056 positions computed",
    target=f"{__name__}:Chess",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"categorical"}}},
    papers=("bain1994chess",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


FILES, RANKS = tuple("abcdefgh"), tuple("12345678")
DEPTHS = (
    *("draw", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
)
STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
KING = (*STRAIGHT, (1, 1), (1, -1), (-1, 1), (-1, -1))

# A set of positions is a bool array over (file, rank) of the white king, the rook and the black king: 8**6.
_WHITE_KING, _ROOK, _BLACK_KING = (0, 1), (2, 3), (4, 5)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """Classes: draw, win; with depth: draw, zero, one, ..., sixteen."""

    depth: Annotated[bool, Help("classes are the moves until mate; CF-tabular: win or draw")] = False


class Chess:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        depth, positions = depths()
        rows = np.argwhere(positions)
        moves = depth[positions]
        order = np.argsort(moves, kind="stable")
        rows, moves = rows[order], moves[order]
        text = np.where(np.arange(6) % 2 == 0, np.array(FILES)[rows], np.array(RANKS)[rows])
        target = np.array(DEPTHS)[moves + 1] if self.config.depth else np.where(moves < 0, "draw", "win")
        levels = {
            f"{piece}-{what}": names
            for piece, most in (("white-king", 4), ("white-rook", 8), ("black-king", 8))
            for what, names in (("file", FILES[:most]), ("rank", RANKS[:most]))
        }
        return apply_options(categorical("chess", levels, text, target), self.config)


def depths() -> tuple[IntArray, BoolArray]:
    """For each position with Black to move, White's moves until mate (-1: a draw); and which positions count."""
    near = _adjacent()
    check = _rook_attacks() & ~_same(_ROOK, _BLACK_KING)
    distinct = ~(_same(_WHITE_KING, _ROOK) | _same(_WHITE_KING, _BLACK_KING) | _same(_ROOK, _BLACK_KING))
    legal = distinct & ~near
    attacked = near | _rook_attacks()  # squares forbidden to the black king, except that of the rook
    escapes = [_shift(~attacked | (_same(_ROOK, _BLACK_KING) & ~near), _BLACK_KING, step) for step in KING]
    captures = [_shift(_same(_ROOK, _BLACK_KING) & ~near, _BLACK_KING, step) for step in KING]
    can_capture, can_move = np.logical_or.reduce(captures), np.logical_or.reduce(escapes)

    depth = np.full((8,) * 6, -1)
    lost = legal & check & ~can_move
    moves = 0
    while lost.any():
        depth[lost] = moves
        won = _before_whites_move(depth >= 0) & legal & ~check
        doomed = legal & can_move & ~can_capture
        for step, escape in zip(KING, escapes, strict=True):
            doomed &= ~escape | _shift(won, _BLACK_KING, step)
        lost = doomed & (depth < 0)
        moves += 1
    return depth, legal & _canonical()


def _before_whites_move(reached: BoolArray) -> BoolArray:
    """From which positions one move of White's leads to one that is ``reached``: moves of kings and rooks go back."""
    occupied = _same(_WHITE_KING, _ROOK) | _same(_ROOK, _BLACK_KING)
    before: BoolArray = np.logical_or.reduce([_shift(reached, _WHITE_KING, step) for step in KING])
    for step in STRAIGHT:
        sliding = reached
        for _ in range(7):
            sliding = _shift(sliding, _ROOK, step) & ~occupied
            before |= sliding
    return before


def _rook_attacks() -> BoolArray:
    """Where the rook attacks the black king's square; only the white king stands in its way."""
    attacks = np.zeros((8,) * 6, dtype=bool)
    for step in STRAIGHT:
        sliding = _same(_ROOK, _BLACK_KING)
        for _ in range(7):
            sliding = _shift(sliding, _BLACK_KING, step) & ~_same(_WHITE_KING, _BLACK_KING)
            attacks |= sliding
    return attacks


def _adjacent() -> BoolArray:
    """Where the kings are adjacent (or on the same square)."""
    files, ranks = _distance(_WHITE_KING, _BLACK_KING)
    return np.asarray(np.maximum(abs(files), abs(ranks)) <= 1)


def _canonical() -> BoolArray:
    """One position of each eight that are equal under rotation and reflection: the white king on a1-d1-d4, and the first
    piece off the diagonal below it."""
    wf, wr, rf, rr, bf, br = np.indices((8,) * 6, sparse=True)
    below = (bf > br) | ((bf == br) & (rf >= rr))
    return np.asarray((wf < 4) & ((wf > wr) | ((wf == wr) & below)))


def _same(one: tuple[int, int], other: tuple[int, int]) -> BoolArray:
    files, ranks = _distance(one, other)
    return np.asarray((files == 0) & (ranks == 0))


def _distance(one: tuple[int, int], other: tuple[int, int]) -> tuple[IntArray, IntArray]:
    places = np.indices((8,) * 6)
    return places[one[0]] - places[other[0]], places[one[1]] - places[other[1]]


def _shift(positions: BoolArray, piece: tuple[int, int], step: tuple[int, int]) -> BoolArray:
    """[p] of the result: whether ``positions`` holds p with the piece moved one ``step``; not off the board."""
    moved: BoolArray = positions
    for axis, by in zip(piece, step, strict=True):
        if by:
            result = np.zeros_like(moved)
            ahead, here = [slice(None)] * 6, [slice(None)] * 6
            ahead[axis], here[axis] = (slice(1, 8), slice(0, 7)) if by > 0 else (slice(0, 7), slice(1, 8))
            result[tuple(here)] = moved[tuple(ahead)]
            moved = np.asarray(result)
    return moved
