"""No method beats a certified row within its certificate: a run on a graph of Amazon Fashion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfbench_core import run
from cfbench_core.data_files import DataAccess
from cfbench_recsys.testing.certificates import check_certificates

DATA = Path(os.environ.get("CFBENCH_DATA_DIR") or Path(__file__).parents[3] / "shared" / "data")
DATA_THERE = any((DATA / "recsys").glob("amazon-fashion*"))
STUDY = {
    "suite": "recsys",
    "data": "amazon-fashion",
    "recommenders": [{"name": "lightgcn", "epochs": 10}],
    "explainers": [
        "random-edges", "one-gradient", "gradient-greedy", "unr-explainer",
        {"name": "cf-gnnexplainer", "steps": 10}, {"name": "c2explainer", "steps": 10},
        {"name": "exhaustive-edges", "max_size": 2},
    ],
    "protocol": {"k": [3], "format": "explicit", "scope": ["user-only", {"k-hop": 1}], "users": 6},
    "metrics": ["pn-s", "num-edits"],
    "executor": "inline",
}  # fmt: skip


@pytest.mark.skipif(not DATA_THERE, reason="no amazon-fashion in the data folder (CFBENCH_DATA_DIR)")
def test_no_method_beats_a_certified_row_on_amazon_fashion(tmp_path: Path) -> None:
    done = run(STUDY, out=tmp_path / "run", access=DataAccess(data_dir=DATA, offline=True))
    assert done.exit_code == 0
    found = check_certificates(done)
    assert found.beaten == ()
    assert found.compared > 50 and found.proven > 5, "else the test shows nothing"
