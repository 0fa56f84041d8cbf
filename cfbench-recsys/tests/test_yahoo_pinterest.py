"""Yahoo! Music, Yahoo! R3 and Pinterest: the rules, on small files in their owners' formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_recsys.datasets import pinterest, yahoo_music, yahoo_r3

OFFLINE = DataAccess(offline=True)


def written(path: Path, rows: list[tuple[object, ...]], separator: str = "\t") -> Path:
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def loaded(dataset):
    return dataset.load(dataset.find(OFFLINE).parameters())


def test_never_again_is_no_rating_of_255(tmp_path):
    rows = [(1, 5, 90), (1, 6, 71), (1, 7, 255), (2, 5, 100), (2, 6, 80), (2, 7, 70), (3, 7, 255), (3, 5, 99)]
    path = written(tmp_path / "ydata-ymusic-user-artist-ratings-v1_0.txt", rows)
    data = loaded(yahoo_music.YahooMusic(yahoo_music.Config(path=str(path))))
    assert data.user_ids.tolist() == ["1", "2"]
    assert data.item_ids.tolist() == ["5", "6"]
    assert data.matrix.toarray().tolist() == [[1, 1], [1, 1]]
    assert data.about["differences"][2] == "4 interactions, published: 365,750"


def test_a_sample_with_a_header_is_read_too(tmp_path):
    rows = [("user", "item", "rating"), *((user, item, 80) for user in "ab" for item in "xy")]
    path = written(tmp_path / "yahoo-music.csv", rows, ",")
    data = loaded(yahoo_music.YahooMusic(yahoo_music.Config(path=str(path))))
    assert data.counts() == {"users": 2, "items": 2, "interactions": 4}


def test_r3_retains_ratings_of_four_and_five(tmp_path):
    rows = [(1, 1, 5), (1, 2, 4), (1, 3, 3), (2, 1, 4), (2, 2, 5), (2, 3, 5), (3, 3, 1)]
    path = written(tmp_path / "ydata-ymusic-rating-study-v1_0-train.txt", rows)
    data = loaded(yahoo_r3.YahooR3(yahoo_r3.Config(path=str(path))))
    assert data.matrix.toarray().tolist() == [[1, 1], [1, 1]]
    assert data.about["differences"] == []


def test_data_on_request_are_reported_as_such(tmp_path, monkeypatch):
    for name in ("CFBENCH_DATA_DIR", "CFBENCH_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="Ask Yahoo for 'R3"):
        yahoo_r3.YahooR3(yahoo_r3.Config()).find(DataAccess())


def ncf_files(folder: Path, users: int) -> Path:
    """Everybody has pinned 0 and 1, and the even ones 2, which stands in the test file."""
    pairs = [(user, item, 1, 0) for user in range(users) for item in (0, 1)]
    written(folder / pinterest.TEST, [(user, 2, 1, 0) for user in range(0, users, 2)])
    return written(folder / pinterest.TRAIN, pairs)


def test_training_and_test_file_of_ncf_are_put_together(tmp_path):
    path = ncf_files(tmp_path, 6)
    data = loaded(pinterest.Pinterest(pinterest.Config(path=str(path), users=None)))
    assert data.matrix.toarray().tolist() == [[1, 1, 1], [1, 1, 0]] * 3
    assert data.about["rule"] == "recursively, users and items with at least 2"


def test_users_are_drawn_the_same_every_time(tmp_path):
    path = ncf_files(tmp_path, 30)
    first, again = (loaded(pinterest.Pinterest(pinterest.Config(path=str(path), users=12))) for _ in range(2))
    drawn = np.array(sorted(map(str, range(30))))[np.random.RandomState(42).permutation(30)[:12]]
    assert sorted(first.user_ids.tolist()) == sorted(drawn.tolist()) == sorted(again.user_ids.tolist())
    assert first.about["rule"].startswith("12 users drawn")
    assert "12 users, published: 19,155" in first.about["differences"]


def test_a_sample_of_ones_own_is_taken_as_it_is(tmp_path):
    path = written(
        tmp_path / "pinterest.csv", [("user", "item"), *((u, i) for u in "abc" for i in "xyz")], ","
    )
    data = loaded(pinterest.Pinterest(pinterest.Config(path=str(path), users=1)))
    assert data.counts()["users"] == 3
