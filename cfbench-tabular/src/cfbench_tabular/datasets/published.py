"""The data sets of CF-tabular that are published at the UCI Machine Learning Repository.

The data sets differ only in their description (``schemas/NAME.yaml``), so that one class reads them all; each has
a subclass, by which its spec names it. :mod:`cfbench_tabular.datasets.uci_files` reads the files.
All are licensed under CC BY 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options
from cfbench_tabular.datasets.uci_files import description_of, files_of, read_raw, read_study

if TYPE_CHECKING:
    from cfbench_tabular.table import Table

SPECS = (
    ComponentSpec(
        id="tabular/dataset/soybean-small",
        summary="Diseases of 47 soybean plants, 35 symptoms",
        target=f"{__name__}:SoybeanSmall",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical"}}},
        papers=("michalski1980learning",),
        details={"files": f"{__name__}:SoybeanSmall.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/lymphography",
        summary="Diagnoses of 148 patients from 18 radiological findings",
        target=f"{__name__}:Lymphography",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical"}}},
        papers=("zwitter1988lymphography",),
        details={"files": f"{__name__}:Lymphography.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/hayes-roth",
        summary="Club membership of 132 fictitious people, 4 attributes",
        target=f"{__name__}:HayesRoth",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical"}}},
        papers=("hayesroth1977concept",),
        details={"files": f"{__name__}:HayesRoth.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/ecoli",
        summary="Localisation sites of 336 proteins, 7 scores",
        target=f"{__name__}:Ecoli",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("horton1996probabilistic",),
        details={"files": f"{__name__}:Ecoli.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/cmsc",
        summary="Crashes of 540 climate model simulations, 18 parameters",
        target=f"{__name__}:CMSC",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("lucas2013failure",),
        details={"files": f"{__name__}:CMSC.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/bcw",
        summary="Recurrence of breast cancer in 198 patients, 32 measurements",
        target=f"{__name__}:BCW",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("wolberg1995prognostic",),
        details={"files": f"{__name__}:BCW.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/pbc",
        summary="Types of 5,473 blocks of printed pages, 10 measurements",
        target=f"{__name__}:PBC",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("malerba1996further",),
        details={"files": f"{__name__}:PBC.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/isolet",
        summary="Spoken letters, 7,797 recordings, 617 features",
        target=f"{__name__}:ISOLET",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("cole1990spoken",),
        details={"files": f"{__name__}:ISOLET.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/magic",
        summary="Gamma rays or hadrons, 19,020 showers, 10 measurements",
        target=f"{__name__}:Magic",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("bock2004methods",),
        details={"files": f"{__name__}:Magic.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/sdd",
        summary="Faults of a motor, 58,509 measurements, 48 features",
        target=f"{__name__}:SDD",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"numeric"}}},
        papers=("paschke2013sensorlose",),
        details={"files": f"{__name__}:SDD.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/statlog-german-credit",
        summary="Credit risk of 1,000 applicants, 20 columns",
        target=f"{__name__}:StatlogGermanCredit",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical", "numeric"}}},
        papers=("hofmann1994credit",),
        details={"files": f"{__name__}:StatlogGermanCredit.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/student-performance",
        summary="Final grade of at least 12, 649 pupils, 30 columns",
        target=f"{__name__}:StudentPerformance",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical", "numeric"}}},
        papers=("cortez2008student",),
        details={"files": f"{__name__}:StudentPerformance.files", "licence": "CC BY 4.0", "embedded": False},
    ),
    ComponentSpec(
        id="tabular/dataset/internet-advertisements",
        summary="Whether an image is an advertisement, 2,359 images, 1,558 columns",
        target=f"{__name__}:InternetAdvertisements",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical", "numeric"}}},
        papers=("kushmerick1999learning",),
        details={
            "files": f"{__name__}:InternetAdvertisements.files",
            "licence": "CC BY 4.0",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="tabular/dataset/default-of-credit-card-clients",
        summary="Default of payment next month, 30,000 clients, 23 columns",
        target=f"{__name__}:DefaultOfCreditCardClients",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical", "numeric"}}},
        papers=("yeh2009comparisons",),
        details={
            "files": f"{__name__}:DefaultOfCreditCardClients.files",
            "licence": "CC BY 4.0",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="tabular/dataset/adult",
        summary="Income above 50,000 dollars, 32,561 people, 14 columns",
        target=f"{__name__}:Adult",
        config=f"{__name__}:Config",
        needs={"explainer": {"columns": {"categorical", "numeric"}}},
        papers=("kohavi1996scaling",),
        details={"files": f"{__name__}:Adult.files", "licence": "CC BY 4.0", "embedded": False},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    path: Annotated[
        str | None,
        InputFile(),
        Help("file of UCI, or NAME.csv.gz of CF-tabular; none: located or downloaded"),
    ] = None


class _Files:
    """The class attribute ``Adult.files``, read from the description on first access."""

    def __get__(self, instance: object, owner: type[Published]) -> DataFiles:
        return files_of(owner.name)


class Published:
    """A data set of ``schemas/``; subclasses set its name."""

    name: ClassVar[str]
    files: ClassVar[_Files] = _Files()

    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(files_of(self.name), self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Table:
        description, paths = description_of(self.name), Source.of(source).paths
        names = dict.fromkeys(name for raw in description.raw for name in (raw, raw.removesuffix(".Z")))
        raw = [name for name in names if name in paths]
        if raw:
            table = read_raw(self.name, description, [paths[name] for name in raw])
        else:
            table = read_study(self.name, description, next(iter(paths.values())))
        if len(table) != description.rows:
            raise UserError(
                f"{self.name}: has {len(table):,} rows, must have {description.rows:,}: the file is truncated or different "
                "(for your own file use the data set 'csv')"
            )
        return apply_options(table, self.config)


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
