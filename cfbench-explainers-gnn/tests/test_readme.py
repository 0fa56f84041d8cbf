"""The Python example of the README runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cfbench_recsys.recommenders.lightgcn import Config, LightGCN

README = Path(__file__).parent.parent / "README.md"


def test_the_example_turns_answers_into_explanations_and_back() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    draw = np.random.default_rng(0)
    interactions = sparse.csr_matrix((draw.random((30, 60)) < 0.2).astype(float))
    interactions[7, 42] = 0.0
    interactions.eliminate_zeros()
    model = LightGCN(Config(device="cpu", layers=2))
    names = ("user_embedding.weight", "item_embedding.weight")
    state = {name: draw.standard_normal((n, 4)) for name, n in zip(names, interactions.shape, strict=True)}
    model.load_state(state, interactions)
    space: dict[str, Any] = {"interactions": interactions, "model": model}
    exec(compile(code, str(README), "exec"), space)
    assert len(space["edits"]) == 1 and space["explanation"].edge_mask.shape[0] > 0
