"""The rules by which a process computes on CUDA, and that they end with the task. They can be set without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from executor_stages import cuda_rules
from sample_tasks import task

from cfbench_core.compute import compute
from cfbench_core.devices.cuda import nondeterministic_operation, torch_device
from cfbench_core.errors import UserError
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.isolation.global_state import restored
from cfbench_core.store import Store
from cfbench_core.suites import Limits

DETERMINISTIC, FAST = "cuda, no TF32, deterministic", "cuda, no TF32"
NOTE = "put_ has no deterministic implementation: another run may differ in the last digits"
RULES = {
    "deterministic": True,
    "cudnn": [True, False],
    "tf32": ["ieee", "ieee", "highest"],
    "narrow sums": [False, False],
    "workspace": ":4096:8",
}


@pytest.mark.slow
def test_a_task_on_cuda_computes_by_the_rules_and_the_next_one_does_not(tmp_path: Path) -> None:
    before, store = cuda_rules(), Store(tmp_path)
    assert before != RULES
    outcome = compute(replace(task("reports_cuda_rules"), device=DETERMINISTIC), store)
    assert outcome.summary == {**RULES, "note": NOTE}  # the operation is named once
    assert cuda_rules() == before
    fast = compute(replace(task("reports_cuda_rules", {"fast": True}), device=FAST), store)
    assert fast.summary == {**RULES, "deterministic": False, "cudnn": [False, False]}
    on_cpu = compute(task("reports_cuda_rules", {"cpu": True}), store)
    assert on_cpu.summary == before


@pytest.mark.slow
def test_rules_end_with_the_task_that_imported_torch(tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from dataclasses import replace\n"
        "from cfbench_core.compute import compute; from cfbench_core.store import Store; from sample_tasks import task\n"
        "store = Store(Path(sys.argv[1])); assert 'torch' not in sys.modules\n"
        f"compute(replace(task('reports_cuda_rules'), device={DETERMINISTIC!r}), store)\n"
        "print(json.dumps(dict(compute(task('reports_cuda_rules', {'cpu': 1}), store).summary)))"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(answer.stdout) == cuda_rules()


@pytest.mark.slow
def test_a_worker_process_computes_by_the_rules(tmp_path: Path) -> None:
    executor = ProcessExecutor(tmp_path, 1, 1, Limits(seconds=60), [], fresh=False)
    try:
        executor.submit(replace(task("reports_cuda_rules"), device=DETERMINISTIC))
        executor.wait()
        assert executor.wait().outcome.summary == {**RULES, "note": NOTE}  # type: ignore[union-attr]
    finally:
        executor.close()


@pytest.mark.parametrize("older", [False, True])
def test_what_a_task_changes_itself_is_restored(older: bool) -> None:
    before = cuda_rules()
    with restored():
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.deterministic = True
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        if older:
            torch.backends.cudnn.allow_tf32 = False
        else:
            torch.backends.cudnn.conv.fp32_precision = "ieee"
    assert cuda_rules() == before


def test_warnings_of_another_kind_are_not_about_operations() -> None:
    assert nondeterministic_operation("the given array is not writable") == ""


def test_a_device_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert torch_device("auto") == torch_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="device: cuda is not available here"):
        torch_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch_device("auto") == torch_device("cuda") == torch.device("cuda")
    assert torch_device("cpu") == torch.device("cpu")
