"""Keeps what a benchmark measured as a table under docs/results/: a row each, with the commit it was measured at."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def keep(path: Path, rows: Sequence[Mapping[str, Any]], same: Sequence[str], command: str) -> None:
    """Writes PATH.csv and PATH.json (command, hardware, versions).

    Rows that are there already stay, unless one of ``rows`` equals them in all columns of ``same``.
    """
    import pandas as pd

    from cfbench_core.environment import capture

    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    new = pd.DataFrame([{**row, "commit": found.stdout.strip()[:9]} for row in rows])
    file = path.with_suffix(".csv")
    if file.exists():
        text = {name: object for name in same if new[name].dtype == object}
        old = pd.read_csv(file, dtype=text).fillna(dict.fromkeys(text, ""))
        new = pd.concat([old, new], ignore_index=True).drop_duplicates(list(same), keep="last")
    new.to_csv(file, index=False)
    environment = capture()
    about = {
        "command": command,
        "hardware": environment["hardware"],
        "versions": environment["distributions"],
    }
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
