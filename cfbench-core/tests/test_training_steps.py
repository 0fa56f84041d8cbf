"""Steps of a training in parts. The oracle is the gradient in closed form, of the whole batch."""

from __future__ import annotations

import gc
import math
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.devices.batches import DeviceMemoryError
from cfbench_core.devices.training_steps import TrainingSteps
from cfbench_core.errors import ResultWarning

RATE = 0.1


@pytest.fixture(autouse=True, scope="module")
def few_objects_to_collect() -> Iterator[None]:
    """Each shortage of memory collects garbage: only what these tests made is looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


class Regression:
    """Least squares of a line, on a device with memory for ``most`` examples.

    The memory ends before, or only after the gradients of a part have been added to the others.
    """

    def __init__(self, examples: int, most: int, late: bool = True) -> None:
        draw = np.random.default_rng(examples)
        self.x, self.y = draw.normal(size=(examples, 3)), draw.normal(size=examples)
        self.w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.w], lr=RATE)
        self.most, self.late, self.sizes = most, late, list[int]()

    def loss(self, part: slice) -> Any:
        size = part.stop - part.start
        self.sizes.append(size)
        x, y = torch.from_numpy(self.x[part]), torch.from_numpy(self.y[part])
        share = ((x @ self.w - y) ** 2).sum() / len(self.y)
        if size > self.most:
            if self.late:
                share.backward()  # type: ignore[no-untyped-call]
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB\nand more lines")
        return share

    def take(self, steps: TrainingSteps) -> float:
        return steps.take(self.optimizer, len(self.y), self.loss)

    def expected(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss of the whole batch, and the parameters after the step."""
        errors = self.x @ w - self.y
        return float((errors**2).mean()), w - RATE * 2 * self.x.T @ errors / len(errors)


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")
@settings(max_examples=30, deadline=None)  # each shortage collects garbage, which takes a while next to torch
@given(examples=st.integers(1, 40), most=st.integers(1, 45), late=st.booleans())
def test_steps_are_those_of_whole_batches(examples: int, most: int, late: bool) -> None:
    task, steps = Regression(examples, most, late), TrainingSteps("a line", "its slope")
    w = np.zeros(3)
    for _ in range(3):
        loss, w = task.expected(w)
        assert task.take(steps) == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(task.w.detach().numpy(), w, rtol=1e-12, atol=1e-12)
    fitting = [size for size in task.sizes if size <= most]
    assert sum(fitting) == 3 * examples
    assert len(task.sizes) - len(fitting) == _halvings(examples, most)  # what failed is not tried again


def _halvings(size: int, most: int) -> int:
    return 0 if size <= most else 1 + _halvings(size // 2, most)


def test_parts_are_halves_of_what_did_not_fit_and_stay_so() -> None:
    task, steps = Regression(10, most=3), TrainingSteps("a line", "its slope")
    with pytest.warns(ResultWarning):
        task.take(steps)
    assert task.sizes == [10, 5, 2, 2, 2, 2, 2]
    task.sizes.clear()
    task.take(steps)
    assert task.sizes == [2, 2, 2, 2, 2]
    small = Regression(2, most=3)
    small.take(steps)
    assert small.sizes == [2]


def test_a_step_begins_anew_where_a_later_part_does_not_fit() -> None:
    """The gradients of the parts before it must not count twice."""
    task, steps = Regression(8, most=4), TrainingSteps("a line", "its slope")
    calls = []

    def loss(part: slice) -> Any:
        calls.append((part.start, part.stop))
        task.most = 2 if calls[-1] == (4, 8) else task.most  # others took some of the memory meanwhile
        return task.loss(part)

    expected, w = task.expected(np.zeros(3))
    with pytest.warns(ResultWarning, match="computed 2 at a time"):
        assert steps.take(task.optimizer, 8, loss) == pytest.approx(expected, rel=1e-12)
    assert calls == [(0, 8), (0, 4), (4, 8), (0, 2), (2, 4), (4, 6), (6, 8)]
    np.testing.assert_allclose(task.w.detach().numpy(), w, rtol=1e-12, atol=1e-12)


def test_what_fits_is_computed_at_once_and_without_a_note() -> None:
    task = Regression(10, most=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task.take(TrainingSteps("a line", "its slope"))
    assert task.sizes == [10]


def test_the_note_says_what_was_divided_once() -> None:
    task, steps = Regression(10, most=5), TrainingSteps("a line", "its slope")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        task.take(steps)
        task.take(steps)
    (note,) = seen
    assert note.category is ResultWarning
    assert str(note.message) == (
        "training a line: the memory of the device did not suffice for a batch of 10, so it was computed 5 at a time; "
        "up to rounding, the steps are those of whole batches"
    )


def test_a_single_example_that_does_not_fit_says_what_to_make_smaller() -> None:
    task = Regression(5, most=0)
    wanted = r"a batch of one: make its slope smaller \(CUDA out of memory\. Tried to allocate 20\.00 GiB\)$"
    with pytest.raises(DeviceMemoryError, match=wanted):
        task.take(TrainingSteps("a line", "its slope"))
    assert task.sizes == [5, 2, 1]
    assert not task.w.detach().any()  # no step was made


def test_other_errors_are_not_caught() -> None:
    def fails(part: slice) -> Any:
        raise RuntimeError("shapes do not match")

    task = Regression(5, most=5)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        TrainingSteps("a line", "its slope").take(task.optimizer, 5, fails)


def test_graphs_of_failed_attempts_are_released() -> None:
    """What an attempt allocated is free when the next one begins."""
    alive: list[Any] = []

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return gradient * torch.ones_like(x)

    w = torch.ones(4, requires_grad=True)

    def loss(part: slice) -> Any:
        assert all(reference() is None for reference in alive)
        activations = 2 * w[part]
        share = Kept.apply(activations)  # type: ignore[no-untyped-call]
        alive.append(weakref.ref(activations))
        if part.stop - part.start > 1:
            raise torch.OutOfMemoryError
        return share

    with pytest.warns(ResultWarning):
        value = TrainingSteps("ones", "them").take(torch.optim.SGD([w], lr=1.0), 4, loss)
    assert value == 8.0
    assert len(alive) == 6
    assert math.isclose(float(w.sum().detach()), 4 - 8.0)
