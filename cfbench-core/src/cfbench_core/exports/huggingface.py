"""The layout of a Hugging Face dataset: Parquet files, and a README.md that declares one configuration for each table.

``datasets.load_dataset(FOLDER, "scores")`` reads it, and ``huggingface-cli upload`` publishes it. Nothing is sent from here.
"""

from __future__ import annotations

import yaml

from cfbench_core.exports.shared import copy_files, facts_of, new_folder
from cfbench_core.files import filled
from cfbench_core.run_directory import Run


def export(run: Run, destination: str | None, name: str) -> str:
    """Writes TABLE.parquet for each table that has rows, and README.md."""
    from pyarrow import parquet

    folder = new_folder(destination, name, "huggingface")
    tables = [
        table
        for table in run.table_names
        if parquet.read_metadata(run.directory / f"{table}.parquet").num_rows
    ]
    with filled(folder) as inside:
        (inside / "data").mkdir()
        for table in tables:
            parquet.write_table(run.to_arrow(table), inside / "data" / f"{table}.parquet")
        copy_files(run, inside)
        (inside / "README.md").write_text(_card(run, name, tables), encoding="utf-8")
    return f"wrote a dataset with {len(tables)} tables to {folder}; huggingface-cli upload REPOSITORY {folder} publishes it"


def _card(run: Run, name: str, tables: list[str]) -> str:
    """The metadata block, then what the tables are."""
    first = "scores" if "scores" in tables else next(iter(tables), "")
    configs = [
        {
            "config_name": table,
            "data_files": f"data/{table}.parquet",
            **({"default": True} if table == first else {}),
        }
        for table in tables
    ]
    metadata = {"pretty_name": name, "tags": ["counterfactual-explanations", "cfbench"], "configs": configs}
    facts = "\n".join(f"- {key}: {value}" for key, value in facts_of(run).items())
    return (
        f"---\n{yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)}---\n# {name}\n\n"
        f"Scores of counterfactual explanations, computed by cfbench.\n\n{facts}\n\n"
        "Each table is a configuration. `summary.csv` holds the means with intervals, `config.yaml` the study.\n"
        "The licence of the data that was explained applies to what the tables show of it.\n"
    )
