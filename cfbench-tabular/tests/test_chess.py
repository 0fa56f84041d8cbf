from collections import Counter
from itertools import product

import numpy as np
import pytest

from cfbench_tabular.datasets.chess import DEPTHS, Chess, Config

KING = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0)]
UCI = (2796, 27, 78, 246, 81, 198, 471, 592, 683, 1433, 1712, 1985, 2854, 3597, 4194, 4553, 2166, 390)
"""How many of each class (draw, zero, one, ...) UCI's description of the data set counts."""


@pytest.fixture(scope="module")
def positions():
    """Every position and its mirror images: ((white king), (rook), (black king)) -> moves until mate, or -1."""
    table = Chess(Config(depth=True)).load()
    found = {}
    columns = [table.values[column.name] for column in table.columns]
    for *squares, label in zip(*columns, table.target, strict=True):
        numbers = ["abcdefgh".index(s) if s.isalpha() else int(s) - 1 for s in squares]
        pieces = list(zip(numbers[::2], numbers[1::2], strict=True))
        for image in images(pieces):
            found[image] = DEPTHS.index(label) - 1
    return found


def images(pieces):
    for across, up, turned in product((0, 1), repeat=3):
        moved = [(7 - x if across else x, 7 - y if up else y) for x, y in pieces]
        yield tuple((y, x) if turned else (x, y) for x, y in moved)


def test_a_mate_and_a_lost_rook_by_hand(positions):
    king, rook, black = (1, 2), (7, 0), (1, 0)  # white b3, rook h1, black b1
    assert positions[king, rook, black] == 0
    assert positions[(3, 3), (0, 1), (0, 0)] == -1  # Black takes the rook on a2
    assert ((0, 0), (5, 5), (1, 1)) not in positions  # kings do not stand side by side


def test_there_are_as_many_of_each_depth_as_uci_counts():
    found = Counter(Chess(Config(depth=True)).load().target.tolist())
    assert found == dict(zip(DEPTHS, UCI, strict=True))
    assert sum(found.values()) == 28_056


def test_depths_agree_with_those_one_move_later(positions):
    """Every legal move of both sides, played out square by square, for a sample of positions."""
    generator = np.random.default_rng(0)
    every = sorted(positions)
    for place in generator.choice(len(every), 1500, replace=False):
        king, rook, black = every[place]
        assert positions[king, rook, black] == played_out(positions, king, rook, black)


def test_the_study_reported_a_draw_from_a_win(study):
    """In UCI's order, which is by depth: so the depths that the file no longer shows are confirmed as well."""
    table = Chess(Config()).load()
    assert table.classes() == ("draw", "win")
    target = ["0" if label == "draw" else "1" for label in table.target]
    ours = list(zip(*(table.values[column.name] for column in table.columns), target, strict=True))
    assert study.rows("Chess") == ours


def played_out(positions, king, rook, black):
    """Black moves, then White: the depth that the positions after them give. -1 for a draw."""
    longest, moved = 0, False
    for to in steps(black):
        if near(to, king):
            continue
        if to == rook:
            return -1
        if not sees(rook, to, king):
            moved = True
            results = [positions.get(reply, -1) for reply in whites_moves(king, rook, to)]
            wins = [depth for depth in results if depth >= 0]
            if not wins:
                return -1
            longest = max(longest, 1 + min(wins))
    if moved:
        return longest
    return 0 if sees(rook, black, king) else -1


def whites_moves(king, rook, black):
    for to in steps(king):
        if to != rook and not near(to, black):
            yield to, rook, black
    for to in product(range(8), repeat=2):
        if to not in (rook, king, black) and sees(rook, to, king, black):
            yield king, to, black


def steps(square):
    squares = [(square[0] + x, square[1] + y) for x, y in KING]
    return [(x, y) for x, y in squares if 0 <= x < 8 and 0 <= y < 8]


def near(one, other):
    return max(abs(one[0] - other[0]), abs(one[1] - other[1])) <= 1


def sees(rook, square, *others):
    """Whether the rook stands in line with a square, and no one between."""
    if rook == square or (rook[0] != square[0] and rook[1] != square[1]):
        return False
    axis = 1 if rook[0] == square[0] else 0
    low, high = sorted((rook[axis], square[axis]))
    return not any(other[1 - axis] == rook[1 - axis] and low < other[axis] < high for other in others)
