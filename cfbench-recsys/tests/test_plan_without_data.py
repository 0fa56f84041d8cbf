"""A plan of data that are not here yet: it names what a run would download, and downloads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import cfbench_core.api
from cfbench_core.cli import main
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError

SAMPLES = Path(__file__).parent / "samples"
BY_INDEX = {"import": "my_lab:ByIndex", "label": "by-index"}  # no explainer is installed with this suite
STUDY = {"suite": "recsys", "data": "ml-1m", "recommenders": "mf", "explainers": [BY_INDEX]}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data directory, and no way out: a download would fail."""
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(SAMPLES))
    return tmp_path


def test_a_plan_names_what_a_run_would_download(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "study.yaml").write_text(yaml.safe_dump(STUDY))
    assert main(["plan", "study.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "ml-1m: is not here; a run would download it (" in err
    assert "by-index" in out
    assert not (nowhere / "cache" / "data").exists()
    assert main(["plan", "study.yaml", "--offline"]) == 2  # --offline: the missing files are reported
    assert "ml-1m: not found in" in capsys.readouterr().err


def test_a_plan_from_python_downloads_nothing_either(nowhere: Path) -> None:
    assert len(cfbench_core.api.plan(STUDY).to_run) > 0
    with pytest.raises(UserError, match="ml-1m: not found in"):
        cfbench_core.api.plan(STUDY, access=DataAccess(offline=True))
