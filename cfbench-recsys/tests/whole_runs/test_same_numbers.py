"""The same numbers, whatever happens: killed and resumed, by whomever it is computed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cfbench_recsys
from cfbench_core import run

DRIVER = """
from cfbench_core import run
run({configuration!r}, out={out!r})
"""


def start(configuration: Mapping[str, Any], out: Path) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    script = DRIVER.format(configuration=configuration, out=str(out))
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)


def debian(flag: Path, **changes: Any) -> dict[str, Any]:
    """A study of real data, of 20 users; one explainer waits at the eleventh until a file appears."""
    known = pd.read_csv(Path(cfbench_recsys.__file__).parent / "data" / "debian-python.csv.gz")
    users = sorted(set(known[known.columns[0]]))  # in the order of their indices
    listed = flag.with_name("users.csv")
    listed.write_text("\n".join(["user", *users[:1600:80]]) + "\n")
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [{"name": "ease", "l2": 100.0}],
        "explainers": [
            {"import": "my_lab:ByIndex"},
            {"import": "my_lab:TakesTheFirst"},
            {"import": "bad_lab:Misbehaves", "label": "waits", "how": f"wait:{flag}", "user": 800},
        ],
        "protocol": {"k": [3], "level": ["item"], "users_file": str(listed)},
        "executor": "process",
        "workers": 2,
        "chunk": 7,
        **changes,
    }


@pytest.mark.slow
def test_scores_are_the_same_bytes_whether_resumed_or_not_for_every_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, killed = tmp_path / "go", tmp_path / "killed"
    child = start(debian(flag), killed)
    log = killed / "outcomes.jsonl"
    deadline = time.monotonic() + 200
    while not (log.exists() and '"scores"' in log.read_text()):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert not (killed / "scores.parquet").exists()
    before = len(log.read_text().splitlines())
    flag.touch()
    resumed = run(debian(flag), out=killed)
    ends = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert {"cached", "ok"} == {end["status"] for end in ends}
    assert all(end["status"] == "cached" for end in ends if end["kind"] in ("data", "split", "model"))
    defined = resumed.scores[resumed.scores["value"].notna()]
    assert resumed.exit_code == 0 and set(defined["status"]) == {"ok"}
    expected = (killed / "scores.parquet").read_bytes()
    answers = (killed / "explanations.parquet").read_bytes()

    for name, changes in {"inline": {"executor": "inline"}, "one worker": {"workers": 1}}.items():
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "caches" / name))
        other = run(debian(flag, **changes), out=tmp_path / name)
        assert (other.directory / "scores.parquet").read_bytes() == expected, name
        assert (other.directory / "explanations.parquet").read_bytes() == answers, name

    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "caches" / "chunks"))
    chunks = run(debian(flag, chunk=50, executor="inline"), out=tmp_path / "chunks")
    keys = ["cell", "metric", "unit"]
    first, second = (r.scores.sort_values(keys).reset_index(drop=True) for r in (resumed, chunks))
    pd.testing.assert_frame_equal(first, second, check_exact=True)
