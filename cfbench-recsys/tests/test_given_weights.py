"""Weights that were trained elsewhere: read exactly, or refused by the name and the type of an array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_recsys.given_weights import given_weights
from cfbench_recsys.interactions import Interactions

torch = pytest.importorskip("torch")

USERS, ITEMS = 3, 4
NAME = "embedding.weight"


def written(tensor: Any, folder: Path, form: str) -> Path:
    path = folder / f"weights.{form}"
    if form == "pt":
        torch.save({NAME: tensor}, path)
    else:
        from safetensors.torch import save_file

        save_file({NAME: tensor}, path)
    return path


def interactions() -> Interactions:
    users, items = np.arange(USERS).astype(str), np.arange(ITEMS).astype(str)
    return Interactions("toy", sparse.csr_matrix((USERS, ITEMS)), users, items, items)


@pytest.mark.parametrize("form", ["pt", "safetensors"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "bool"])
def test_real_numbers_are_read_exactly(form: str, dtype: str, tmp_path: Path) -> None:
    """bfloat16 has 8 bits of exponent and 7 of mantissa: the values here, among them extreme ones, fit into a float32."""
    numbers = torch.tensor([[1.0, -2.5, 0.0], [3e38, 1e-38, 1e-40]] * 2).to(getattr(torch, dtype))
    found = given_weights(written(numbers, tmp_path, form), interactions())[NAME]
    assert found.dtype == ("float32" if dtype == "bfloat16" else dtype)
    assert found.tolist() == numbers.tolist()


def test_numbers_of_other_types_keep_theirs_next_to_bfloat16(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    tensors = {
        NAME: torch.rand(ITEMS, 2).bfloat16(), "count": torch.tensor(7), "none": torch.zeros(0, 3).bfloat16(),
        "bias": torch.rand(5, dtype=torch.float64),
    }  # fmt: skip
    save_file(tensors, tmp_path / "weights.safetensors")
    found = given_weights(tmp_path / "weights.safetensors", interactions())
    assert {name: array.tolist() for name, array in found.items()} == {
        n: t.tolist() for n, t in tensors.items()
    }
    assert found["count"].dtype == np.int64 and found["bias"].dtype == np.float64
    assert found["none"].shape == (0, 3)


@pytest.mark.parametrize("form", ["pt", "safetensors"])
def test_complex_numbers_are_refused(form: str, tmp_path: Path) -> None:
    path = written(torch.ones(ITEMS, 2, dtype=torch.complex64), tmp_path, form)
    with pytest.raises(UserError, match=f"{NAME} must be real numbers, has the type complex64"):
        given_weights(path, interactions())


@pytest.mark.parametrize(
    ("tensor", "form", "reason"),
    [
        (torch.eye(ITEMS).to_sparse(), "pt", "has the type torch.float32 and layout torch.sparse_coo"),
        (
            torch.quantize_per_tensor(torch.ones(ITEMS, 2), 0.1, 0, torch.qint8),
            "pt",
            "has the type torch.qint8",
        ),
        (torch.ones(ITEMS, 2).to(torch.float8_e4m3fn), "pt", "has the type torch.float8_e4m3fn"),
        (
            torch.ones(ITEMS, 2).to(torch.float8_e4m3fn),
            "safetensors",
            "has the type F8_E4M3, which NumPy does not",
        ),
    ],
)
def test_what_is_no_dense_array_is_refused(tensor: Any, form: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{NAME} .*{reason}") as raised:
        given_weights(written(tensor, tmp_path, form), interactions())
    assert "\n" not in str(raised.value)
