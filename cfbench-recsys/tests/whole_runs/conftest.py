"""A shop of 33 users, some of them awkward; runs have a cache of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))  # for studies.py
ITEMS = 12


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(FOLDER.parent / "samples")  # where my_lab and bad_lab are found


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 users with tastes, one with a single interaction, one with all items but one, one with all."""
    rng = np.random.default_rng(0)
    lines = ["user,item"]
    for user in range(30):
        own = np.arange(ITEMS) // 4 == user % 3
        lines += [
            f"u{user:02},i{item:02}" for item in np.flatnonzero(rng.random(ITEMS) < np.where(own, 0.7, 0.2))
        ]
    lines += [
        "one,i03",
        *(f"nearly,i{item:02}" for item in range(11)),
        *(f"all,i{item:02}" for item in range(12)),
    ]
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
