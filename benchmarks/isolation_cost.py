"""The CPU time of the default study with and without isolation, in pairs of runs with fresh caches.

    python benchmarks/isolation_cost.py                  two pairs of the default study
    python benchmarks/isolation_cost.py --pairs 5 -- --set protocol.users=20

In every second run a ``sitecustomize`` module replaces the functions of ``cfbench_core.isolation`` that cost time, in the
main process and in the workers. It is written for the measurement; there is no such option.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = "import sys; from cfbench_core.cli import main; sys.exit(main())"
WITHOUT = """
import contextlib
import cfbench_core.isolation.domains as domains
import cfbench_core.isolation.global_state as global_state
import cfbench_core.isolation.protection as protection
domains.domain = lambda stage: ""
global_state.restored = contextlib.nullcontext
protection._freeze = lambda value, lasting: None
"""
WITH = WITHOUT.partition("domains.domain")[0]  # the same imports


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("arguments", nargs="*", help="of cfbench run")
    options = parser.parse_args()
    ratios = []
    for number in range(options.pairs):
        # The order alternates, so that what the system caches favours neither.
        order = (WITH, WITHOUT) if number % 2 == 0 else (WITHOUT, WITH)
        seconds = {code: _seconds(code, options.arguments) for code in order}
        ratios.append(seconds[WITH] / seconds[WITHOUT])
        print(f"with {seconds[WITH]:.1f} s, without {seconds[WITHOUT]:.1f} s, ratio {ratios[-1]:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f} of {len(ratios)} pairs")


def _seconds(sitecustomize: str, arguments: list[str]) -> float:
    """CPU seconds of a run with its workers."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(sitecustomize)
        environment = {**os.environ, "PYTHONPATH": folder, "CFBENCH_CACHE_DIR": f"{folder}/cache"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", COMMAND, "run", "--output", f"{folder}/run", *arguments]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
