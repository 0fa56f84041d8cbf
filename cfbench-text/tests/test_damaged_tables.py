"""What reads the tables of a run directory reports damage in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run
from cfbench_text.analysis.examples import Examples
from cfbench_text.verbalization import worst_hallucination

STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "generators": ["item-review"],
    "judges": ["overlap"],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        return Path(api.run(STUDY, out=folder / "run").directory)


def with_zeros(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    path.write_bytes(content)


def with_a_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("damage", [with_zeros, with_a_dangling_link, Path.unlink])
@pytest.mark.parametrize("name", ["scores.parquet", "explanations.parquet"])
def test_a_damaged_table_is_one_line_of_an_error(directory, tmp_path, capsys, name, damage) -> None:
    copy = tmp_path / "run"
    shutil.copytree(directory, copy)
    damage(copy / name)
    with pytest.raises(UserError, match=f"{name}: (has changed|is missing)"):
        worst_hallucination(Run(copy))
    if name == "explanations.parquet":
        with pytest.raises(UserError, match=f"{name}: (has changed|is missing)"):
            Examples(None).table([Run(copy)])
    assert main(["explain", str(copy)]) == 2
    assert name in capsys.readouterr().err
