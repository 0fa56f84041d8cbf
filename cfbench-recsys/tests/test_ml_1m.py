"""MovieLens 1M, 100K and 20M: the rule on small files in the owner's formats, and the counts on real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_recsys.datasets import ml_1m, ml_20m, ml_100k
from cfbench_recsys.interactions import Interactions

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
OFFLINE = DataAccess(offline=True)

RATED = [
    # user, item, rating, time
    (1, 10, 5, 100),
    (1, 9, 4, 200),
    (1, 7, 3, 300),
    (2, 10, 4, 400),
    (2, 9, 5, 500),
    (3, 9, 5, 600),
    (3, 7, 5, 700),
]
"""Above 3.5: user 3's film 7 has one user only, so it goes, and then user 3, who has one film left."""


def check(data: Interactions, names: list[str]) -> None:
    assert data.user_ids.tolist() == ["1", "2"]
    assert data.item_ids.tolist() == ["9", "10"]
    assert data.item_names.tolist() == names
    assert data.matrix.toarray().tolist() == [[1, 1], [1, 1]]
    assert data.times is not None and data.times.tolist() == [200, 100, 500, 400]


def ml_1m_of(path: Path) -> Interactions:
    dataset = ml_1m.MovieLens1M(ml_1m.Config(path=str(path)))
    return dataset.load(dataset.find(OFFLINE).parameters())


def ml_100k_of(path: Path) -> Interactions:
    dataset = ml_100k.MovieLens100K(ml_100k.Config(path=str(path)))
    return dataset.load(dataset.find(OFFLINE))


def test_the_rule_on_the_owners_files_of_ml_1m(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text("".join("::".join(map(str, row)) + "\n" for row in RATED))
    titles = '9::Léon (1994)::Crime\n10::Heat: a "film" (1995)::Action|Crime\n'
    (tmp_path / "movies.dat").write_bytes(titles.encode("latin-1"))
    data = ml_1m_of(path)
    check(data, ["Léon (1994)", 'Heat: a "film" (1995)'])
    assert data.about["differences"][0] == "2 users, published: 6,037"


def test_the_rule_on_the_owners_files_of_ml_100k(tmp_path: Path) -> None:
    path = tmp_path / "u.data"
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in RATED))
    titles = "9|Léon (1994)|01-Jan-1994||http://x|0|1\n10|Heat (1995)|01-Jan-1995||http://y|0|0\n"
    (tmp_path / "u.item").write_bytes(titles.encode("latin-1"))
    check(ml_100k_of(path), ["Léon (1994)", "Heat (1995)"])


def test_the_rule_on_the_owners_files_of_ml_20m(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = [(user, item, 3.5 if rating == 3 else float(rating), time) for user, item, rating, time in RATED]
    path.write_text(
        "userId,movieId,rating,timestamp\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    (tmp_path / "movies.csv").write_text('movieId,title,genres\n9,Léon,Crime\n10,"Heat, a film",Action\n')
    dataset = ml_20m.MovieLens20M(ml_20m.Config(path=str(path)))
    data = dataset.load(dataset.find(OFFLINE).parameters())
    check(data, ["Léon", "Heat, a film"])
    assert data.about["differences"] == []


def test_the_rule_on_atomic_files(tmp_path: Path) -> None:
    path = tmp_path / "ml-100k.inter"
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    path.write_text(header + "".join("\t".join(map(str, row)) + "\n" for row in RATED))
    (tmp_path / "ml-100k.item").write_text("item_id:token\tmovie_title:token_seq\n9\tLéon\n10\tHeat\n")
    check(ml_100k_of(path), ["Léon", "Heat"])


def test_titles_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text("".join("::".join(map(str, row)) + "\n" for row in RATED))
    check(ml_1m_of(path), ["9", "10"])


def test_a_rating_that_is_no_number_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text("1::10::5::1\n1::9::four::2\n")
    with pytest.raises(UserError) as caught:
        ml_1m_of(path)
    assert caught.value.lines == (f"{path}: row 2: column 3: 'four' is not a number (1 such rows)",)


def test_a_prepared_table_without_a_column_is_one_line(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "ml-1m.parquet"
    pd.DataFrame({"user": [1], "film": [2]}).to_parquet(path)
    with pytest.raises(UserError, match=r"no column looks like the item; .*Its columns: user, film"):
        ml_1m_of(path)


@pytest.mark.parametrize(
    ("name", "dataset", "expected"),
    [
        ("ml-1m", ml_1m.MovieLens1M(ml_1m.Config()), ml_1m.EXPECTED),
        ("ml-100k", ml_100k.MovieLens100K(ml_100k.Config()), ml_100k.EXPECTED),
    ],
)
def test_the_real_data_have_the_published_counts(
    name: str,
    dataset: ml_1m.MovieLens1M | ml_100k.MovieLens100K,
    expected: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(DATA))
    try:
        source: Source = dataset.find(OFFLINE)
    except UserError as error:
        pytest.skip(str(error))
    data = dataset.load(source)
    assert tuple(data.counts().values()) == expected
    assert data.about["differences"] == []
    assert data.item_names[0].startswith("Toy Story")
