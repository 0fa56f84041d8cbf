"""Adam, with the bits of ``torch.optim.Adam`` on the CPU.

Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1. With g the gradient of a parameter in
step t, and beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8,

    m <- beta_1 m + (1 - beta_1) g,        v <- beta_2 v + (1 - beta_2) g²,

    parameter <- parameter - rate / (1 - beta_1^t) m / (sqrt(v) / sqrt(1 - beta_2^t) + epsilon).

The first optimiser of ``torch.optim`` that a process makes imports torch's compiler, 1.1 s of CPU time that fitting a small
model does not otherwise need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Adam:
    """Minimises what the gradients of its parameters belong to.

    A parameter without a gradient is left alone, and its steps are not counted.
    """

    def __init__(self, parameters: Iterable[Any], learning_rate: float) -> None:
        self._states: list[_State] = []
        self.add(parameters, learning_rate)

    def add(self, parameters: Iterable[Any], learning_rate: float) -> None:
        """More parameters (tensors that require gradients), with a learning rate of their own."""
        self._states += [_State(parameter, learning_rate) for parameter in parameters]

    def zero_grad(self) -> None:
        """Forgets the gradients."""
        for state in self._states:
            state.parameter.grad = None

    def step(self) -> None:
        """Moves each parameter that has a gradient."""
        import torch

        with torch.no_grad():
            for state in self._states:
                if state.parameter.grad is not None:
                    state.move(state.parameter.grad)


class _State:
    def __init__(self, parameter: Any, learning_rate: float) -> None:
        import torch

        self.parameter, self.learning_rate = parameter, learning_rate
        self.mean, self.square = torch.zeros_like(parameter), torch.zeros_like(parameter)  # m and v
        self.steps = 0

    def move(self, gradient: Any) -> None:
        self.steps += 1
        first, second = BETAS
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        root = self.square.sqrt().div_(math.sqrt(1 - second**self.steps)).add_(EPSILON)
        self.parameter.addcdiv_(self.mean, root, value=-self.learning_rate / (1 - first**self.steps))
