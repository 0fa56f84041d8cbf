"""What models have learned, on disk: what is read is what was written, and processes share its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from child_processes import popen
from safetensors.numpy import load_file

from cfbench_core.lifecycle.models import STATE, load_state, save_state

DTYPES = [
    "float64",
    "float32",
    "float16",
    "complex64",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def test_arrays_are_read_as_safetensors_reads_them(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    state = {name: (100 * random.random((3, 5))).astype(name) for name in DTYPES}
    state |= {"scalar": np.array(2.5), "empty": np.empty((0, 4)), "a.b, \u00e9": np.arange(7)}
    save_state(state, tmp_path)
    found, expected = load_state(tmp_path), load_file(tmp_path / STATE)
    assert set(found) == set(expected) == set(state)
    for name, array in found.items():
        assert array.dtype == expected[name].dtype and array.shape == expected[name].shape
        assert array.tobytes() == expected[name].tobytes() == state[name].tobytes()


def test_what_is_written_to_an_array_stays_in_the_process(tmp_path: Path) -> None:
    save_state({"weight": np.arange(5.0)}, tmp_path)
    before = (tmp_path / STATE).read_bytes()
    load_state(tmp_path)["weight"][:] = -1
    assert (tmp_path / STATE).read_bytes() == before
    assert load_state(tmp_path)["weight"].tolist() == [0, 1, 2, 3, 4]


READER = """
import json, sys
from pathlib import Path
from cfbench_core.lifecycle.models import STATE, load_state
state = load_state(Path(sys.argv[1]))
total = float(state["weight"].sum())  # every page is read
print("read", flush=True)
sys.stdin.readline()
found, ours = {}, False
for line in open("/proc/self/smaps"):
    name, *rest = line.split()
    if not name.endswith(":"):
        ours = line.rstrip().endswith(STATE)
    elif ours and rest[-1] == "kB":
        found[name[:-1]] = found.get(name[:-1], 0) + int(rest[0])
print(json.dumps({"total": total, **found}), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say who shares memory")
def test_processes_that_read_a_model_share_its_memory(tmp_path: Path) -> None:
    weight = np.ones(4_000_000)  # 32 MB
    save_state({"weight": weight}, tmp_path)
    command = [sys.executable, "-c", READER, str(tmp_path)]
    readers = [popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for reader in readers:
        assert reader.stdout is not None and reader.stdout.readline() == "read\n"
    for reader in readers:  # both have read it, and neither has ended
        assert reader.stdin is not None and reader.stdout is not None
        reader.stdin.write("\n")
        reader.stdin.flush()
        memory = json.loads(reader.stdout.readline())
        assert memory["total"] == len(weight)
        assert memory["Rss"] >= 0.9 * weight.nbytes / 1024
        assert memory["Private_Dirty"] == 0
        if reader is readers[0]:
            assert memory["Shared_Clean"] + memory["Shared_Dirty"] >= 0.9 * weight.nbytes / 1024
            assert memory["Pss"] <= 0.6 * memory["Rss"]
