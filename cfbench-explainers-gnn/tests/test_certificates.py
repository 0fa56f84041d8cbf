"""No method beats a certified row within its certificate: a run on a graph of Amazon Fashion."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core import run
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_recsys.testing.certificates import check_certificates

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


def test_no_method_beats_a_certified_row_on_amazon_fashion(tmp_path: Path) -> None:
    try:
        done = run(STUDY, out=tmp_path / "run", access=DataAccess(offline=True))
    except UserError as error:
        pytest.skip(str(error))
    if done.exit_code == 2:
        pytest.skip("amazon-fashion is not in the data directory (CFBENCH_DATA_DIR)")
    assert done.exit_code == 0
    found = check_certificates(done)
    assert found.beaten == ()
    assert found.compared > 50 and found.proven > 5, "else the test shows nothing"
