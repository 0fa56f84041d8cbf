from itertools import product

from cfbench_tabular.datasets.tic_tac_toe import Config, TicTacToe


def boards():
    table = TicTacToe(Config()).load()
    marks = zip(*(table.values[column.name] for column in table.columns), strict=True)
    return {"".join(row): label for row, label in zip(marks, table.target, strict=True)}


def test_boards_by_hand():
    """Won by x in its third move; by o; and full with no one's three in a row."""
    found = boards()
    assert found["xxxoobbbb"] == "positive"
    assert found["oooxxbxbb"] == "negative"
    assert found["xoxxoooxx"] == "negative"
    assert "xxxbbbbbb" not in found  # x does not move three times running
    assert "xxbbbbbbb".replace("b", "o", 1) not in found  # no one has three in a row, and squares are free


def test_every_board_is_an_end_that_alternate_moves_can_reach():
    """All 19,683 fillings of the board, queried one by one: right numbers of marks, and the last move ended it."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    expected = {}
    for filling in product("xob", repeat=9):
        won = {filling[a] for a, b, c in lines if filling[a] == filling[b] == filling[c] != "b"}
        lead = filling.count("x") - filling.count("o")
        if len(won) == 2 or lead not in (0, 1):
            continue
        if (won == {"x"} and lead == 1) or (won == {"o"} and lead == 0) or (not won and "b" not in filling):
            expected["".join(filling)] = "positive" if won == {"x"} else "negative"
    assert boards() == expected
    assert len(expected) == 958


def test_the_rows_are_those_of_the_real_file_in_its_order(study):
    ours = [(*board, "1" if label == "positive" else "0") for board, label in boards().items()]
    assert study.rows("TicTacToe") == ours
