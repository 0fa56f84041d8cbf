"""What the exporters share: a folder to write to, clients that may be missing, and names that clients accept."""

from __future__ import annotations

import importlib
import math
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cfbench_core import owners
from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run, RunCell

FILES = ("config.yaml", "environment.json", "plan.json", "summary.csv", "quality.csv", "report.html")
"""Files of a run directory that an export takes as they are."""


def new_folder(destination: str | None, name: str, kind: str) -> Path:
    """The folder to write to, made if necessary.

    Raises:
        UserError: if it is not empty, or cannot be made.
    """
    folder = Path(destination or f"{name}-{kind}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        owners.remove_abandoned(folder)
        taken = any(folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder}: cannot be used as a folder ({error.strerror or error})") from None
    if taken:
        raise UserError(f"{folder}: is not empty; give a new folder by --destination")
    return folder


def client(module: str, package: str) -> Any:
    """The client's module.

    Raises:
        UserError: if the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise UserError(f"{package} is not installed: pip install {package}") from None


def present(run: Run) -> Iterator[Path]:
    """Those of :data:`FILES` that the run has.

    Raises:
        UserError: where one has changed, or was removed, since the run wrote it.
    """
    yield from (path for name in FILES if (path := run.verified(name)).is_file())


def copy_files(run: Run, folder: Path) -> None:
    """Copies of :data:`FILES`; ``summary.csv`` is computed where the run has none yet."""
    for path in present(run):
        shutil.copyfile(path, folder / path.name)
    if not (folder / "summary.csv").exists():
        run.summary.to_csv(folder / "summary.csv", index=False)


def facts_of(run: Run) -> dict[str, str]:
    """What identifies a run: suite, seed, versions, commit and hardware, as text."""
    environment = run.environment
    commit = environment.get("commit")
    facts = {
        "suite": run.suite,
        "seed": run.config.get("seed"),
        "data": run.data,
        "started": environment.get("time"),
        "python": environment.get("python"),
        "platform": environment.get("platform"),
        "commit": commit.get("commit") if isinstance(commit, Mapping) else commit,
        "cfbench": environment.get("distributions", {}).get("cfbench-core"),
    }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def metrics_of(run: Run) -> dict[str, dict[str, float]]:
    """By cell: "NAME", "NAME.ci_low", "NAME.ci_high" and "NAME.n" of each metric with a mean. Names are made of letters that
    all clients accept."""
    found: dict[str, dict[str, float]] = {}
    for row in run.summary.to_dict("records"):
        name = plain_name(str(row["metric"]))
        parts = {name: row["mean"], **{f"{name}.{part}": row[part] for part in ("ci_low", "ci_high", "n")}}
        if _is_number(row["mean"]):
            numbers = {key: float(value) for key, value in parts.items() if _is_number(value)}
            found.setdefault(str(row["cell"]), {}).update(numbers)
    return found


def plain_name(metric: str) -> str:
    """ "PN-S@5" as "PN-S_at_5": letters, digits, "_", "-", "." and spaces only."""
    return (
        re.sub(r"[^\w\-. ]", "", metric.replace("@", "_at_").replace("#", "num "), flags=re.ASCII).strip()
        or "metric"
    )


def parameters_of(cell: RunCell) -> dict[str, str]:
    """The labels of a cell with its role, as text."""
    labels = {str(name): str(value) for name, value in cell.labels.items()}
    return {**labels, **({"role": cell.role} if cell.role else {})}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)
