"""The how-to "Explain a model of another library", run with the libraries themselves where they are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cfbench_recsys.conversion import Conversion, convert
from cfbench_recsys.interactions import Interactions, from_pairs

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "explain-a-model-of-another-library.md"
RECBOLE = os.environ.get("CFBENCH_RECBOLE_PYTHON", "")
SECONDS = 600

pytestmark = pytest.mark.skipif(not HOW_TO.exists(), reason="the documentation is not here")


def script(title: str, folder: Path) -> Path:
    """A script of the how-to, written into a folder."""
    text = HOW_TO.read_text(encoding="utf-8")
    (found,) = re.findall(rf'```python title="{re.escape(title)}"\n(.*?)```', text, re.DOTALL)
    path = folder / title
    path.write_text(found, encoding="utf-8")
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Interactions:
    """Interactions in ``ratings.csv``, with identifiers that are not in the order of rows."""
    draw = np.random.default_rng(3)
    pairs = [(user * 7 % 41 + 100, item) for user in range(25) for item in draw.choice(18, 6, replace=False)]
    lines = ["user,item,time", *(f"{user},{item},0" for user, item in pairs)]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return from_pairs("ratings", *(np.array(side).astype(str) for side in zip(*pairs, strict=True)))


def run(python: str, *command: str | Path, folder: Path) -> None:
    done = subprocess.run(
        [python, "-W", "ignore", *map(str, command)], cwd=folder, capture_output=True, text=True, timeout=SECONDS,
        check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


Recommender = Callable[[Conversion, Any], Any]


def test_a_model_of_implicit(ratings: Interactions, tmp_path: Path, recommender: Recommender) -> None:
    als = pytest.importorskip("implicit.cpu.als", reason="the library implicit is not installed")
    run(sys.executable, script("export_implicit.py", tmp_path), folder=tmp_path)
    items = tuple((tmp_path / "items.txt").read_text().split())
    conversion = convert(tmp_path / "als.npz", ratings, tmp_path / "w.safetensors", items=items)
    model = recommender(conversion, ratings.matrix)

    peer = als.AlternatingLeastSquares.load(str(tmp_path / "als.npz"))
    matrix = ratings.matrix.astype(np.float32).tocsr()
    users = peer.recalculate_user(np.arange(matrix.shape[0]), matrix)
    np.testing.assert_allclose(model.score_profiles(ratings.matrix), users @ peer.item_factors.T, atol=1e-4)


def test_a_model_of_lenskit(ratings: Interactions, tmp_path: Path, recommender: Recommender) -> None:
    pytest.importorskip("lenskit", reason="LensKit is not installed")
    check = tmp_path / "check.py"
    check.write_text(
        script("export_lenskit.py", tmp_path).read_text() + "from lenskit.data import ItemList, RecQuery\n"
        "everything = ItemList(item_ids=scorer.items.ids())\n"
        "rows = []\n"
        "for user, group in table.groupby('user_id'):\n"
        "    query = RecQuery(user_id=user, user_items=ItemList(item_ids=group['item_id'].to_numpy()))\n"
        "    rows.append(scorer(query, everything).scores())\n"
        "np.savez('expected.npz', scores=np.array(rows), items=scorer.items.ids().astype(str))\n",
        encoding="utf-8",
    )
    run(sys.executable, check, folder=tmp_path)
    model = recommender(
        convert(tmp_path / "lenskit.npz", ratings, tmp_path / "w.safetensors"), ratings.matrix
    )

    with np.load(tmp_path / "expected.npz") as known:
        order = [known["items"].tolist().index(id) for id in ratings.item_ids.tolist()]
        expected = known["scores"][:, order]
    np.testing.assert_allclose(model.score_profiles(ratings.matrix), expected, atol=1e-4)


@pytest.mark.skipif(
    not RECBOLE, reason="CFBENCH_RECBOLE_PYTHON names no interpreter with RecBole (nox -s libraries)"
)
def test_models_of_recbole(check_recbole: Callable[[Path, str], None], tmp_path: Path) -> None:
    folder = tmp_path / "recbole"
    folder.mkdir()
    train = Path(__file__).parent / "recbole_models.py"
    run(RECBOLE, train, script("export_recbole.py", tmp_path), folder, folder=tmp_path)
    for name in ("LightGCN", "MultiVAE", "EASE", "ItemKNN"):
        check_recbole(folder, name)


def test_the_commands_of_the_how_to_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With files that RecBole and implicit wrote."""
    from cfbench_recsys.conversion.command import command

    samples = Path(__file__).parent.parent / "samples" / "recbole"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_bytes((samples / "ratings.csv").read_bytes())
    (tmp_path / "exported.pt").write_bytes((samples / "LightGCN.pt").read_bytes())
    text = HOW_TO.read_text(encoding="utf-8")
    (line,) = re.findall(r"^cfbench convert (exported\.pt .*)$", text, re.MULTILINE)
    done = CliRunner().invoke(command, line.split())
    assert done.exit_code == 0, done.output
    assert done.output.strip() in text
