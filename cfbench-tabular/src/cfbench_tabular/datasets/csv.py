"""``csv``: a table of the user's own, with a short schema.

    data:
      - name: csv
        file: patients.csv
        class_column: outcome        # none: the last column
        target: ill                  # the class to tell from the rest; none: the majority
        missing: drop
        columns: {age: numeric, sex: [female, male], id: drop}
        immutable: [sex]
        direction: {age: up}
        rules: [{column: bmi, relation: ratio, of: [mass, height2], absolute: 0.05}]

What is told of the columns may also stand in a file of its own, ``schema: patients.yaml``; what is told here as
well is taken from here. ``cfbench init --csv patients.csv`` drafts all this by looking at the file.
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
from cfbench_core.user_files import user_files
from cfbench_tabular.datasets.base import DatasetConfig, as_asked
from cfbench_tabular.schema import Schema

if TYPE_CHECKING:
    from cfbench_tabular.table import Table

FILE, SCHEMA = "file", "schema"


@dataclass(frozen=True, kw_only=True)
class Config(Schema, DatasetConfig):
    file: Annotated[str, InputFile(), Help("delimited text, a row to a line; may end in .gz")]
    schema: Annotated[str | None, InputFile(), Help("YAML file with the options from class_column on")] = None

    def __post_init__(self) -> None:
        if self.schema is None:
            Schema.__post_init__(self)
        DatasetConfig.__post_init__(self)


class Csv:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        named = {FILE: self.config.file, SCHEMA: self.config.schema}
        source = user_files({name: path for name, path in named.items() if path is not None})
        schema = schema_of(self.config, source.paths.get(SCHEMA))
        schema.plans()  # what is wrong in it is told before anything runs
        return source

    def load(self, source: Source | Mapping[str, Any]) -> Table:
        from cfbench_tabular.reading import read_sheet, table_of

        paths = Source.of(source).paths
        schema = schema_of(self.config, paths.get(SCHEMA))
        name = paths[FILE].name.partition(".")[0]
        return as_asked(table_of(read_sheet(paths[FILE], schema), schema, name), self.config)


def schema_of(config: Config, path: Path | None) -> Schema:
    """The schema in the configuration, and in its file where the configuration does not say.

    Raises:
        UserError: when the file is not a schema, or the two do not go together.
    """
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(Schema)}
    if path is None:
        return Schema(**fields)
    told: Schema = decode_dataclass(Document.read(path), Schema)
    default = Schema()
    said = {name: value for name, value in fields.items() if value != getattr(default, name)}
    try:
        return dataclasses.replace(told, **said)
    except ValueError as error:
        raise UserError(f"{path}: with what the configuration says: {error}") from None
