"""How long ``cfbench list`` takes: it must feel instant, so it may take 0.35 s more than ``python -c pass``.

Both are started in turns, so that whatever else the machine does hits them alike; the medians are compared.

    python benchmarks/list_time.py [repetitions]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ALLOWED_SECONDS = 0.35
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "cfbench list": ("-c", "import sys; from cfbench_core.cli import main; sys.exit(main(['list']))"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main(repetitions: int) -> int:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repetitions + 1):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    medians = {
        name: statistics.median(times[1:]) for name, times in taken.items()
    }  # the first warms the disk's cache
    for name, median in medians.items():
        print(f"{name:15} {median:.3f} s")
    difference = medians["cfbench list"] - medians["python -c pass"]
    verdict = "ok" if difference < ALLOWED_SECONDS else "TOO SLOW"
    print(f"difference      {difference:.3f} s  (allowed {ALLOWED_SECONDS} s): {verdict}")
    return int(difference >= ALLOWED_SECONDS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
