"""Random streams depend on the run's seed, the purpose, the dataset and the names, and on nothing else."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np

from cfbench_core.lifecycle.streams import Streams, generator
from cfbench_core.stages import Task, TaskContext


def test_a_stream_is_the_sha_256_of_its_names() -> None:
    """Written out independently of the implementation, so that it stays what it is across versions."""
    seed = int.from_bytes(hashlib.sha256(b"3\x1fsplit\x1fml-1m\x1falice").digest()[:16], "little")
    expected = np.random.default_rng(seed).random(5)
    assert np.array_equal(Streams(3, "ml-1m").generator("split", "alice").random(5), expected)
    assert np.array_equal(generator(3, "split", "ml-1m", "alice").random(5), expected)


def test_every_name_counts() -> None:
    base = Streams(0, "ml-1m").generator("fit", "a").random()
    others = [
        Streams(1, "ml-1m").generator("fit", "a"),
        Streams(0, "ml-20m").generator("fit", "a"),
        Streams(0, "ml-1m").generator("split", "a"),
        Streams(0, "ml-1m").generator("fit", "b"),
        Streams(0, "ml-1m").generator("fit"),
    ]
    assert len({base, *(stream.random() for stream in others)}) == 6


def test_a_task_draws_the_same_whatever_its_keys_code_and_parameters_are(tmp_path: Path) -> None:
    task = Task("k" * 64, "s" * 64, "units", "units", "m:f", {"version": 1}, {}, {}, 7, None, {}, "iris")
    other = dataclasses.replace(
        task, key="0" * 64, stage_key="1" * 64, target="n:g", parameters={"version": 2}, chunk=(5, 9)
    )
    draws = [
        TaskContext(each, tmp_path, {}).streams.generator("units", "17").random(3) for each in (task, other)
    ]
    assert np.array_equal(*draws)
    assert TaskContext(task, tmp_path, {}).streams.integer_seed("units") < 2**63
