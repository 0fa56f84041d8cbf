"""Tests that need a GPU of NVIDIA; without one they are skipped, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in (item for item in items if Path(__file__).parent in item.path.parents):
        item.add_marker(pytest.mark.skip(reason="torch finds no GPU here"))
