"""Stage functions, well and badly behaved, that the tests of the store and the executors compute."""

from __future__ import annotations

import collections
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from cfbench_core.errors import IncompleteWarning, UserError
from cfbench_core.stages import TaskContext


def answer(task: TaskContext) -> dict[str, int]:
    (task.output / "answer.txt").write_text("42\n")
    return {"answer": 42}


def loses_its_folder(task: TaskContext) -> dict[str, int]:
    """As if a component of another process had removed the folder of this task, ``times`` times."""
    done = Path(task.parameters["counter"])
    number = int(done.read_text()) + 1 if done.exists() else 1
    done.write_text(str(number))
    if number <= task.parameters["times"]:
        shutil.rmtree(task.output)
    (task.output / "answer.txt").write_text("42\n")
    return {"attempts": number}


def queries_a_server(task: TaskContext) -> dict[str, int]:
    """Lacks something as long as there is no file of the server's name."""
    up = Path(task.parameters["server"]).exists()
    (task.output / "answer.txt").write_text("42\n" if up else "?\n")
    if not up:
        warnings.warn("1 of 2 questions has no response", IncompleteWarning, stacklevel=1)
    return {"answer": 42 if up else 0}


def silent(task: TaskContext) -> None:
    """Writes nothing and says nothing."""


def draws(task: TaskContext) -> dict[str, object]:
    """Random numbers, a matrix product and the parameters as they arrive."""
    matrix = task.streams.generator("explain", "matrix").standard_normal((300, 300))
    np.save(task.output / "numbers.npy", matrix @ matrix.T)
    return {
        "first": float(matrix[0, 0]),
        "seed": task.streams.integer_seed("x"),
        "parameters": repr(task.parameters),
    }


def adds_inputs(task: TaskContext) -> dict[str, object]:
    """Tells which process computed it, and how often this process has read its input."""
    loads: list[int] = task.load("data", _count_loads)
    return {
        "pid": os.getpid(),
        "loads": loads[0],
        "text": (task.input_paths["data"] / "answer.txt").read_text(),
    }


_loads = 0


def _count_loads(folder: Path) -> list[int]:
    global _loads
    _loads += 1
    return [_loads]


def progresses(task: TaskContext) -> None:
    for step in range(1, 4):
        task.report(step, 3)
        time.sleep(0.15)


def prints(task: TaskContext) -> None:
    print('{"event": "finished"}')
    print("a warning", file=sys.stderr)
    os.write(1, b"from C\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)


def reads_standard_input(task: TaskContext) -> dict[str, str]:
    return {"read": sys.stdin.read()}


def raises(task: TaskContext) -> None:
    raise TypeError("the first line\nthe second line")


def raises_user_error(task: TaskContext) -> None:
    raise UserError("ratings.csv:7: rating: must be a number")


def raises_memory_error(task: TaskContext) -> None:
    raise MemoryError


def asks_torch_like_for_memory(task: TaskContext) -> None:
    class OutOfMemoryError(RuntimeError):
        """As torch.cuda has it."""

    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def interrupts(task: TaskContext) -> None:
    raise KeyboardInterrupt


def leaves(task: TaskContext) -> None:
    sys.exit(3)


def leaves_at_once(task: TaskContext) -> None:
    os._exit(1)


def crashes(task: TaskContext) -> None:
    (task.output / "half.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed(task: TaskContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def returns_no_json(task: TaskContext) -> dict[str, object]:
    (task.output / "file.txt").write_text("written in vain")
    return {"quality": {1, 2}}


def returns_a_list(task: TaskContext) -> list[int]:
    return [1]


def sleeps(task: TaskContext) -> None:
    time.sleep(float(task.parameters["seconds"]))


def sleeps_after_writing(task: TaskContext) -> None:
    """Writes files, tells the test where it is, and waits to be killed."""
    (task.output / "big.bin").write_bytes(b"x" * 1_000_000)
    Path(task.parameters["flag"]).write_text(str(os.getpid()))
    time.sleep(60)


def spins_with_a_child(task: TaskContext) -> None:
    """Never ends, in this process and in one that it starts."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(task.parameters["flag"]).write_text(f"{os.getpid()} {child.pid}")
    while True:
        pass


def never_lets_go(task: TaskContext) -> None:
    """Never ends, in C, so that no other thread of Python gets a turn."""
    Path(task.parameters["flag"]).write_text(str(os.getpid()))
    collections.deque(itertools.repeat(0), maxlen=0)


def eats_memory(task: TaskContext) -> None:
    eaten = []
    while True:
        eaten.append(np.ones(2_500_000))  # 20 MB
        time.sleep(0.005)


def feeds_a_child(task: TaskContext) -> None:
    """The memory is that of a process which this one starts."""
    code = "import time; eaten = b'x' * 800_000_000; time.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=True)


def forks(task: TaskContext) -> dict[str, int]:
    """A child that is still a copy of this process, as one is before it runs another program; it never takes long."""
    held = np.ones(25_000_000)
    child = os.fork()
    if child == 0:
        time.sleep(0.8)
        os._exit(0)
    os.waitpid(child, 0)
    return {"bytes": held.nbytes}


def holds_memory(task: TaskContext) -> dict[str, int]:
    """Keeps 200 MB beyond its own end, as a leak or a cache would."""
    _held.append(np.ones(25_000_000))
    return {"pid": os.getpid()}


_held: list[np.ndarray] = []


def fills_for_a_moment(task: TaskContext) -> dict[str, int]:
    eaten = np.ones(25_000_000)
    return {"bytes": eaten.nbytes}


def tells_pid(task: TaskContext) -> dict[str, int]:
    return {"pid": os.getpid()}


def tells_threads(task: TaskContext) -> dict[str, object]:
    from threadpoolctl import threadpool_info

    return {
        "blas": sorted({pool["num_threads"] for pool in threadpool_info()}),
        "variable": os.environ["OMP_NUM_THREADS"],
    }


def fills_the_disk(task: TaskContext) -> None:
    (task.output / "big.bin").write_bytes(b"x" * 50_000_000)


def fills_the_disk_with_parquet(task: TaskContext) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = np.random.default_rng(0).standard_normal(5_000_000)
    pq.write_table(pa.table({"value": column}), task.output / "big.parquet")


def caches_memory(task: TaskContext) -> dict[str, int]:
    """Holds 200 MB in the cache of loaded inputs, as a model that is loaded does; it is released when it must be."""
    from cfbench_core.stages import _loaded

    _loaded(lambda path: np.ones(25_000_000), Path("model"), "model")
    return {"pid": os.getpid()}


def reports_gpu(task: TaskContext) -> dict[str, object]:
    """What the process may see of GPUs, once the file ``waits_for`` is there."""
    flag = task.parameters["waits_for"]
    while flag and not Path(flag).exists():
        time.sleep(0.01)
    names = ("CUDA_VISIBLE_DEVICES", "CFBENCH_GPU_SHARE", "CUBLAS_WORKSPACE_CONFIG")
    return {"pid": os.getpid(), **{name: os.environ.get(name) for name in names}}


def reports_cuda_rules(task: TaskContext) -> dict[str, object]:
    """How torch computes on CUDA; uses an operation that is not deterministic, twice."""
    import torch

    for _ in range(2):
        torch.zeros(3).put_(torch.tensor([0]), torch.tensor([1.0]))
    return cuda_rules()


def cuda_rules() -> dict[str, object]:
    """What torch does in this process now."""
    import torch

    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    return {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn": [cudnn.deterministic, cudnn.benchmark],
        "tf32": [cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, torch.get_float32_matmul_precision()],
        "narrow sums": [
            products.allow_fp16_reduced_precision_reduction,
            products.allow_bf16_reduced_precision_reduction,
        ],
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    }
