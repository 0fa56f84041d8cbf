"""The sets of the study (paper 003) that lie at the UCI Machine Learning Repository: one reader, and one file of
facts for each set in ``schemas/``.

They differ in facts only (names and types of columns, codes, addresses, rules), so that facts are what is
written down; a file of code for each would say the same thing fifteen times. All are CC BY 4.0.

Each is read in one of two forms. UCI's own files, which are downloaded; and the study's, ``NAME.csv.gz``: a
header 0, 1, ..., output; categories first, then numbers, each in UCI's order; a column of two values as 0 and 1;
classes as whole numbers. Both give the same table, with UCI's names.

UCI publishes no checksums; those here are what two or more projects publish of its files, independently. Where
there are not two, none is given, and ``cfbench data fetch`` says that the content was not checked.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from cfbench_core.config import Document, Help, InputFile, decode_dataclass
from cfbench_core.data_files import DataAccess, DataFile, DataFiles, Form, Source
from cfbench_core.errors import UserError
from cfbench_tabular.datasets.base import DatasetConfig, as_asked
from cfbench_tabular.schema import ColumnPlan, Schema

if TYPE_CHECKING:
    from cfbench_tabular.reading import Sheet
    from cfbench_tabular.table import Table

LICENCE = "CC BY 4.0"
XLS_LACKS = "needs xlrd to read Excel files: pip install 'cfbench-tabular[xls]'"


@dataclass(frozen=True, kw_only=True)
class StudyForm:
    """The study's own file. ``classes``: their names by its codes; empty where its codes are not known."""

    file: str
    classes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A file of ``schemas/``.

    ``rows``: how many there are; ``skip``: lines before the header; ``sha256``: of members of archives.
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
        """The names of UCI's files, as they are left on disk."""
        return tuple(name for file in self.downloads for name in file.saved)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    path: Annotated[
        str | None, InputFile(), Help("UCI's file or the study's NAME.csv.gz; none: found, or downloaded")
    ] = None


@functools.cache
def facts_of(name: str) -> Facts:
    """What is known of a set, by its name."""
    text = resources.files("cfbench_tabular.datasets").joinpath("schemas", f"{name}.yaml").read_text("utf-8")
    facts: Facts = decode_dataclass(Document(text, f"{name}.yaml", Path()), Facts)
    return facts


@functools.cache
def files_of(name: str) -> DataFiles:
    """Where a set may lie, and where it is downloaded from."""
    facts = facts_of(name)
    unpacked = tuple(file.removesuffix(".Z") for file in facts.raw)
    forms = [facts.raw, unpacked, (facts.study.file,), (f"datasets/{facts.study.file}",)]
    return DataFiles(
        id=name,
        suite="tabular",
        forms=tuple(Form(files=form) for form in dict.fromkeys(forms)),
        downloads=tuple(
            dataclasses.replace(file, licence=LICENCE, page=facts.page) for file in facts.downloads
        ),
        licence=LICENCE,
        page=facts.page,
        sha256=facts.sha256,
    )


class _Files:
    """``Adult.files``, read from its file of facts when it is first asked for."""

    def __get__(self, instance: object, owner: type[Published]) -> DataFiles:
        return files_of(owner.name)


class Published:
    """A set of ``schemas/``; each has a class of its own, by which a plugin names it."""

    name: ClassVar[str]
    files: ClassVar[_Files] = _Files()

    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(files_of(self.name), self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Table:
        facts, paths = facts_of(self.name), Source.of(source).paths
        names = dict.fromkeys(name for raw in facts.raw for name in (raw, raw.removesuffix(".Z")))
        raw = [name for name in names if name in paths]
        if raw:
            table = read_raw(self.name, facts, [paths[name] for name in raw])
        else:
            table = read_study(self.name, facts, next(iter(paths.values())))
        if len(table) != facts.rows:
            raise UserError(
                f"{self.name}: has {len(table):,} rows, must have {facts.rows:,}: the file is cut or another one "
                "(a file of your own: data set 'csv')"
            )
        return as_asked(table, self.config)


def read_raw(name: str, facts: Facts, paths: Sequence[Path]) -> Table:
    """UCI's files, one after the other."""
    from cfbench_tabular.reading import Sheet, read_sheet, table_of

    sheets = [
        _read_xls(path, facts) if path.suffix == ".xls" else read_sheet(path, facts.schema) for path in paths
    ]
    rows = [row for sheet in sheets for row in sheet.rows]
    places = [place for sheet in sheets for place in sheet.places]
    return table_of(Sheet(sheets[0].names, rows, places), facts.schema, name)


def read_study(name: str, facts: Facts, path: Path) -> Table:
    """The study's file, with UCI's names.

    Raises:
        UserError: when the file is another one.
    """
    from cfbench_tabular.reading import Sheet, read_sheet, table_of

    sheet = read_sheet(path, Schema(separator=","))
    schema = facts.schema
    class_column = schema.class_column or schema.plans()[-1].name
    features = [plan for plan in schema.plans() if plan.kind != "drop" and plan.name != class_column]
    in_study = [plan for plan in features if plan.levels is not None]
    in_study += [plan for plan in features if plan.levels is None]
    expected = (*map(str, range(len(features))), "output")
    if sheet.names != expected:
        raise UserError(
            f"{path}: is not the study's file of {name}: its columns must be 0 to {len(features) - 1}, then output"
        )
    codes = facts.study.classes
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
    return table_of(Sheet((*(plan.name for plan in features), class_column), rows, sheet.places), study, name)


def _study_type(plan: ColumnPlan) -> Any:
    if plan.levels is None:
        return "numeric"
    if len(plan.levels) == 2:
        return {"levels": dict(zip(("0", "1"), plan.levels.values(), strict=True))}
    return {"levels": plan.levels}


def _read_xls(path: Path, facts: Facts) -> Sheet:
    """The first sheet of an Excel file of the old kind; whole numbers without a decimal point."""
    from cfbench_tabular.reading import Sheet

    try:
        import xlrd
    except ImportError:
        raise UserError(f"{path}: {XLS_LACKS}") from None
    try:
        cells = xlrd.open_workbook(str(path)).sheet_by_index(0)
    except (OSError, xlrd.XLRDError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    names, *rows = (
        [_text(value) for value in cells.row_values(number)] for number in range(facts.skip, cells.nrows)
    )
    places = [f"{path}:{number}" for number in range(facts.skip + 2, cells.nrows + 1)]
    return Sheet(tuple(names), rows, places)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class Adult(Published):
    name = "adult"


class BCW(Published):
    name = "bcw"


class CMSC(Published):
    name = "cmsc"


class DefaultOfCreditCardClients(Published):
    name = "default-of-credit-card-clients"


class Ecoli(Published):
    name = "ecoli"


class HayesRoth(Published):
    name = "hayes-roth"


class InternetAdvertisements(Published):
    name = "internet-advertisements"


class ISOLET(Published):
    name = "isolet"


class Lymphography(Published):
    name = "lymphography"


class Magic(Published):
    name = "magic"


class PBC(Published):
    name = "pbc"


class SDD(Published):
    name = "sdd"


class SoybeanSmall(Published):
    name = "soybean-small"


class StatlogGermanCredit(Published):
    name = "statlog-german-credit"


class StudentPerformance(Published):
    name = "student-performance"
