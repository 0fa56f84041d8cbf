"""Batches that fit: an injected allocator raises torch.OutOfMemoryError above a size."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.devices.batches import FIRST, Batches, DeviceMemoryError, halved, memory_of

SHORT = "CUDA out of memory. Tried to allocate 20.00 GiB\nand more lines"


@pytest.fixture(autouse=True, scope="module")
def few_objects_to_collect() -> Iterator[None]:
    """Each shortage of memory collects garbage: only what these tests made is looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


class Allocator:
    """Computes squares of up to ``most`` numbers, and notes the sizes of the batches."""

    def __init__(self, most: int) -> None:
        self.most, self.sizes = most, list[int]()

    def squares(self, members: Sequence[int]) -> list[int]:
        self.sizes.append(len(members))
        if len(members) > self.most:
            raise torch.OutOfMemoryError(SHORT)
        return [member**2 for member in members]


class Memory:
    """A device with so much memory; each member of a batch needs ``each`` bytes."""

    def __init__(self, total: int, each: int) -> None:
        self.total, self.each, self.size = total, each, 0

    def free(self) -> int:
        return self.total

    def start(self) -> None:
        self.size = 0

    def needed(self) -> int:
        return self.size * self.each

    def squares(self, members: Sequence[int]) -> list[int]:
        self.size = len(members)
        if self.size * self.each > self.total:
            raise torch.OutOfMemoryError(SHORT)
        return [member**2 for member in members]


@settings(max_examples=30)
@given(count=st.integers(0, 60), most=st.integers(1, 70))
def test_results_do_not_depend_on_what_fits(count: int, most: int) -> None:
    allocator = Allocator(most)
    found = list(Batches().computed(count, allocator.squares))
    assert [value for _, values in found for value in values] == [number**2 for number in range(count)]
    assert [place for part, _ in found for place in part] == list(range(count))
    assert max((len(part) for part, _ in found), default=0) <= most
    assert allocator.sizes.count(count) <= 1  # a size that failed is not tried again
    failed = [size for size in allocator.sizes if size > most]
    assert failed == sorted(set(failed), reverse=True)


@settings(max_examples=30)
@given(count=st.integers(0, 200), total=st.integers(1, 5_000), each=st.integers(0, 100))
def test_batches_are_sized_by_the_free_memory(count: int, total: int, each: int) -> None:
    memory = Memory(total, each)
    if each > total and count:
        with pytest.raises(DeviceMemoryError):
            list(Batches(memory).computed(count, memory.squares))
        return
    found = list(Batches(memory).computed(count, memory.squares))
    assert [value for _, values in found for value in values] == [number**2 for number in range(count)]
    sizes = [len(part) for part, _ in found]
    assert all(size <= FIRST for size in sizes[:1])
    assert all(size * each <= total for size in sizes)


def test_a_large_memory_is_used_after_the_first_batch() -> None:
    memory = Memory(total=100_000, each=100)
    sizes = [len(part) for part, _ in Batches(memory).computed(2_000, memory.squares)]
    assert sizes == [FIRST, 700, 700, 592]  # 70% of what is free


def test_one_member_that_does_not_fit_is_an_error_that_says_so() -> None:
    allocator = Allocator(0)
    with pytest.raises(DeviceMemoryError, match=r"a batch of one \(CUDA out of memory.*20.00 GiB\)$"):
        list(Batches().computed(5, allocator.squares))
    assert allocator.sizes == [5, 2, 1]


def test_batches_inside_of_a_batch_make_the_outer_one_smaller() -> None:
    """The outer batch holds memory, so that the inner one has too little even for one member."""

    def outer(part: range) -> list[list[int]]:
        inner = Allocator(3 - len(part))
        return [value for _, value in Batches().computed(3, inner.squares)]

    found = list(Batches().computed(4, outer))
    assert [len(part) for part, _ in found] == [2, 2]
    assert all([value for values in result for value in values] == [0, 1, 4] for _, result in found)


def test_what_fits_is_remembered_from_call_to_call() -> None:
    batches, allocator = Batches(), Allocator(3)
    for _ in range(2):
        list(batches.computed(8, allocator.squares))
    assert allocator.sizes == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]


def test_other_errors_are_not_retried() -> None:
    calls = []

    def fails(part: range) -> None:
        calls.append(part)
        raise RuntimeError("of another kind")

    with pytest.raises(RuntimeError, match="of another kind"):
        list(Batches().computed(4, fails))
    assert calls == [range(4)]


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 9), max_size=5),
    most=st.integers(1, 10),
)
def test_batches_of_chosen_members_are_halved(sizes: list[int], most: int) -> None:
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    chosen = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    found = list(halved(chosen, Allocator(most).squares))
    assert [member for members, _ in found for member in members] == list(range(sum(sizes)))
    assert all(values == [member**2 for member in members] for members, values in found)


def test_only_batches_on_cuda_are_sized_by_memory() -> None:
    assert memory_of("cpu") is None
    assert memory_of(torch.device("cpu")) is None
