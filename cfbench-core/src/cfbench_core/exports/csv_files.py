"""A folder of CSV files: every table of a run, read and written in batches."""

from __future__ import annotations

from cfbench_core.exports.shared import copy_files, new_folder
from cfbench_core.files import filled
from cfbench_core.run_directory import Run


def export(run: Run, destination: str | None, name: str) -> str:
    """Writes TABLE.csv for each table, and copies of the small files of the run."""
    from pyarrow import csv

    folder = new_folder(destination, name, "csv")
    with filled(folder) as inside:
        for table in run.table_names:
            csv.write_csv(run.to_arrow(table), inside / f"{table}.csv")
        copy_files(run, inside)
    return f"wrote {len(run.table_names)} tables to {folder}"
