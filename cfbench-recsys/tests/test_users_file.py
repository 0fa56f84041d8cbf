"""Users to explain that are listed in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.errors import UserError
from cfbench_recsys.interactions import from_pairs
from cfbench_recsys.splits import Split
from cfbench_recsys.testing.world import without_validation
from cfbench_recsys.users_file import users_in_file

DATA = from_pairs("shop", ["ann", "bob", "NA"], ["x", "x", "y"])


def split() -> Split:
    return without_validation(DATA.matrix)


def names(path: Path, content: str) -> list[str]:
    path.write_text(content)
    return [str(DATA.user_ids[user]) for user in users_in_file(path, DATA, split())]


@pytest.mark.parametrize(
    ("content", "users"),
    [
        ("user\nbob\nann\n", ["bob", "ann"]),
        ("user\n bob\nann \n", ["bob", "ann"]),
        ("user , place\nNA,1\n", ["NA"]),
        ("user\nbob\nbob \n", ["bob"]),
        ("user,place,\nbob,ann,\n", ["bob"]),
    ],
)
def test_identifiers_are_read_as_those_of_the_data(tmp_path: Path, content: str, users: list[str]) -> None:
    assert names(tmp_path / "users.csv", content) == users


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("user\n", "names no user"),
        ("who\nbob\n", "needs a column 'user', has who"),
        ("user\nbobb\n", "'bobb' is not a user of shop"),
        ("", "cannot be read as a table"),
        ("user,place\nbob,ann,\n", "its rows have more values than its header has columns"),
        ("user,place\nbob,1\nann,1,2\n", "cannot be read as a table: .*Expected 2 fields in line 3, saw 3"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        names(tmp_path / "users.csv", content)
    assert len(caught.value.lines) == 1
