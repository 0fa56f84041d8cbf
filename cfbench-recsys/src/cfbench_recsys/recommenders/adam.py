"""torch's Adam, step by step, without its class of optimisers.

The first object of ``torch.optim`` that a process makes imports torch's compiler: 1.1 s of CPU time, which fitting a small
model does not otherwise need. The function that computes the steps (``torch.optim.adam.adam``) does without.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Adam:
    """Minimises what the gradients of its parameters belong to, with the defaults of ``torch.optim.Adam``.

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
        self.mean, self.square = torch.zeros_like(parameter), torch.zeros_like(parameter)
        self.steps = torch.zeros(())

    def move(self, gradient: Any) -> None:
        from torch.optim.adam import adam

        adam(
            [self.parameter],
            [gradient],
            [self.mean],
            [self.square],
            [],
            [self.steps],
            foreach=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
