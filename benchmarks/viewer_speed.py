"""How long the viewer takes on a run of 1 million score rows, in a real browser (Playwright, Debian's Chromium).

The run is synthetic: 2 models x 10 explainers x 5 metrics x 10,000 units, written as a finished run is. The server is
started anew for each repetition, so every first page is a cold one (the files are in the disk's cache).

    python benchmarks/viewer_speed.py [repetitions] [--store]

Steps, each until the browser shows it: start (the command until it prints the address), first page (tables of the
run), filtered table (one model, competitors), units (a cell with distributions), sorted units, searched units, unit page.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from results import keep

from cfbench_core.reports.saved import save
from cfbench_core.reports.tables import tables
from cfbench_core.results_assembly import GROUP
from cfbench_core.run_directory import Run, write_summary

MODELS, EXPLAINERS, UNITS = ("mf", "ease"), 10, 10_000
METRICS = {
    "POS-P@5": "lower",
    "NEG-P@5": "higher",
    "PN-S@5": "higher",
    "#Perturb": "lower",
    "Rank after": "higher",
}
TABLE = Path(__file__).resolve().parents[1] / "docs" / "results" / "viewer-speed"
FLAGS = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"


def make_run(directory: Path) -> Path:
    """Writes the run with all files that the viewer reads."""
    directory.mkdir(parents=True)
    generator = np.random.default_rng(0)
    units = np.array([f"u{n // 5:05}/i{n % 5}" for n in range(UNITS)])
    users = np.array([unit.partition("/")[0] for unit in units])
    cells: list[dict[str, Any]] = []
    scores: list[pd.DataFrame] = []
    costs: list[pd.DataFrame] = []
    metrics = [
        {"name": name, "direction": direction, "range": None, "question": f"What is {name}?"}
        for name, direction in METRICS.items()
    ]
    for model in MODELS:
        for number in range(EXPLAINERS):
            role = "baseline" if number == EXPLAINERS - 1 else ""
            labels = {"dataset": "made-up", "model": model, "explainer": f"explainer-{number}"}
            cell = "/".join(labels.values())
            cells.append(
                {
                    "cell": cell,
                    **labels,
                    "role": role,
                    "status": "ok",
                    "reason": "",
                    "metrics": metrics,
                    "stages": {},
                }
            )
            for metric in METRICS:
                values = generator.normal(0.3 + 0.03 * number, 0.1, UNITS).round(6)
                scores.append(
                    pd.DataFrame(
                        {
                            "cell": cell,
                            **labels,
                            "unit": units,
                            "user": users,
                            "metric": metric,
                            "value": values,
                        }
                    ).assign(status="ok")
                )
            spent = generator.lognormal(-6, 0.5, UNITS)
            costs.append(pd.DataFrame({"cell": cell, "unit": units, "elapsed_seconds": spent}))
    layout = {"by": ["dataset", "model"], "row": "explainer", "cluster": "user", "unit_columns": ["user"]}
    plan = {"suite": "made-up", "data": "10,000 units", "layout": layout, "cells": cells}
    (directory / "plan.json").write_text(json.dumps(plan))
    (directory / "config.yaml").write_text("suite: made-up\nseed: 0\n")
    (directory / "environment.json").write_text("{}")
    (directory / "quality.csv").write_text("dataset,model,metric,value,n,ci_low,ci_high\n")
    pd.concat(scores).to_parquet(directory / "scores.parquet", index=False, row_group_size=GROUP)
    pd.concat(costs).to_parquet(directory / "costs.parquet", index=False, row_group_size=GROUP)
    answers = pd.concat(costs)[["cell", "unit"]].assign(edge_item="i1", op="remove")
    answers.to_parquet(directory / "explanations.parquet", index=False, row_group_size=GROUP)
    run = Run(directory)
    write_summary(run)
    save(run, tables(Run(directory)), "")
    return directory


def measure(directory: Path, browser: Any) -> dict[str, float]:
    """Seconds of each step, in milliseconds."""
    taken: dict[str, float] = {}
    start = time.perf_counter()
    command = [sys.executable, "-m", "cfbench_core", "view", str(directory), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()

    def step(name: str, wanted: str) -> None:
        nonlocal start
        page.wait_for_function(f"() => {wanted}", timeout=60_000)
        taken[name] = 1000 * (time.perf_counter() - start)
        start = time.perf_counter()

    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        taken["start"] = 1000 * (time.perf_counter() - start)
        start = time.perf_counter()
        page.goto(address)
        step("first page", "document.querySelectorAll('section.table tbody tr').length === 20")
        page.select_option("#filter-model", "ease")
        page.select_option("#filter-role", "competitors")
        step("filtered table", "document.querySelectorAll('section.table tbody tr').length === 9")
        start = time.perf_counter()
        page.locator("section.table td.number a").first.click()
        step("units", "document.querySelectorAll('.spread figure').length === 6")
        page.locator("th button").nth(3).click()
        step("sorted units", "document.querySelector('th[aria-sort=ascending]') !== null")
        page.fill("#search", "u0199")
        step("searched units", "/^50 of/.test(document.querySelector('.total').innerText)")
        page.locator("a.row").first.click()
        step(
            "unit page",
            "location.hash.includes('/unit/') && document.querySelector('main:not([aria-busy]) h1') !== null",
        )
    finally:
        context.close()
        server.terminate()
        server.wait(30)
    return taken


def main(repetitions: int, store: bool) -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        directory = make_run(Path(folder) / "run")
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS.split())
        measure(directory, browser)  # warms the disk's cache
        found = [measure(directory, browser) for _ in range(repetitions)]
        browser.close()
    rows = [
        {
            "score_rows": len(MODELS) * EXPLAINERS * len(METRICS) * UNITS,
            "step": step,
            "median_ms": round(statistics.median(one[step] for one in found)),
            "max_ms": round(max(one[step] for one in found)),
            "repetitions": repetitions,
        }
        for step in found[0]
    ]
    for row in rows:
        print(f"{row['step']:16} {row['median_ms']:6} ms  (at most {row['max_ms']} ms)")
    if store:
        keep(TABLE, rows, ("score_rows", "step"), f"python benchmarks/viewer_speed.py {repetitions} --store")


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    main(numbers[0] if numbers else 5, "--store" in sys.argv)
