"""The oracle is torch.optim.Adam, bit by bit."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from cfbench_recsys.recommenders.adam import Adam


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_those_of_torch(dtype: torch.dtype) -> None:
    """Two learning rates, a parameter that is added later, and steps in which one has no gradient."""
    draw = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=draw, dtype=dtype) for shape in ((7, 33), (5,), (4, 3))]
    ours, theirs = ([value.clone().requires_grad_() for value in values] for _ in range(2))
    optimizer, oracle = Adam(ours[:2], 0.03), torch.optim.Adam(theirs[:2], lr=0.03)
    for step in range(200):
        if step == 20:
            optimizer.add(ours[2:], 0.5)
            oracle.add_param_group({"params": theirs[2:], "lr": 0.5})
        used = [
            place for place in range(3) if (place < 2 or step >= 20) and not (place == 1 and step % 7 == 3)
        ]
        factors = [torch.randn(values[place].shape, generator=draw, dtype=dtype) for place in used]
        for one, parameters in ((optimizer, ours), (oracle, theirs)):
            one.zero_grad()
            loss = sum(
                (torch.tanh(parameters[place]) * factor).sum() + (parameters[place] ** 2).sum()
                for place, factor in zip(used, factors, strict=True)
            )
            loss.backward()
            one.step()
    for own, wanted, start in zip(ours, theirs, values, strict=True):
        assert torch.equal(own, wanted)
        assert not torch.equal(own, start)


def test_it_does_not_import_the_compiler_of_torch() -> None:
    code = (
        "import sys, torch; from cfbench_recsys.recommenders.adam import Adam; "
        "p = torch.ones(2, requires_grad=True); (p * p).sum().backward(); Adam([p], 0.1).step(); "
        "print('%.4f' % float(p[0]), 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.9000", "False"]
