"""A file of the user's own: guessed and named columns, thresholds, and all that can be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_recsys.datasets.file import Config, File
from cfbench_recsys.interactions import Interactions

TABLE = (
    "userId,movieId,rating,timestamp,title\n1,0,4.5,10,Heat\n1,2,2,11,Jaws\n0,0,5,12,Heat\n0,2,4,13,Jaws\n"
)


def read(path: Path, **options: Any) -> Interactions:
    dataset = File(Config(path=str(path), **options))
    return dataset.load(dataset.find(DataAccess(offline=True)).parameters())


def csv(folder: Path, content: str = TABLE, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def test_usual_names_are_found_and_identifiers_stay_as_they_are(tmp_path: Path) -> None:
    data = read(csv(tmp_path))
    assert data.name == "mine"
    assert data.user_ids.tolist() == ["0", "1"]
    assert data.item_ids.tolist() == data.item_names.tolist() == ["0", "2"]
    assert data.matrix.toarray().tolist() == [[1, 1], [1, 1]]
    assert data.times is not None and data.times.tolist() == [12, 13, 10, 11]
    assert data.about["rule"] == "every row"


def test_ratings_below_the_least_are_no_interactions(tmp_path: Path) -> None:
    data = read(csv(tmp_path), min_rating=4, item_name="title")
    assert data.matrix.toarray().tolist() == [[1, 1], [1, 0]]
    assert data.item_names.tolist() == ["Heat", "Jaws"]
    assert data.about["rule"] == "ratings of at least 4"


def test_the_core_is_recursive(tmp_path: Path) -> None:
    rows = ["user,item", "a,x", "a,y", "b,x", "b,y", "b,z", "c,z"]
    data = read(csv(tmp_path, "\n".join(rows)), k_core=2)
    assert data.user_ids.tolist() == ["a", "b"]
    assert data.item_ids.tolist() == ["x", "y"]


def test_columns_can_be_named_also_by_their_place(tmp_path: Path) -> None:
    named = read(
        csv(tmp_path, "who;what;when\na;x;2024-01-01\nb;x;2024-01-02\n"), user="who", item="what", time="when"
    )
    assert named.times is not None and named.times[1] - named.times[0] == 86400
    unnamed = read(
        csv(tmp_path, "5 a x\n5 b y\n", "mine.txt"), separator=" ", header=False, user="2", item="3"
    )
    assert unnamed.user_ids.tolist() == ["a", "b"]
    in_order = read(csv(tmp_path, "7\t1\t5\t100\n8\t1\t3\t200\n", "u.data"), min_rating=4)
    assert in_order.user_ids.tolist() == ["7"]
    assert in_order.times is not None and in_order.times.tolist() == [100]


def test_a_parquet_file_is_read_like_text(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "mine.parquet"
    pd.DataFrame({"user": [1, 0], "item": ["x", "y"], "rating": [5, 1]}).to_parquet(path)
    assert read(path, min_rating=2).user_ids.tolist() == ["1"]


@pytest.mark.parametrize(
    ("rows", "liked"),
    [
        (["a,x,5,1", "a,x,1,2"], []),  # the user changed their mind
        (["a,x,1,2", "a,x,5,1"], []),  # the same in another order of the file
        (["a,x,1,1", "a,x,5,2"], [("a", "x")]),
        (["a,x,5,1", "a,x,1,1"], []),  # of equal times the last row
        (["a,x,1,1", " a ,x,5,2"], [("a", "x")]),  # blanks are no part of an identifier
        (["a,x,5,1", "a,y,1,2"], [("a", "x")]),  # another item
        (["a,x,1,1", "a,x,5,3", "a,x,2,2"], [("a", "x")]),
        (["a,x,5,1", "a,y,1,later"], [("a", "x")]),  # a time that decides nothing
    ],
)
def test_the_latest_rating_of_a_pair_decides_whether_it_is_an_interaction(
    tmp_path: Path, rows: list[str], liked: list[tuple[str, str]]
) -> None:
    path = csv(tmp_path, "\n".join(["user,item,rating,time", *rows, "other,z,5,9"]))
    data = read(path, min_rating=4)
    users, items = data.matrix.nonzero()
    pairs = set(zip(data.user_ids[users].tolist(), data.item_ids[items].tolist(), strict=True))
    assert pairs == {*liked, ("other", "z")}
    assert data.about["duplicates"] == len(rows) - len(
        {tuple(map(str.strip, r.split(",")[:2])) for r in rows}
    )


def test_without_times_the_last_rating_of_a_pair_decides(tmp_path: Path) -> None:
    data = read(csv(tmp_path, "user,item,rating\na,x,5\na,x,1\nb,y,1\nb,y,4\n"), min_rating=4)
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == (["b"], ["y"])


def test_duplicates_are_counted(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "user,item\na,x\na,x\nb,x\n")).about["duplicates"] == 1


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("", {}, "is empty"),
        ("user,item\n", {}, "has a header, but no rows"),
        (
            "user,thing\n1,2\n",
            {},
            "no column looks like the item; name it with 'item: ...'. Its columns: user, thing",
        ),
        (TABLE, {"user": "movieId"}, "user and item are the same column, 'movieId'; name both"),
        ("u,x\n1,2\n", {"user": "u", "item": "u"}, "user and item are the same column, 'u'"),
        (TABLE, {"user": "userid"}, "has no column 'userid' for user. Did you mean 'userId'?"),
        (
            "user,item\n1,2\n",
            {"min_rating": 4},
            "min_rating needs a rating, and no column has a usual name for it",
        ),
        ("user,item,rating\n1,2,good\n", {"min_rating": 4}, "row 1: column rating: 'good' is not a number"),
        ("user,item\n1,2\n,3\n", {}, "row 2: column user is empty (1 such rows)"),
        ("user,item,time\n1,2,later\n", {}, "row 1: column time: 'later' is not a number or a date"),
        (
            "user,item,rating\n1,2,3\n1,3,2.5\n",
            {"min_rating": 4},
            "min_rating: 4 is above all ratings: of 2 rows the highest has 3 in the column rating",
        ),
        (
            "user,item\n1,2\n",
            {"k_core": 2},
            "no interactions are left where every user and item has at least 2",
        ),
        ("a,b\nx,y\n", {}, "set 'header: true' or 'header: false'"),
    ],
)
def test_an_invalid_file_is_an_error_of_one_line(
    tmp_path: Path, content: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as caught:
        read(csv(tmp_path, content), **options)
    assert len(caught.value.lines) == 1
    assert words in caught.value.lines[0]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.csv: no such file"):
        read(tmp_path / "nowhere.csv")
