"""What tasks hand out is read-only, once and for every task."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from cfbench_core.isolation import protection


def test_an_object_is_frozen_anew_when_it_replaces_one_that_is_gone() -> None:
    """A new object may have the ``id`` of an old one; it is searched nevertheless."""
    for _ in range(200):
        holder = SimpleNamespace(values=np.zeros(3))
        protection.protect("the data", holder)
        assert not holder.values.flags.writeable


def test_a_part_of_a_lasting_object_is_read_only_in_a_chunk_too() -> None:
    data = SimpleNamespace(values=np.zeros(3))
    protection.protect("the data", data)
    chunk = SimpleNamespace(data=data, own=np.zeros(2))
    protection.protect("the units", chunk, lasting=False)
    assert not chunk.own.flags.writeable and not data.values.flags.writeable
