"""``csv``: a delimited text file of the user, with a short schema.

    data:
      - name: csv
        file: patients.csv
        class_column: outcome        # none: the last column
        target: ill                  # the class to predict against the rest; none: the majority
        missing: drop
        columns: {age: numeric, sex: [female, male], id: drop}
        immutable: [sex]
        direction: {age: up}
        constraints: [{column: bmi, relation: ratio, of: [mass, height2], absolute: 0.05}]

The schema may also be a separate file, ``schema: patients.yaml``; options in the configuration take precedence.
``cfbench init --csv patients.csv`` infers a schema from the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Document, Help, InputFile, decode_dataclass
from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_core.user_files import user_files
from cfbench_tabular.datasets.base import DatasetConfig, apply_options
from cfbench_tabular.schema import Schema

if TYPE_CHECKING:
    from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/csv",
    summary="A delimited text file with a short schema; 'cfbench init --csv FILE' drafts it",
    target=f"{__name__}:Csv",
    config=f"{__name__}:Config",
    details={
        "licence": "chosen by the owner of the file",
        "embedded": False,
        "how": "named in the configuration: file: patients.csv",
    },
)


FILE, SCHEMA = "file", "schema"


@dataclass(frozen=True, kw_only=True)
class Config(Schema, DatasetConfig):
    file: Annotated[str, InputFile(), Help("delimited text with one row per line; may end in .gz")]
    schema: Annotated[str | None, InputFile(), Help("YAML file with the options from class_column on")] = None

    def __post_init__(self) -> None:
        if self.schema is None:
            Schema.__post_init__(self)
        DatasetConfig.__post_init__(self)

    @property
    def default_label(self) -> str:
        """The name of the file, without its endings."""
        return Path(self.file).name.partition(".")[0]


class Csv:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        named = {FILE: self.config.file, SCHEMA: self.config.schema}
        source = user_files({name: path for name, path in named.items() if path is not None})
        schema = schema_of(self.config, source.paths.get(SCHEMA))
        schema.plans()  # reports errors in the schema before anything runs
        return source

    def load(self, source: Source | Mapping[str, Any]) -> Table:
        from cfbench_tabular.reading import read_sheet, table_of

        paths = Source.of(source).paths
        schema = schema_of(self.config, paths.get(SCHEMA))
        name = paths[FILE].name.partition(".")[0]
        return apply_options(table_of(read_sheet(paths[FILE], schema), schema, name), self.config)


def schema_of(config: Config, path: Path | None) -> Schema:
    """The schema of the file, with the options of the configuration taking precedence.

    Raises:
        UserError: if the file is not a schema, or the two contradict each other.
    """
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(Schema)}
    if path is None:
        return Schema(**fields)
    from_file: Schema = decode_dataclass(Document.read(path), Schema)
    default = Schema()
    overrides = {name: value for name, value in fields.items() if value != getattr(default, name)}
    try:
        return dataclasses.replace(from_file, **overrides)
    except ValueError as error:
        raise UserError(f"{path}: with the options of the configuration: {error}") from None
