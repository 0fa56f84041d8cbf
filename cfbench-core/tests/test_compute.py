"""One piece of work in this process: every way to end is a value."""

from __future__ import annotations

import errno
import gc
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sample_tasks import task
from small_disk import small_disk

from cfbench_core.compute import compute
from cfbench_core.errors import UserError
from cfbench_core.stages import Task
from cfbench_core.store import Store


def is_empty(store: Store) -> bool:
    return not store.entries() and not list((store.root / "tmp").iterdir())


def test_what_is_computed_is_stored_and_not_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = compute(task("answer"), store)
    assert (first.status, first.summary) == ("ok", {"answer": 42})
    path = store.path("scores", task("answer").key)
    assert (path / "answer.txt").read_text() == "42\n"
    before = (path / "answer.txt").stat().st_mtime_ns
    second = compute(task("answer"), store)
    assert second.status == "cached"
    assert (second.summary, second.elapsed_seconds, second.peak_memory_bytes) == (
        first.summary,
        first.elapsed_seconds,
        first.peak_memory_bytes,
    )
    assert (path / "answer.txt").stat().st_mtime_ns == before


def test_fresh_computes_again_and_replaces(tmp_path: Path) -> None:
    store = Store(tmp_path)
    compute(task("answer"), store)
    (store.path("scores", task("answer").key) / "answer.txt").write_text("43\n")
    assert compute(task("answer"), store, fresh=True).status == "ok"
    assert (store.path("scores", task("answer").key) / "answer.txt").read_text() == "42\n"


def test_a_task_whose_folder_is_removed_by_others_is_computed_once_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    once = task("loses_its_folder", {"counter": str(tmp_path / "once"), "times": 1})
    assert compute(once, store).summary == {"attempts": 2}
    always = task("loses_its_folder", {"counter": str(tmp_path / "always"), "times": 9})
    outcome = compute(always, store)
    assert outcome.status == "failed" and outcome.reason.startswith("FileNotFoundError: ")
    assert (tmp_path / "always").read_text() == "2"
    assert [entry.key for entry in store.entries()] == [once.key]


def test_an_incomplete_result_and_what_was_made_of_it_are_computed_again(tmp_path: Path) -> None:
    store, server = Store(tmp_path / "store"), tmp_path / "server"
    asks = task("queries_a_server", {"server": str(server)})
    reads = task("adds_inputs", inputs={"data": asks})
    for _ in range(2):  # as long as the server is down
        partial = compute(asks, store)
        assert (partial.status, partial.summary["answer"]) == ("ok", 0)
        assert partial.summary["incomplete"] == ["1 of 2 questions has no response"]
        derived = compute(reads, store)
        assert (derived.status, derived.summary["text"]) == ("ok", "?\n")
        assert derived.summary["incomplete"] == ["an input is incomplete"]
    server.touch()
    assert compute(asks, store).summary == {"answer": 42}
    healed = compute(reads, store)
    assert (healed.status, healed.summary["text"]) == ("ok", "42\n")  # not what this process read before
    assert "incomplete" not in healed.summary
    assert {compute(asks, store).status, compute(reads, store).status} == {"cached"}


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), UserError("nobody answers")])
def test_a_store_that_fails_is_the_outcome_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Whatever left here would end a worker, which could not say what it was."""

    def fails(self: Store, kind: str, key: str) -> None:
        raise error

    monkeypatch.setattr(Store, "manifest", fails)
    outcome = compute(task("answer"), Store(tmp_path))
    assert outcome.status == "failed" and str(error) in outcome.reason


def test_a_stage_may_write_and_say_nothing(tmp_path: Path) -> None:
    outcome = compute(task("silent"), Store(tmp_path))
    assert (outcome.status, outcome.summary) == ("ok", {})


def test_a_stage_reads_its_inputs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    compute(task("answer"), store)
    outcome = compute(task("adds_inputs", inputs={"data": task("answer")}), store)
    assert outcome.summary["text"] == "42\n"


def test_a_missing_input_is_one_error_line(tmp_path: Path) -> None:
    outcome = compute(task("adds_inputs", inputs={"data": task("answer")}), Store(tmp_path))
    assert outcome.status == "failed"
    assert outcome.reason.startswith("adds_inputs: its input 'data' (scores ")
    assert outcome.reason.endswith("is not in the cache any more, or damaged. Run the same command again.")


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        ("raises", "failed", "TypeError: the first line"),
        ("raises_user_error", "failed", "ratings.csv:7: rating: must be a number"),
        ("raises_memory_error", "out_of_memory", "MemoryError"),
        (
            "asks_torch_like_for_memory",
            "out_of_memory",
            "OutOfMemoryError: CUDA out of memory. Tried to allocate",
        ),
        ("leaves", "failed", "SystemExit: 3"),
        (
            "returns_a_list",
            "failed",
            "TypeError: executor_stages:returns_a_list must return a summary (a mapping)",
        ),
        ("returns_no_json", "failed", "TypeError: {1, 2} (set) is not JSON"),
    ],
)
def test_what_a_stage_raises_is_an_outcome_with_one_line(
    tmp_path: Path, function: str, status: str, reason: str
) -> None:
    store = Store(tmp_path)
    outcome = compute(task(function), store)
    assert outcome.status == status
    assert outcome.reason.startswith(reason)
    assert "\n" not in outcome.reason
    assert "Traceback" in outcome.traceback
    assert is_empty(store)


def test_a_module_or_function_that_is_not_there_is_an_outcome(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert compute(task("misspelt"), store).reason.startswith(
        "AttributeError: module 'executor_stages' has no"
    )
    nowhere = Task(**{**vars(task("answer")), "target": "nowhere.at_all:f"})
    assert compute(nowhere, store).reason == "ModuleNotFoundError: No module named 'nowhere'"


def test_only_the_keyboard_interrupts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        compute(task("interrupts"), store)
    assert is_empty(store)


@pytest.mark.parametrize("function", ["fills_the_disk", "fills_the_disk_with_parquet"])
def test_a_full_disk_is_a_clear_line_and_leaves_no_half_artifact(tmp_path: Path, function: str) -> None:
    with small_disk(tmp_path) as disk:
        store = Store(disk)
        outcome = compute(task(function), store)
        assert outcome.status == "failed"
        assert outcome.reason.startswith(f"{disk}: the disk is full (")
        assert "choose another folder" in outcome.reason
        assert is_empty(store)
        assert compute(task("answer"), store).status == "ok"


def test_a_disk_that_is_full_before_a_stage_begins_is_the_same_clear_line(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        blocks = (disk / "filler").open("wb")
        with pytest.raises(OSError, match="No space left"), blocks:
            blocks.write(b"x" * 5_000_000)
        outcome = compute(task("answer"), Store(disk / "artifacts"))
        assert outcome.status == "failed"
        assert "the disk is full (0.0 MB left)" in outcome.reason


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is that of the whole process")
def test_time_and_peak_memory_are_those_of_the_work(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gc.collect()  # what earlier tests left must not be freed in between
    compute(task("silent"), store)  # what is loaded or read once belongs to no task
    quiet = compute(task("silent"), store, fresh=True)
    hungry = compute(task("fills_for_a_moment"), store)
    quiet_again = compute(task("silent"), store, fresh=True)
    # Memory of earlier tests may be given back at any time, so the base is that of the task before or after.
    more = [hungry.peak_memory_bytes - other.peak_memory_bytes for other in (quiet, quiet_again)]
    assert any(difference == pytest.approx(200e6, rel=0.1) for difference in more)
    assert quiet_again.peak_memory_bytes < 1.1 * quiet.peak_memory_bytes
    slow = compute(task("sleeps", {"seconds": 0.2}), store)
    assert 0.2 <= slow.elapsed_seconds < 0.4
    assert quiet.elapsed_seconds < 0.1


def test_the_observer_is_notified_of_start_and_progress(tmp_path: Path) -> None:
    reported: list[object] = []
    compute(
        task("progresses"),
        Store(tmp_path),
        lambda *steps: reported.append(steps),
        begin=lambda: reported.append("begin"),
    )
    assert reported == ["begin", (1, 3), (2, 3), (3, 3)]


def test_the_summary_is_what_was_stored(tmp_path: Path) -> None:
    """Equal to the last bit, also when it comes from the cache."""
    store = Store(tmp_path)
    outcome = compute(task("draws", {"x": 0.1}), store)
    stored = json.loads((store.path("scores", task("draws", {"x": 0.1}).key) / "artifact.json").read_text())
    assert outcome.summary == stored["summary"]
    matrix = work_generator().standard_normal((300, 300))
    assert outcome.summary["first"] == matrix[0, 0]


def work_generator() -> np.random.Generator:
    from cfbench_core.lifecycle.streams import generator

    return generator(0, "explain", task("draws").dataset, "matrix")
