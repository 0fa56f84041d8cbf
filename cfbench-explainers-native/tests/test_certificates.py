"""No method beats a certified row within its certificate: a run on MovieLens 100K."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfbench_core import run
from cfbench_core.data_files import DataAccess
from cfbench_recsys.testing.certificates import check_certificates

DATA = Path(os.environ.get("CFBENCH_DATA_DIR") or Path(__file__).parents[3] / "shared" / "data")
DATA_THERE = any((DATA / "recsys").glob("ml-100k*"))
STUDY = {
    "suite": "recsys",
    "data": "ml-100k",
    "recommenders": ["ease", {"name": "vae", "epochs": 2}],
    "explainers": [
        "random", "cosine", "leave-one-out", "exact-contribution", "lime-rs", "greedy", "beam",
        {"name": "exhaustive", "max_size": 2, "budget": 2_000}, "smallest",
    ],
    "protocol": {"k": [3], "format": "explicit", "users": 4},
    "metrics": ["pn-s", "num-edits"],
    "executor": "inline",
}  # fmt: skip


@pytest.mark.skipif(not DATA_THERE, reason="no ml-100k in the data folder (CFBENCH_DATA_DIR)")
def test_no_method_beats_a_certified_row_on_movielens(tmp_path: Path) -> None:
    done = run(STUDY, out=tmp_path / "run", access=DataAccess(data_dir=DATA, offline=True))
    assert done.exit_code == 0
    found = check_certificates(done)
    assert found.beaten == ()
    assert found.compared > 50 and found.proven > 5, "else the test shows nothing"
