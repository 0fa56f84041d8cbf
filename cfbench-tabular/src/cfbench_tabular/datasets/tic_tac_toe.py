"""Tic-Tac-Toe Endgame: all 958 boards at the end of a game that x started; has x won?

Aha 1991; UCI Machine Learning Repository, CC BY 4.0. A game ends with three in a row or a full board. Found by
playing every game; the rows equal UCI's in UCI's order, which is: boards that x won, that o won, full ones, each
by squares, x before o before blank (checked against the file of CF-tabular). Classes: positive (x has won), negative
(o has, or neither).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, categorical
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/tic-tac-toe",
    summary="Whether x has won, all 958 final boards computed from the rules",
    target=f"{__name__}:TicTacToe",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"categorical"}}},
    papers=("aha1991incremental",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


SQUARES = tuple(
    f"{row}-{column}" for row in ("top", "middle", "bottom") for column in ("left", "middle", "right")
)
MARKS = "xob"
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: positive, negative."""


class TicTacToe:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        def place(board: str) -> tuple[int, list[int]]:
            return ("x", "o", "").index(winner(board)), [MARKS.index(mark) for mark in board]

        boards = sorted(set(endings()), key=place)
        target = np.array(["positive" if winner(board) == "x" else "negative" for board in boards])
        levels = dict.fromkeys(SQUARES, tuple(MARKS))
        return apply_options(
            categorical("tic-tac-toe", levels, np.array([list(b) for b in boards]), target), self.config
        )


def winner(board: str) -> str:
    """Whose three marks are in a row; empty when neither's do."""
    for a, b, c in LINES:
        if board[a] != "b" and board[a] == board[b] == board[c]:
            return board[a]
    return ""


def endings() -> Iterator[str]:
    """Every board at which a game can end, once."""
    seen, open_boards = set(), ["b" * 9]
    while open_boards:
        board = open_boards.pop()
        if winner(board) or "b" not in board:
            yield board
            continue
        mark = "x" if board.count("x") == board.count("o") else "o"
        for square, there in enumerate(board):
            following = board[:square] + mark + board[square + 1 :]
            if there == "b" and following not in seen:
                seen.add(following)
                open_boards.append(following)
