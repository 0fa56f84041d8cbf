"""Reading of the data sets of the UCI Machine Learning Repository from UCI's own files and from CF-tabular's.

``schemas/NAME.yaml`` describes a data set (:class:`SourceFiles`): names and types of the columns, codes, addresses,
constraints. CF-tabular's form of a data set is ``NAME.csv.gz``: a header 0, 1, ..., output; categories first, then
numbers, each in UCI's order; a column of two values as 0 and 1; classes as whole numbers. Both forms give the same
table, with UCI's names.

UCI publishes no checksums. Those in the schemas are published independently by two or more projects; where
there are not two, none is given, and ``cfbench data fetch`` reports that the content was not verified.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import Document, decode_dataclass
from cfbench_core.data_files import DataFile, DataFiles, Form
from cfbench_core.errors import UserError
from cfbench_tabular.schema import ColumnPlan, Schema

if TYPE_CHECKING:
    from cfbench_tabular.sheet import Sheet
    from cfbench_tabular.table import Table

LICENCE = "CC BY 4.0"
XLS_LACKS = "needs xlrd to read Excel files: pip install 'cfbench-tabular[xls]'"


@dataclass(frozen=True, kw_only=True)
class StudyForm:
    """The file of CF-tabular. ``classes``: class names by their codes; empty if the codes are unknown."""

    file: str
    classes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """A file of ``schemas/``.

    ``rows``: the number of rows; ``skip``: lines before the header; ``sha256``: digests of members of archives.
    """

    title: str
    page: str
    rows: int
    downloads: tuple[DataFile, ...]
    study: StudyForm
    schema: Schema
    skip: int = 0
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def raw(self) -> tuple[str, ...]:
        """The names of UCI's files on disk."""
        return tuple(name for file in self.downloads for name in file.saved)


@functools.cache
def description_of(name: str) -> SourceFiles:
    """The description of a data set, by its name."""
    text = resources.files("cfbench_tabular.datasets").joinpath("schemas", f"{name}.yaml").read_text("utf-8")
    description: SourceFiles = decode_dataclass(Document(text, f"{name}.yaml", Path()), SourceFiles)
    return description


@functools.cache
def files_of(name: str) -> DataFiles:
    """The locations and downloads of a data set."""
    description = description_of(name)
    unpacked = tuple(file.removesuffix(".Z") for file in description.raw)
    forms = [description.raw, unpacked, (description.study.file,), (f"datasets/{description.study.file}",)]
    return DataFiles(
        id=name,
        suite="tabular",
        forms=tuple(Form(files=form) for form in dict.fromkeys(forms)),
        downloads=tuple(
            dataclasses.replace(file, licence=LICENCE, page=description.page)
            for file in description.downloads
        ),
        licence=LICENCE,
        page=description.page,
        sha256=description.sha256,
    )


def read_raw(name: str, description: SourceFiles, paths: Sequence[Path]) -> Table:
    """The rows of UCI's files, concatenated."""
    from cfbench_tabular.file_rows import FileRows
    from cfbench_tabular.reading import read_sheet, table_of
    from cfbench_tabular.sheet import Sheet

    sheets = [
        _read_xls(path, description) if path.suffix == ".xls" else read_sheet(path, description.schema)
        for path in paths
    ]
    rows = [row for sheet in sheets for row in sheet.rows]
    places = [place for sheet in sheets for place in sheet.places]
    file_rows = FileRows.of_files([(sheet.file_rows, len(sheet.rows)) for sheet in sheets])
    return table_of(Sheet(sheets[0].names, rows, places, file_rows), description.schema, name)


def read_study(name: str, description: SourceFiles, path: Path) -> Table:
    """The file of CF-tabular, with the names of UCI.

    Raises:
        UserError: if it is a different file.
    """
    from cfbench_tabular.reading import read_sheet, table_of
    from cfbench_tabular.sheet import Sheet

    sheet = read_sheet(path, Schema(separator=","))
    schema = description.schema
    class_column = schema.class_column or schema.plans()[-1].name
    features = [plan for plan in schema.plans() if plan.kind != "drop" and plan.name != class_column]
    in_study = [plan for plan in features if plan.levels is not None]
    in_study += [plan for plan in features if plan.levels is None]
    expected = (*map(str, range(len(features))), "output")
    if sheet.names != expected:
        raise UserError(
            f"{path}: is not the file of CF-tabular for {name}: its columns must be 0 to {len(features) - 1}, then output"
        )
    codes = description.study.classes
    in_uci_order = [in_study.index(plan) for plan in features]
    study = dataclasses.replace(
        schema,
        class_column=class_column,
        classes=codes,
        threshold=None,
        columns={plan.name: _study_type(plan) for plan in features},
        missing="error",
    )
    rows = [[*(row[place] for place in in_uci_order), row[-1]] for row in sheet.rows]
    names = (*(plan.name for plan in features), class_column)
    return table_of(Sheet(names, rows, sheet.places, sheet.file_rows), study, name)


def _study_type(plan: ColumnPlan) -> Any:
    if plan.levels is None:
        return "numeric"
    if len(plan.levels) == 2:
        return {"levels": dict(zip(("0", "1"), plan.levels.values(), strict=True))}
    return {"levels": plan.levels}


def _read_xls(path: Path, description: SourceFiles) -> Sheet:
    """The first sheet of an Excel file in the format of Excel 97-2003; whole numbers without a decimal point."""
    from cfbench_tabular.sheet import Sheet

    try:
        import xlrd
    except ImportError:
        raise UserError(f"{path}: {XLS_LACKS}") from None
    try:
        cells = xlrd.open_workbook(str(path)).sheet_by_index(0)
    except (OSError, xlrd.XLRDError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    names, *rows = (
        [_text(value) for value in cells.row_values(number)]
        for number in range(description.skip, cells.nrows)
    )
    places = [f"{path}:{number}" for number in range(description.skip + 2, cells.nrows + 1)]
    return Sheet(tuple(names), rows, places)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
