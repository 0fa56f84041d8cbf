"""Amazon Fashion: the rule on small files in the owner's formats, and the counts on the real one."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_recsys.datasets.amazon_fashion import EXPECTED, AmazonFashion, Config
from cfbench_recsys.interactions import Interactions

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))

RATED = [(f"U{user}", f"B{item}", 5.0, 1000 + user) for user in range(3) for item in range(3)]
EXTRA = [("U0", "B9", 5.0, 1), ("U1", "B3", 3.0, 2), ("U2", "B3", 4.0, 3), ("U0", "B0", 4.0, 9000)]
"""Above 3 and with three each, U0..U2 and B0..B2 are left; U0 bought B0 twice."""


def fashion(path: Path | None) -> Interactions:
    dataset = AmazonFashion(Config(path=None if path is None else str(path)))
    return dataset.load(dataset.find(DataAccess(offline=True)).parameters())


def check(data: Interactions) -> None:
    assert data.user_ids.tolist() == ["U0", "U1", "U2"]
    assert data.item_ids.tolist() == ["B0", "B1", "B2"]
    assert data.matrix.toarray().tolist() == [[1, 1, 1]] * 3
    assert data.about["duplicates"] == 1
    assert data.times is not None and data.times[0] == 9000
    assert data.about["differences"][0] == "3 users, published: 1,275"


def test_the_rule_on_the_owners_ratings(tmp_path: Path) -> None:
    rows = ["user_id,parent_asin,rating,timestamp"] + [",".join(map(str, row)) for row in RATED + EXTRA]
    path = tmp_path / "Amazon_Fashion.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    data = fashion(path)
    check(data)
    assert data.item_names.tolist() == ["B0", "B1", "B2"]


def test_the_rule_on_the_owners_reviews_with_titles(tmp_path: Path) -> None:
    reviews = [
        {"rating": r, "text": "so \n nice", "asin": "X", "parent_asin": i, "user_id": u, "timestamp": t}
        for u, i, r, t in RATED + EXTRA
    ]
    path = tmp_path / "Amazon_Fashion.jsonl"
    path.write_text("".join(json.dumps(review) + "\n" for review in reviews))
    titles = [{"parent_asin": "B1", "title": "Hat"}, {"parent_asin": "B2", "title": None}, {"title": "?"}]
    meta = "".join(json.dumps(title) + "\n" for title in titles)
    (tmp_path / "meta_Amazon_Fashion.jsonl.gz").write_bytes(gzip.compress(meta.encode()))
    data = fashion(path)
    check(data)
    assert data.item_names.tolist() == ["B0", "Hat", "B2"]


def test_a_review_that_is_cut_short_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "Amazon_Fashion.jsonl"
    path.write_text('{"user_id": "U", "parent_asin": "B", "rating": 5.0}\n{"user_id": "U", "par')
    with pytest.raises(UserError, match=":2: is not a JSON object"):
        fashion(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fashion.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"amazon-fashion cannot be read from this file; it must be like"):
        fashion(path)


def test_the_real_data_have_the_published_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(DATA))
    try:
        data = fashion(None)
    except UserError as error:
        pytest.skip(str(error))
    assert tuple(data.counts().values()) == EXPECTED
    assert data.about["differences"] == []
    assert data.item_ids[:11].tolist() == [str(number) for number in range(11)]
